"""Rooflines as plain data, and as pictures: SVG, plotly."""
