"""Rooflines as plain data, as SVG and as plotly figures."""
