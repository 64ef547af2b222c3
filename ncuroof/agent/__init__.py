"""The server of the Model Context Protocol: read-only tools for the reports of one folder."""
