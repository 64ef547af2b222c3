"""Explains the names in the output (`ncuroof explain`)."""
