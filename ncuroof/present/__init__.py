"""Presents an analysis to people and programs: terminal, page, JSON, Markdown, CSV, Parquet."""

from ncuroof.present.output_formats import FORMATS, format_of, render, write

__all__ = ["FORMATS", "format_of", "render", "write"]
