"""Traces of a run without replays: how often kernels ran, and what the GPU did meanwhile."""
