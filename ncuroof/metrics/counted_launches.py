"""By what a launch of a report and one of its counting run are the same: the kernel, whichever tool named it, and the shape."""

from __future__ import annotations

import polars as pl

from ncuroof.ncu.kernel_names import same_kernel_key
from ncuroof.sidecars.counts import KernelCount
from ncuroof.sidecars.predecessors import Predecessor

SAME_LAUNCH = ["source", "key", "grid", "block"]
"""Columns that agree for launches of one kernel and shape of a report."""


def key_of(kernel: KernelCount | Predecessor) -> tuple[str, ...]:
    """Return key, grid and block of a counted kernel."""
    return (_key(kernel.name), *("x".join(map(str, extent)) for extent in (kernel.grid, kernel.block)))


def keys_of(kernels: pl.DataFrame) -> list[pl.Expr]:
    """Return key, grid and block, as `key_of` has them, of the launches in KERNELS."""
    keys = {name: _key(name) for name in kernels["name"].drop_nulls().unique()}
    return [
        pl.col("name").replace_strict(keys, default=None, return_dtype=pl.String).alias("key"),
        *(pl.col(extent).list.eval(pl.element().cast(pl.String)).list.join("x") for extent in ("grid", "block")),
    ]


def _key(name: str) -> str:
    return " ".join(same_kernel_key(name))
