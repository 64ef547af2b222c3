"""Work and roof traffic as the reports' roofline charts define them, for what the catalogue does not cover.

A chart names counters and how they form a roof or a point. On chips that the catalogue lists, the catalogue's values are used; on
other chips the charts' are, since counter names and instructions may have changed. The charts also fill in precisions and memory
levels for which the catalogue finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.enums import MemoryLevel, Precision
from ncuroof.ingest import ChartPair, ChartValue, EmbeddedChart, RawReport
from ncuroof.metrics.catalogue import Catalogue
from ncuroof.metrics.catalogue_types import Tensor
from ncuroof.metrics.long_tables import TRAFFIC_RATES, WORK_RATES, RateTable, stacked
from ncuroof.metrics.quantities import CounterTable, first_known
from ncuroof.metrics.tensor import MeasuredPath, tensor_path, work_by_precision
from ncuroof.metrics.work import with_flop

_SOURCE, _IS_LISTED = "source", "is_listed"
_LEVEL = re.compile(r"\b(DRAM|L2|L1)\b")
_VECTOR_PRECISION = {"Double": Precision.FP64, "Single": Precision.FP32, "Half": Precision.FP16}
_TENSOR_PARTS = re.compile(r"\b(Op|Src|Dst|Sparsity):(\S+)")


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A pair (roof or point) of a chart, with the indices of the reports that contain the chart (`sources`)."""

    chart: EmbeddedChart
    pair: ChartPair
    is_peak: bool
    sources: tuple[int, ...]

    @property
    def level(self) -> str:
        """The memory level of the pair's traffic; DRAM on charts that are not hierarchical."""
        found = _LEVEL.search(self.pair.label)
        return found[1].lower() if found else MemoryLevel.DRAM.value

    @property
    def vector_precision(self) -> str | None:
        """The precision of the pair's work; None on tensor-core charts."""
        texts = (self.pair.label, self.chart.title, self.chart.section)
        names = (precision.value for text in texts for word, precision in _VECTOR_PRECISION.items() if word in text)
        return next(names, None)

    @property
    def tensor_name(self) -> str | None:
        """The name that a `sm__ops_path_tensor_*` counter of the label's path would have; None if the label has no input type."""
        parts = {key: value.rstrip(")").replace(",", "_") for key, value in _TENSOR_PARTS.findall(self.pair.label)}
        if "Src" not in parts:
            return None
        words = [f"{key.lower()}_{parts[key]}" for key in ("Op", "Src", "Dst", "Sparsity") if key in parts]
        return "_".join(words)


