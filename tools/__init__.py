"""Commands for those who work on ncuroof itself; not part of the package."""
