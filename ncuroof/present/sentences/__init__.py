"""Sentences that the page, the terminal and Markdown share."""
