"""Measures how long ncuroof takes, beside NVIDIA's own tools on the same reports: `python -m benchmarks`."""
