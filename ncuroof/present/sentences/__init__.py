"""What page, terminal and Markdown say alike."""
