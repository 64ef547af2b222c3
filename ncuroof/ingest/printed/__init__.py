"""Reads text that ncu printed, as CSV or for a terminal."""
