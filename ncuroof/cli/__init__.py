"""The command line: each command parses its options and calls the library."""

from ncuroof.cli.main import main

__all__ = ["main"]
