"""A report that can be shown."""
