"""What a name in the output means."""
