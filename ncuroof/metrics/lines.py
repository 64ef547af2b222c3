"""Measures of source lines: sums over the instructions compiled from each line, and what its stalled warps wait for.

They wait for results of other lines, or at barriers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ncuroof.ingest import RawReport
from ncuroof.metrics.catalogue_types import ByLine
from ncuroof.metrics.quantities import MEANINGFUL_STALLS_EXCEPT
from ncuroof.tables import LINES, conform

_N_LINES = 50
"""Lines kept per kernel and measure, those with the largest values: every other line has less than a fiftieth of the total."""

_OF_ANY_STALL, _STALLS = ("samples", "not_issued"), "stalls."
"""Measures that count samples of any stall: their lines wait for what their most frequent stall waits for."""

_SCOREBOARD, _BARRIER = "scoreboard", "barrier"
"""A stall with "scoreboard" in its name waits for the result of an earlier instruction; the stall "barrier" waits at one."""

LINE = ["id", "file", "line"]
"""Columns that identify a source line of a kernel."""

_LEAST_FRAC = 0.1
_N_AWAITED = 3
"""Awaited lines are kept if they have at least this share of the samples, and at most this many per line and stall."""


def measure_lines(reports: Sequence[RawReport], by_line: Mapping[str, ByLine]) -> pl.DataFrame:
    """Return LINES of the kernels whose instructions were read, by kernel and measure, largest value first.

    A line that was inlined in several places is one row; `callers` are those of the place with the largest value.
    """
    instructions = _with_codes(_instructions(reports), by_line)
    found = {name: _sum(each, instructions.columns) for name, each in by_line.items()}
    known = {name: total for name, total in found.items() if total is not None}
    measures = [total.alias(name) for name, total in known.items()]
    if not measures or not instructions.height:
        return pl.DataFrame(schema=LINES)
    least = {name: each.least for name, each in by_line.items()}
    sums = (
        instructions.group_by(*LINE, "text", "callers", maintain_order=True)
        .agg(measures)
        .unpivot(index=[*LINE, "text", "callers"], variable_name="measure")
        .filter(pl.col("value") > 0)
        .sort("value", descending=True, maintain_order=True)
    )
    return (
        sums.lazy()
        .group_by("measure", *LINE, "text", maintain_order=True)
        .agg(pl.col("callers").first(), pl.col("value").sum())
        .with_columns(pl.col("value").sum().over("id", "measure").alias("total"))
        .filter(pl.col("total") >= pl.col("measure").replace_strict(least), pl.col("file").is_not_null())
        .with_columns((pl.col("value") / pl.col("total")).alias("frac"))
        .sort("id", "measure", "value", descending=[False, False, True], maintain_order=True)
        .filter(pl.int_range(pl.len()).over("id", "measure") < _N_LINES)
        .join(_stalls(sums).lazy(), on=LINE, how="left", maintain_order="left")
        .with_columns(
            pl.when(pl.col("measure").is_in(_OF_ANY_STALL))
            .then("stall")
            .otherwise(pl.col("measure").str.strip_prefix(_STALLS))
            .alias("waits")
        )
        .join(_awaits(instructions, known).lazy(), on=[*LINE, "waits"], how="left", maintain_order="left")
        .pipe(conform, LINES)
        .collect()
    )


def _stalls(sums: pl.DataFrame) -> pl.DataFrame:
    """Return the most frequent stall reason of each line, not counting selected and not selected."""
    is_stall = pl.col("measure").str.starts_with(_STALLS)
    reason = pl.col("measure").str.strip_prefix(_STALLS)
    return (
        sums.filter(is_stall & ~reason.is_in(list(MEANINGFUL_STALLS_EXCEPT)))
        .group_by(*LINE, reason.alias("stall"), maintain_order=True)
        .agg(pl.col("value").sum())
        .sort("value", descending=True, maintain_order=True)
        .group_by(LINE, maintain_order=True)
        .agg(pl.col("stall").first())
    )


def _awaits(instructions: pl.DataFrame, totals: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Return what the warps stalled at each line wait for, per stall reason (column `waits`)."""
    samples = {name.removeprefix(_STALLS): total for name, total in totals.items() if name.startswith(_STALLS)}
    results = {name: total for name, total in samples.items() if _SCOREBOARD in name}
    at_barriers = instructions.with_columns(pl.col("barriers").alias("awaited"))
    found = awaited_lines(instructions, results)
    if _BARRIER in samples:
        found = pl.concat([found, awaited_lines(at_barriers, {_BARRIER: samples[_BARRIER]})], how="vertical_relaxed")
    return found.rename({"stall": "waits"})


