"""The reader of our own."""
