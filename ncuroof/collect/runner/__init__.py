"""What runs in the user's process, with the standard library and the user's PyTorch alone."""
