"""Grid and block shapes of old reports: before 2021 Nsight Compute stored them as fields of the kernels' results, not as counters.

Source: Nsight Compute Customization Guide, "Report File Format": ProfileResult.GridSize and .BlockSize.
"""

from __future__ import annotations

import polars as pl

from ncuroof.ingest import wire
from ncuroof.ingest.framing import Framing
from ncuroof.ingest.stored import Content, Part, part

_COUNTER_BY_FIELD = {10: "launch__grid_dim", 11: "launch__block_dim"}
_AXIS_BY_FIELD = {1: "x", 2: "y", 3: "z"}
MARK = "launch__grid_dim_x"
"""A report with this counter stores launch shapes as counters, so this module is not needed."""


def launch_shapes(content: Content, framing: Framing) -> pl.DataFrame | None:
    """Return `launch__{grid,block}_dim_{x,y,z}` of all kernels, in file order.

    None if the report has workloads other than kernels or a result that cannot be read: the rows could then be misaligned.
    """
    if any(kind != "kernel" for kind, _ in framing.results):
        return None
    try:
        rows = [_shape(part(content, *span)) for _, span in framing.results]
    except wire.WireError:
        return None
    names = [f"{counter}_{axis}" for counter in _COUNTER_BY_FIELD.values() for axis in _AXIS_BY_FIELD.values()]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Float64()), orient="row")


def believable(counters: pl.DataFrame) -> list[pl.Expr]:
    """Return the columns of `launch_shapes`, null where x · y · z contradicts `launch__grid_size` or `launch__block_size`.

    The oldest reports (2020) store the grid there in threads instead of blocks.
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


def _shape(result: Part) -> dict[str, float]:
    shape: dict[str, float] = {}
    for number, _, value in wire.fields(result):
        counter = _COUNTER_BY_FIELD.get(number)
        if counter is not None and not isinstance(value, int):
            for axis, _, extent in wire.fields(value):
                if axis in _AXIS_BY_FIELD:
                    shape[f"{counter}_{_AXIS_BY_FIELD[axis]}"] = float(wire.as_int(extent))
        if number > max(_COUNTER_BY_FIELD):
            break  # fields are stored in order; the thousands of counters that follow need not be walked
    return shape
