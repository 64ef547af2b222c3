"""Reads the definitions of the roofline charts that a report embeds, as Nsight Compute would draw them.

Every result contains the sections that were collected, including their charts: which counters define each roof and each point, and
how. The definitions come from the Nsight Compute that wrote the report, so they also fit chips that are newer than this program.

Source: Nsight Compute Customization Guide, "Report File Format" and "Sections": ProfilerSection, RooflineChart, RooflineValue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from ncuroof.ingest import wire
from ncuroof.ingest.file_content import Content, Part, part
from ncuroof.ingest.framing import Framing

# Field numbers, by message.
_KERNEL_SECTIONS, _OTHER_SECTIONS = 17, 7
_SECTION_ID, _SECTION_BODY, _BODY_ITEMS = 1, 5, 1
_ITEM_HORIZONTAL, _ITEM_CHART, _HORIZONTAL_ITEMS = 5, 6, 1
_CHART_TITLE, _CHART_ROOFS, _CHART_POINTS = 1, 4, 5
_PAIR_WORK, _PAIR_TRAFFIC, _PAIR_OPTIONS, _OPTIONS_LABEL = 1, 2, 3, 1
_VALUE_METRIC, _VALUE_PER_CYCLE = 2, 3
_PER_CYCLE_METRICS, _PER_CYCLE_CLOCK = 1, 2
_METRIC_NAME, _METRIC_ALTERNATIVES, _ALTERNATIVE_NAME = 1, 7, 1

_N_RESULTS_TRIED = 3
"""All kernels of a run have the same sections, but collection of the first ones may have failed before these were written."""

_MAX_NESTING = 8
_MAX_COUNTERS = 4096
"""All charts of Nsight Compute 2025 together name about 400; the limit keeps a hostile file from inflating the tables."""

Alternatives = tuple[str, ...]
"""Names of one counter on different chips; the first one that a report contains is used."""


@dataclass(frozen=True, slots=True)
class ChartValue:
    """A number of a chart: the sum of `counters`, times `clock` if they are per cycle."""

    counters: tuple[Alternatives, ...]
    clock: Alternatives | None

    @property
    def needed(self) -> tuple[Alternatives, ...]:
        """The alternatives of every counter that the value reads."""
        return (*self.counters, *((self.clock,) if self.clock else ()))


@dataclass(frozen=True, slots=True)
class ChartPair:
    """A roof (peak work and traffic) or a point (achieved work and traffic), with its label."""

    label: str
    work: ChartValue
    traffic: ChartValue


@dataclass(frozen=True, slots=True)
class EmbeddedChart:
    """A roofline chart of a report.

    Attributes:
        section: identifier of the section that the chart belongs to.
        title: the chart's title in Nsight Compute.
        roofs: peaks.
        points: achieved values.
    """

    section: str
    title: str
    roofs: tuple[ChartPair, ...]
    points: tuple[ChartPair, ...]

    def names(self) -> frozenset[str]:
        """Return every counter that the chart may read."""
        values = (value for pair in (*self.roofs, *self.points) for value in (pair.work, pair.traffic))
        return frozenset(name for value in values for alternatives in value.needed for name in alternatives)


def read_charts(content: Content, framing: Framing) -> tuple[EmbeddedChart, ...]:
    """Return the roofline charts of the first workload that has any, among the first few; empty if there are none.

    Workloads whose sections are malformed are skipped.
    """
    for result, sections in islice(_results(content, framing), _N_RESULTS_TRIED):
        try:
            charts = tuple(chart for section in _messages(result, sections) for chart in _of_section(section))
        except (wire.WireError, UnicodeDecodeError):
            continue
        if charts:
            distinct = tuple(dict.fromkeys(charts))
            return distinct if len(counters_of(distinct)) <= _MAX_COUNTERS else ()
    return ()


def _results(content: Content, framing: Framing) -> Iterator[tuple[Part, int]]:
    """Yield each workload's encoded message, and the number of the field that holds its sections."""
    for kind, span in framing.results:
        yield part(content, *span), _KERNEL_SECTIONS if kind == "kernel" else _OTHER_SECTIONS


def _of_section(section: memoryview) -> Iterator[EmbeddedChart]:
    identifier = _text(section, _SECTION_ID)
    for body in _messages(section, _SECTION_BODY):
        for chart in _charts(body, _BODY_ITEMS, _MAX_NESTING):
            roofs, points = (tuple(_pairs(chart, field)) for field in (_CHART_ROOFS, _CHART_POINTS))
            yield EmbeddedChart(identifier, _text(chart, _CHART_TITLE), roofs, points)


def _charts(container: memoryview, items: int, depth: int) -> Iterator[memoryview]:
    for item in _messages(container, items):
        yield from _messages(item, _ITEM_CHART)
        if depth:
            for horizontal in _messages(item, _ITEM_HORIZONTAL):
                yield from _charts(horizontal, _HORIZONTAL_ITEMS, depth - 1)


def _pairs(chart: memoryview, field: int) -> Iterator[ChartPair]:
    for pair in _messages(chart, field):
        parts: dict[int, memoryview] = {}
        for number, wire_type, value in wire.fields(pair):
            if wire_type == wire.LENGTH and not isinstance(value, int):
                parts.setdefault(number, value)
        work, traffic = (_value(bytes(parts.get(side, b""))) for side in (_PAIR_WORK, _PAIR_TRAFFIC))
        if work is not None and traffic is not None:
            yield ChartPair(_text(parts.get(_PAIR_OPTIONS, memoryview(b"")), _OPTIONS_LABEL), work, traffic)


@lru_cache(maxsize=1024)
def _value(encoded: bytes) -> ChartValue | None:
    """Return the decoded value; None for a constant. Cached: a report repeats the same few hundred values thousands of times."""
    for metric in _messages(encoded, _VALUE_METRIC):
        return ChartValue((_alternatives(metric),), None)
    for expression in _messages(encoded, _VALUE_PER_CYCLE):
        counters = tuple(map(_alternatives, _messages(expression, _PER_CYCLE_METRICS)))
        clock = next(map(_alternatives, _messages(expression, _PER_CYCLE_CLOCK)), None)
        return ChartValue(counters, clock) if counters and clock else None
    return None


def _alternatives(metric: memoryview) -> Alternatives:
    names = [_text(option, _ALTERNATIVE_NAME) for option in _messages(metric, _METRIC_ALTERNATIVES)]
    return tuple(dict.fromkeys([*names, _text(metric, _METRIC_NAME)]))


def _messages(message: wire.Bytes, field: int) -> Iterator[memoryview]:
    for number, wire_type, value in wire.fields(message):
        if number == field and wire_type == wire.LENGTH and not isinstance(value, int):
            yield value


def _text(message: wire.Bytes, field: int) -> str:
    return next((wire.as_text(value) for value in _messages(message, field)), "")


def counters_of(charts: Iterable[EmbeddedChart]) -> frozenset[str]:
    """Return every counter that any of the charts may read."""
    return frozenset().union(*(chart.names() for chart in charts))
