"""The HTML page of an analysis: one file that works offline."""
