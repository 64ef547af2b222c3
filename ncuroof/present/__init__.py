"""Presents an analysis to people and programs: terminal, page, JSON, Markdown, CSV, Parquet."""

from ncuroof.present.formats import WRITERS, format_of, render, write

__all__ = ["WRITERS", "format_of", "render", "write"]
