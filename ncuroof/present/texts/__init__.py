"""What people read: summaries on a terminal and in Markdown."""
