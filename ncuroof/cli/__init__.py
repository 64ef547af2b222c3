"""The command line: words to one call of the library each."""

from ncuroof.cli.main import main

__all__ = ["main"]
