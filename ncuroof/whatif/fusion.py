"""Two kernels as one: what the second reads of what the first wrote need not move."""

from __future__ import annotations

import polars as pl

from ncuroof.errors import WhatIfError
from ncuroof.tables import check
from ncuroof.whatif.busy_times import PER_SM, RESOURCES, sm_share
from ncuroof.whatif.peak_ratios import Target
from ncuroof.whatif.projection import project
from ncuroof.whatif.schemas import BUSY_TIMES

_JOINER = " + "
_BLOCKS = ("n_resident_blocks", "recorded_n_blocks", "n_blocks", "shared_bytes_per_block")


def parse_fusion(text: str, busy: pl.DataFrame) -> tuple[str, str]:
    """Return the two short names that a text joins by a comma; names may hold commas themselves.

    Raises:
        WhatIfError: no comma has a kernel's name on either side.
    """
    names = set(busy["short_name"].drop_nulls())
    parts = text.split(",")
    splits = [(",".join(parts[:at]).strip(), ",".join(parts[at:]).strip()) for at in range(1, len(parts))]
    found = [split for split in splits if set(split) <= names]
    if not found:
        absent = next((name for split in splits[:1] for name in split if name not in names), text)
        raise WhatIfError(
            f"two kernels were wanted, NAME,NAME; none is called {absent!r}",
            hint=f"kernels are {', '.join(sorted(names)[:8])}, …",
        )
    return found[0]


def fuse(busy: pl.DataFrame, first: str, second: str) -> pl.DataFrame:
    """Return the launches with the n-th one of a kernel and the n-th one of another as a single launch.

    Every resource is needed for the sum of both times, less what the intermediate costs: the smaller of the bytes that the first
    wrote to DRAM and the second read from it, saved twice, at the DRAM time per byte of each. The single launch takes what both
    would without these bytes, one after the other; were one to run while the other does, it could reach of its busiest resource
    what the two did (`overlapped_frac`). It is bound as the longer one was.

    Args:
        busy: BUSY_TIMES in the order of the run.
        first: short name of the kernel that writes the intermediate.
        second: short name of the one that reads it.

    Returns:
        BUSY_TIMES; the single launches stand in the place of the first.

    Raises:
        WhatIfError: there is no such kernel, they are the same, were launched on different GPUs or not equally often.
        SchemaError: a column is absent or has another type.
    """
    check(busy, BUSY_TIMES, table="BUSY_TIMES")
    before, after = (busy.filter(pl.col("short_name") == name) for name in (first, second))
    _check(first, second, before, after)
    pairs = before.hstack(after.rename({name: f"{name}_after" for name in after.columns}))
    saved = pl.min_horizontal("dram_write_bytes", "dram_read_bytes_after").fill_null(0.0)
    dram = pairs.select(_less("", saved).alias("before"), _less("_after", saved).alias("after"))
    apart = [
        project(part.with_columns(dram[name].alias("busy.dram")), {}, [Target()])["duration_ns"]
        for name, part in (("before", before), ("after", after))
    ]
    both = pl.col("duration_ns") + pl.col("duration_ns_after")
    reached = pl.col("reached_frac") * pl.col("duration_ns") + pl.col("reached_frac_after") * pl.col(
        "duration_ns_after"
    )
    weighted = pl.col("weight") * pl.col("duration_ns") + pl.col("weight_after") * pl.col("duration_ns_after")
    is_longer = pl.col("duration_ns_after") > pl.col("duration_ns")
    fused = pairs.with_columns(
        *(
            (pl.col(f"busy.{name}") + pl.col(f"busy.{name}_after")).alias(f"busy.{name}")
            for name in RESOURCES
            if name != "dram"
        ),
        (dram["before"] + dram["after"]).alias("busy.dram"),
        (pl.col("busy.operands") + pl.col("busy.operands_after")).alias("busy.operands"),
        (pl.col("name") + _JOINER + pl.col("name_after")).alias("name"),
        (pl.col("short_name") + _JOINER + pl.col("short_name_after")).alias("short_name"),
        both.alias("duration_ns"),
        (reached / both).alias("overlapped_frac"),
        *(pl.max_horizontal(name, f"{name}_after").alias(name) for name in (*_BLOCKS, "n_represented")),
        (weighted / both).alias("weight"),
        (pl.col("failed") | pl.col("failed_after")).alias("failed"),
        *(pl.when(is_longer).then(f"{name}_after").otherwise(name).alias(name) for name in ("verdict", "limiter")),
        *(pl.coalesce(name, f"{name}_after").alias(name) for name in ("tensor_precision", "to_precision")),
        *(pl.lit(None, pl.Float64).alias(name) for name in ("recorded_ridge_ratio", "ridge_ratio")),
        (pl.col("dram_read_bytes") + pl.col("dram_read_bytes_after") - saved).alias("dram_read_bytes"),
        (pl.col("dram_write_bytes") + pl.col("dram_write_bytes_after") - saved).alias("dram_write_bytes"),
        (apart[0] + apart[1]).alias("apart_ns"),
    )
    fused = fused.with_columns(
        (_needed() / pl.col("apart_ns")).alias("reached_frac"), (pl.col("apart_ns") - _needed()).alias("waits_ns")
    ).select(busy.columns)
    others = busy.filter(~pl.col("short_name").is_in([first, second]))
    return pl.concat([others, fused]).sort("id")


def _needed() -> pl.Expr:
    """Return the time of the resource that is needed longest."""
    share = sm_share(pl.col("n_blocks"), pl.col("sm_count"))
    return pl.max_horizontal(pl.col(f"busy.{name}") / (share if name in PER_SM else 1.0) for name in RESOURCES)


def _less(suffix: str, saved: pl.Expr) -> pl.Expr:
    """Return the DRAM time of one of the two without the bytes that need not move, at its own time per byte."""
    moved = pl.col(f"dram_read_bytes{suffix}") + pl.col(f"dram_write_bytes{suffix}")
    kept = (1 - saved / pl.when(moved > 0).then(moved)).clip(lower_bound=0).fill_null(1.0)
    return pl.col(f"busy.dram{suffix}") * kept


def _check(first: str, second: str, before: pl.DataFrame, after: pl.DataFrame) -> None:
    for name, rows in ((first, before), (second, after)):
        if rows.is_empty():
            raise WhatIfError(
                f"no kernel is called {name!r}", hint="names are those of ncuroof report, without arguments"
            )
    if first == second:
        raise WhatIfError(
            f"two kernels were wanted, found {first!r} twice",
            hint="name the kernel that writes, then the one that reads",
        )
    if before.height != after.height:
        raise WhatIfError(
            f"{first} was launched {before.height} times, {second} {after.height} times: which belong together is not known",
            hint="fuse kernels that are launched equally often",
        )
    if before["device"].to_list() != after["device"].to_list():
        raise WhatIfError(f"{first} and {second} ran on different GPUs", hint="fuse kernels of one GPU")
