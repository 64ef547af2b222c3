"""The reader of what ncu printed, as CSV or on a terminal."""
