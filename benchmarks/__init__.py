"""How long ncuroof takes, side by side with NVIDIA's own tools on the same report: `python -m benchmarks`."""