def _instructions(reports: Sequence[RawReport]) -> pl.DataFrame:
    """Return the instructions of all reports, with their kernels' `id`."""
    parts, n_before = [], 0
    for report in reports:
        parts.append(report.instructions.select((pl.col("row") + n_before).alias("id"), pl.exclude("row")))
        n_before += report.workloads.height
    return pl.concat(parts, how="diagonal")


def _with_codes(instructions: pl.DataFrame, by_line: Mapping[str, ByLine]) -> pl.DataFrame:
    """Return the instructions with null codes (`ByLine.only`) as 0, except of kernels for which no code was collected at all."""
    coded = sorted({name for each in by_line.values() for name in each.only} & set(instructions.columns))
    is_asked = {name: pl.col(name).is_not_null().any().over("id") for name in coded}
    return instructions.with_columns(
        pl.when(is_asked[name]).then(pl.col(name).fill_null(0).cast(pl.Float64)).alias(name) for name in coded
    )


def _sum(measure: ByLine, columns: Sequence[str]) -> pl.Expr | None:
    """Return the sum of a measure over instructions, or None if its counters are missing."""
    known = {name: pl.col(name) for name in columns}
    values = [
        value for formula in measure.formulas if (value := formula.expression(known.get, frozenset())) is not None
    ]
    if not values or not measure.only.keys() <= known.keys():
        return None
    conditions = [pl.col(name).is_in(codes) for name, codes in measure.only.items()]
    return pl.coalesce(values).filter(*conditions).sum() if conditions else pl.coalesce(values).sum()


def awaited_lines(instructions: pl.DataFrame, samples: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Return `awaits` of LINES by id, file, line and stall: most samples first and, of equals, the nearest instruction first.

    A sample counts once for each line that it waits for: a warp continues only when the last result has arrived.

    Args:
        instructions: RAW_INSTRUCTIONS of all reports with counters and the kernels' `id`; `awaited` and `addressed_by` have the
            nearest first.
        samples: by stall, the sum of its samples over instructions.
    """
    waiting = instructions.lazy().filter(pl.col("file").is_not_null())
    of_line = waiting.group_by(LINE).agg(value.alias(stall) for stall, value in samples.items())
    by_instruction = waiting.filter(pl.col("awaited").is_not_null()).group_by(
        *LINE, "number", "awaited", maintain_order=True
    )
    place = pl.struct(pl.col("file"), pl.col("line"))
    loads = waiting.select("id", pl.col("number").alias("load"), place.alias("address_from"))
    places = (
        instructions.lazy()
        .select(
            "id",
            pl.col("number").alias("awaited"),
            place.alias("place"),
            pl.col("callers").alias("called"),
            pl.col("addressed_by").list.first().alias("load"),
        )
        .join(loads, on=["id", "load"], how="left", maintain_order="left")
    )
    return (
        by_instruction.agg(value.alias(stall) for stall, value in samples.items())
        .explode("awaited")
        .join(places, on=["id", "awaited"], maintain_order="left")
        .filter(pl.col("place").struct.field("file").is_not_null())
        .unique(["id", "number", "place"], keep="first", maintain_order=True)
        .pipe(_by_stall, samples, [*LINE, "place", "called", "address_from"])
        .group_by(*LINE, "stall", "place", maintain_order=True)
        .agg(pl.col("called").first(), pl.col("address_from").drop_nulls().first(), pl.col("n").sum())
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
    return pl.struct(
        place.field("file"),
        place.field("line"),
        pl.col("called").alias("callers"),
        pl.col("frac"),
        pl.col("address_from"),
    )
