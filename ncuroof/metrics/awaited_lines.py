"""What the warps that stall at a source line wait for: the lines of the results, or barriers, that they need."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

LINE = ["id", "file", "line"]
"""Columns that identify a source line of a kernel."""

_LEAST_FRAC = 0.1
_N_AWAITED = 3
"""Awaited lines are kept if they have at least this share of the samples, and at most this many per line and stall."""


def awaited_lines(instructions: pl.DataFrame, samples: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Return `awaits` of LINES by id, file, line and stall: most samples first and, of equals, the nearest instruction first.

    A sample counts once for each line that it waits for: a warp continues only when the last result has arrived.

    Args:
        instructions: RAW_INSTRUCTIONS of all reports with counters and the kernels' `id`; `awaited` has the nearest first.
        samples: by stall, the sum of its samples over instructions.
    """
    waiting = instructions.lazy().filter(pl.col("file").is_not_null())
    of_line = waiting.group_by(LINE).agg(value.alias(stall) for stall, value in samples.items())
    by_instruction = waiting.filter(pl.col("awaited").is_not_null()).group_by(
        *LINE, "number", "awaited", maintain_order=True
    )
    places = instructions.lazy().select(
        "id",
        pl.col("number").alias("awaited"),
        pl.struct(pl.col("file"), pl.col("line")).alias("place"),
        pl.col("callers").alias("called"),
    )
    return (
        by_instruction.agg(value.alias(stall) for stall, value in samples.items())
        .explode("awaited")
        .join(places, on=["id", "awaited"], maintain_order="left")
        .filter(pl.col("place").struct.field("file").is_not_null())
        .unique(["id", "number", "place"], keep="first", maintain_order=True)
        .pipe(_by_stall, samples, [*LINE, "place", "called"])
        .group_by(*LINE, "stall", "place", maintain_order=True)
        .agg(pl.col("called").first(), pl.col("n").sum())
        .join(_by_stall(of_line, samples, LINE).rename({"n": "total"}), on=[*LINE, "stall"], maintain_order="left")
        .with_columns((pl.col("n") / pl.col("total")).alias("frac"))
        .filter(pl.col("frac") >= _LEAST_FRAC)
        .sort("n", descending=True, maintain_order=True)
        .group_by(*LINE, "stall", maintain_order=True)
        .agg(_entry().head(_N_AWAITED).alias("awaits"))
        .collect()
    )


def _by_stall(table: pl.LazyFrame, samples: Mapping[str, pl.Expr], index: list[str]) -> pl.LazyFrame:
    return table.unpivot(list(samples), index=index, variable_name="stall", value_name="n").filter(pl.col("n") > 0)


def _entry() -> pl.Expr:
    place = pl.col("place").struct
    return pl.struct(place.field("file"), place.field("line"), pl.col("called").alias("callers"), pl.col("frac"))
