"""What to say of a run whose kernels were compiled for debugging, in a sentence."""

from __future__ import annotations


def debug_build_sentence(n_debug_builds: int, n_kernels: int) -> str:
    """Return it; empty where none was.

    Args:
        n_debug_builds: kernels whose machine code is a debug build.
        n_kernels: of the run.
    """
    if not n_debug_builds:
        return ""
    if n_debug_builds == n_kernels:
        compiled = "the kernel was" if n_kernels == 1 else f"all {n_kernels} kernels were"
    else:
        compiled = f"{n_debug_builds} of {n_kernels} kernels {'was' if n_debug_builds == 1 else 'were'}"
    return (
        f"{compiled} compiled for debugging (nvcc -G), without optimisation: "
        "build with optimisation and record again before anything else"
    )
