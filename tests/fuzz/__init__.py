"""Fuzzing of what reads strangers' files; not part of the normal tests, see README.md."""
