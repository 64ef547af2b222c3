"""Read traces of runs without ncu: how often kernels ran, and what the GPU did meanwhile."""
