"""Redacts reports so that they can be shared."""