def with_chart_values(
    work: pl.DataFrame, bandwidth: pl.DataFrame, table: CounterTable, reports: Sequence[RawReport], catalogue: Catalogue
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return WORK and BANDWIDTH with the rows that the reports' charts add or replace.

    Args:
        work: WORK by the catalogue.
        bandwidth: BANDWIDTH by the catalogue.
        table: counters of all kernels in base units, and `duration_ns`.
        reports: the reports with their charts, in the order of the table.
        catalogue: says which chips are listed, and how to read the names of tensor paths.
    """
    drawn = _with_counters(_drawn(reports), frozenset(table.frame.columns))
    if not drawn:
        return work, bandwidth
    sources = pl.concat([pl.repeat(index, report.workloads.height, eager=True) for index, report in enumerate(reports)])
    frame = table.frame.with_row_index("id").with_columns(
        sources.alias(_SOURCE), table.is_on(catalogue.capabilities).fill_null(value=True).alias(_IS_LISTED)
    )
    has_sparsity = table.capability() >= catalogue.tensor.sparse_since
    vector = _by_key(frame, drawn, "vector_precision", work, WORK_RATES)
    tensor = [each for each in drawn if each.tensor_name]
    is_tensor_needed = _is_needed(frame, tensor, work.filter(pl.col("precision").str.starts_with("tensor")))
    paths = _tensor_paths(frame, tensor, catalogue.tensor) if is_tensor_needed else ()
    tensor_rows = work_by_precision(frame, paths, has_sparsity)
    return (
        _merged(work, [*vector, tensor_rows], frame, WORK_RATES),
        _merged(bandwidth, _by_key(frame, drawn, "level", bandwidth, TRAFFIC_RATES), frame, TRAFFIC_RATES),
    )


def _drawn(reports: Sequence[RawReport]) -> list[_Drawn]:
    """Return the pairs of all charts, each with the reports that contain its chart."""
    sources: dict[EmbeddedChart, list[int]] = {}
    for index, report in enumerate(reports):
        for chart in report.charts:
            sources.setdefault(chart, []).append(index)
    return [
        _Drawn(chart, pair, is_peak, tuple(carriers))
        for chart, carriers in sources.items()
        for is_peak, pairs in ((True, chart.roofs), (False, chart.points))
        for pair in pairs
    ]


def _with_counters(drawn: Sequence[_Drawn], columns: Collection[str]) -> list[_Drawn]:
    """Return the pairs whose work or traffic the reports have counters for: a chart lists the counter names of every chip."""
    is_held: dict[int, bool] = {}
    for value in (value for each in drawn for value in (each.pair.work, each.pair.traffic)):
        if id(value) not in is_held:  # equal values are mostly one object: the reader shares them
            is_held[id(value)] = all(any(name in columns for name in alternatives) for alternatives in value.needed)
    return [each for each in drawn if is_held[id(each.pair.work)] or is_held[id(each.pair.traffic)]]


def _by_key(
    frame: pl.DataFrame, drawn: Sequence[_Drawn], attribute: str, ours: pl.DataFrame, rates: RateTable
) -> list[pl.DataFrame]:
    """Return the charts' rows of each precision, or level, that is needed (see `_is_needed`)."""
    return [
        _rows(frame, name, pairs, rates)
        for name, pairs in _grouped(drawn, attribute).items()
        if _is_needed(frame, pairs, ours.filter(pl.col(rates.key) == name))
    ]


def _grouped(drawn: Sequence[_Drawn], attribute: str) -> Mapping[str, list[_Drawn]]:
    groups: dict[str, list[_Drawn]] = {}
    for each in drawn:
        key = getattr(each, attribute)
        if key is not None:
            groups.setdefault(key, []).append(each)
    return groups


def _is_needed(frame: pl.DataFrame, drawn: Sequence[_Drawn], ours: pl.DataFrame) -> bool:
    """Return whether any kernel in a report with these charts is on an unlisted chip or has no row in `ours`."""
    if frame[_IS_LISTED].all() and ours["id"].n_unique() == frame.height:  # the usual case, checked cheaply
        return False
    carriers = sorted({source for each in drawn for source in each.sources})
    kernels = frame.filter(pl.col(_SOURCE).is_in(carriers)).select("id", _IS_LISTED)
    return not kernels[_IS_LISTED].all() or not kernels.join(ours, on="id", how="anti").is_empty()


def _rows(frame: pl.DataFrame, name: str, pairs: Sequence[_Drawn], rates: RateTable) -> pl.DataFrame:
    """Return the achieved rate and peak of one precision or level; no row without an achieved rate, null without a peak."""
    achieved, peak, definition = _of_pairs(frame, pairs, rates)
    rows = frame.select(
        "id",
        achieved.alias(rates.achieved),
        pl.when(peak > 0).then(peak).alias(rates.peak),
        pl.lit(definition).alias("definition"),
        pl.lit(name).alias(rates.key),
        pl.lit(value=True).alias("reliable"),
    )
    return rows.filter(pl.col(rates.achieved).is_not_null())


def _tensor_paths(frame: pl.DataFrame, drawn: Sequence[_Drawn], tensor: Tensor) -> Iterator[MeasuredPath]:
    for name, pairs in _grouped(drawn, "tensor_name").items():
        rate, peak, counters = _of_pairs(frame, pairs, WORK_RATES)
        yield MeasuredPath(tensor_path(name, tensor), rate, peak, counters or name)


def _of_pairs(frame: pl.DataFrame, pairs: Sequence[_Drawn], rates: RateTable) -> tuple[pl.Expr, pl.Expr, str]:
    """Return the achieved rate and the peak that the pairs give, and the definition of the rate; "" where no pair is a point."""
    achieved, peak = (
        pl.coalesce(
            pl.lit(None, pl.Float64), *(_value(frame, each, rates) for each in pairs if each.is_peak is is_peak)
        )
        for is_peak in (False, True)
    )
    definition = next((_counters(frame, _side(each.pair, rates)) for each in pairs if not each.is_peak), "")
    return achieved, peak, definition


def _side(pair: ChartPair, rates: RateTable) -> ChartValue:
    """Return what of a pair goes to a table: its work or its traffic."""
    return pair.work if rates is WORK_RATES else pair.traffic


def _value(frame: pl.DataFrame, drawn: _Drawn, rates: RateTable) -> pl.Expr:
    """Return a chart's value for the kernels of the reports that contain it; null elsewhere and where a counter is missing."""
    value = _side(drawn.pair, rates)
    total: pl.Expr = sum((_first(frame, each) for each in value.counters[1:]), _first(frame, value.counters[0]))
    if value.clock is not None:
        total = total * _first(frame, value.clock)
    return pl.when(pl.col(_SOURCE).is_in(drawn.sources)).then(total)


def _first(frame: pl.DataFrame, alternatives: Sequence[str]) -> pl.Expr:
    """Return, per kernel, the first of several counters that it has."""
    return first_known(*(pl.col(name) for name in alternatives if name in frame.columns))


def _counters(frame: pl.DataFrame, value: ChartValue) -> str:
    """Return the definition of a value: of each counter's alternative names, the first that the reports have."""
    names = (next((name for name in each if name in frame.columns), each[0]) for each in value.counters)
    return "chart of the report: " + " + ".join(names)


def _merged(ours: pl.DataFrame, parts: Sequence[pl.DataFrame], frame: pl.DataFrame, rates: RateTable) -> pl.DataFrame:
    """Return the catalogue's rows (`ours`), with the charts' rows where it has none, or instead of them on unlisted chips."""
    theirs = stacked(parts, rates)
    if theirs.is_empty():
        return ours
    if rates is WORK_RATES:
        theirs = with_flop(theirs, frame)
    theirs = theirs.with_columns(pl.lit(value=True).alias("is_from_chart"))
    unlisted = frame.filter(~pl.col(_IS_LISTED)).select("id")
    kept = ours.join(
        theirs.join(unlisted, on="id", how="semi"), on=["id", rates.key], how="anti", maintain_order="left"
    )
    added = theirs.join(kept, on=["id", rates.key], how="anti")
    return pl.concat([kept, added]).sort("id", maintain_order=True)
