"""The page: one HTML file, offline."""
