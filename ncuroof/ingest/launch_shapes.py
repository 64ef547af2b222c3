"""Grids and blocks of reports from before Nsight Compute stored them as counters (2021): they stand in the kernels' results.

Source: Nsight Compute Customization Guide, "Report File Format": ProfileResult.GridSize and .BlockSize.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ncuroof.ingest import wire
from ncuroof.ingest.container import Container
from ncuroof.ingest.stored import Content, Part, part

_COUNTER_BY_FIELD = {10: "launch__grid_dim", 11: "launch__block_dim"}
_AXIS_BY_FIELD = {1: "x", 2: "y", 3: "z"}
MARK = "launch__grid_dim_x"
"""A report that holds this counter needs nothing from here."""


def launch_shapes(content: Content, container: Container) -> pl.DataFrame | None:
    """Return `launch__{grid,block}_dim_{x,y,z}` of all kernels, in file order.

    None where the report holds other workloads than kernels, or a result cannot be read: the order would not be sure.
    """
    if any(block.n_workloads != block.n_results for block in container.blocks):
        return None
    try:
        rows = [_shape(result) for result in _results(content, container)]
    except wire.WireError:
        return None
    names = [f"{counter}_{axis}" for counter in _COUNTER_BY_FIELD.values() for axis in _AXIS_BY_FIELD.values()]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Float64()), orient="row")


def believable(counters: pl.DataFrame) -> list[pl.Expr]:
    """Return the shapes' columns, null where a grid or block does not multiply to the size that is counted.

    The oldest reports (2020) store the grid in threads there, and not in blocks.
    """
    columns = []
    for counter in _COUNTER_BY_FIELD.values():
        axes = [f"{counter}_{axis}" for axis in _AXIS_BY_FIELD.values()]
        size = counter.replace("_dim", "_size")
        counted = pl.lit(counters[size] if size in counters.columns else pl.Series([None] * counters.height))
        product = pl.col(axes[0]) * pl.col(axes[1]) * pl.col(axes[2])
        is_sound = (product == counted).fill_null(value=True)
        columns += [pl.when(is_sound).then(pl.col(axis)).alias(axis) for axis in axes]
    return columns


def _results(content: Content, container: Container) -> Iterator[Part]:
    for block in container.blocks:
        yield from (part(content, *span) for _, span in block.results)


def _shape(result: Part) -> dict[str, float]:
    shape: dict[str, float] = {}
    for number, _, value in wire.fields(result):
        counter = _COUNTER_BY_FIELD.get(number)
        if counter is not None and not isinstance(value, int):
            for axis, _, extent in wire.fields(value):
                if axis in _AXIS_BY_FIELD:
                    shape[f"{counter}_{_AXIS_BY_FIELD[axis]}"] = float(wire.as_int(extent))
        if number > max(_COUNTER_BY_FIELD):
            break  # fields are stored in order; thousands of counters follow
    return shape
