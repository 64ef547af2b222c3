"""What is told of lines of the source: sums over the instructions that come from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ncuroof.ingest import RawReport
from ncuroof.metrics.entries import ByLine
from ncuroof.metrics.quantities import MEANINGFUL_STALLS_EXCEPT, largest
from ncuroof.tables import LINES, conform

_N_LINES = 10
"""Lines of a measure that are kept, those with most of it."""

_KEY = ["id", "file", "line", "text", "caller_file", "caller_line"]
_STALLS = "stalls."


def measure_lines(reports: Sequence[RawReport], by_line: Mapping[str, ByLine]) -> pl.DataFrame:
    """Return LINES of the kernels whose instructions were read, by kernel and measure, most of it first."""
    instructions = _instructions(reports)
    measures = {name: sums for name, each in by_line.items() if (sums := _sum(each, instructions.columns)) is not None}
    if not measures or not instructions.height:
        return pl.DataFrame(schema=LINES)
    lines = instructions.group_by(_KEY, maintain_order=True).agg(sums.alias(name) for name, sums in measures.items())
    least = {name: by_line[name].least for name in measures}
    stalls = [
        (pl.col(name), reason)
        for name in measures
        if name.startswith(_STALLS) and (reason := name.removeprefix(_STALLS)) not in MEANINGFUL_STALLS_EXCEPT
    ]
    return (
        lines.lazy()
        .with_columns(largest(stalls).alias("stall"))
        .unpivot(list(measures), index=[*_KEY, "stall"], variable_name="measure")
        .filter(pl.col("value") > 0)
        .with_columns(pl.col("value").sum().over("id", "measure").alias("total"))
        .filter(pl.col("total") >= pl.col("measure").replace_strict(least), pl.col("file").is_not_null())
        .with_columns((pl.col("value") / pl.col("total")).alias("frac"))
        .sort("id", "measure", "value", descending=[False, False, True], maintain_order=True)
        .filter(pl.int_range(pl.len()).over("id", "measure") < _N_LINES)
        .pipe(conform, LINES)
        .collect()
    )


def _instructions(reports: Sequence[RawReport]) -> pl.DataFrame:
    """Return the instructions of all reports, with the `id` of their kernels."""
    parts, n_before = [], 0
    for report in reports:
        parts.append(report.instructions.select((pl.col("row") + n_before).alias("id"), pl.exclude("row")))
        n_before += report.workloads.height
    return pl.concat(parts, how="diagonal")


def _sum(measure: ByLine, columns: Sequence[str]) -> pl.Expr | None:
    """Return the sum of a measure over instructions, or None where its counters are not there."""
    known = {name: pl.col(name) for name in columns}
    values = [
        value for formula in measure.formulas if (value := formula.expression(known.get, frozenset())) is not None
    ]
    if not values or not measure.only.keys() <= known.keys():
        return None
    conditions = [
        pl.col(name).is_in(codes) if codes else pl.col(name).is_null() for name, codes in measure.only.items()
    ]
    return pl.coalesce(values).filter(*conditions).sum() if conditions else pl.coalesce(values).sum()
