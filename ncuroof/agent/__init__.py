"""The server of the Model Context Protocol: the library's verbs as read-only tools over the files of one folder."""
