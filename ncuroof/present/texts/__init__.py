"""Texts for people: on the terminal and in Markdown."""
