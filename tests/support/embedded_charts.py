"""Evaluates the roofline charts embedded in a report: what Nsight Compute itself would draw, from its own definitions.

ncuroof's catalogue is not used: names and arithmetic come from the file (ProfileResult.Sections), values from `ncu_report`.
Source: Nsight Compute Customization Guide, "Report File Format"; RooflineChart, RooflineValue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ncuroof.ingest import wire
from ncuroof.ingest.framing import entries, walk

_SECTIONS, _SECTION_ID, _SECTION_BODY, _BODY_ITEMS, _ITEM_CHART = 17, 1, 5, 1, 6
_ITEM_HORIZONTAL, _HORIZONTAL_ITEMS = 5, 1
_CHART_ROOFS, _CHART_POINTS = 4, 5
_PAIR_WORK, _PAIR_TRAFFIC = 1, 2
_VALUE_METRIC, _VALUE_PER_CYCLE = 2, 3
_PER_CYCLE_METRICS, _PER_CYCLE_CLOCK = 1, 2
_METRIC_NAME, _METRIC_OPTIONS, _OPTION_NAME = 1, 7, 1


@dataclass(frozen=True)
class ChartValue:
    """One number of a chart: the counters it was computed from, and its value."""

    section: str
    kind: str
    counters: tuple[str, ...]
    value: float


def chart_values(path: Path, values_by_row: list[Mapping[str, float]]) -> Iterator[tuple[int, ChartValue]]:
    """Yield `(kernel's row, number)` for every peak and achieved value of every chart in a report.

    Args:
        path: path of a report that contains only kernels.
        values_by_row: counters of each kernel, from NVIDIA's module.
    """
    for row, result in enumerate(_kernel_results(path)):
        for section in _messages(result, _SECTIONS):
            identifier = _text(section, _SECTION_ID)
            for body in _messages(section, _SECTION_BODY):
                for chart in _charts(body, _BODY_ITEMS):
                    for kind, counters, value in _numbers(chart, values_by_row[row]):
                        yield row, ChartValue(identifier, kind, counters, value)


def _kernel_results(path: Path) -> Iterator[memoryview]:
    content = path.read_bytes()
    for block in walk(content).blocks:
        for kind, entry in zip(block.kinds, entries(content, block), strict=False):  # newer kinds may follow
            if kind == "kernel":
                yield entry


def _charts(container: memoryview, items: int) -> Iterator[memoryview]:
    for item in _messages(container, items):
        yield from _messages(item, _ITEM_CHART)
        for horizontal in _messages(item, _ITEM_HORIZONTAL):
            yield from _charts(horizontal, _HORIZONTAL_ITEMS)


def _numbers(chart: memoryview, values: Mapping[str, float]) -> Iterator[tuple[str, tuple[str, ...], float]]:
    for kind, field in (("peak", _CHART_ROOFS), ("achieved", _CHART_POINTS)):
        for pair in _messages(chart, field):
            for side in (_PAIR_WORK, _PAIR_TRAFFIC):
                for encoded in _messages(pair, side):
                    number = _evaluate(encoded, values)
                    if number is not None:
                        yield kind, *number


def _evaluate(encoded: memoryview, values: Mapping[str, float]) -> tuple[tuple[str, ...], float] | None:
    for metric in _messages(encoded, _VALUE_METRIC):
        name = _present(metric, values)
        return None if name is None else ((name,), values[name])
    for expression in _messages(encoded, _VALUE_PER_CYCLE):
        names = [_present(metric, values) for metric in _messages(expression, _PER_CYCLE_METRICS)]
        clocks = [_present(metric, values) for metric in _messages(expression, _PER_CYCLE_CLOCK)]
        if None in names or None in clocks or not clocks:
            return None
        return tuple(names), sum(values[name] for name in names) * values[clocks[0]]
    return None


def _present(metric: memoryview, values: Mapping[str, float]) -> str | None:
    """Return the name for which the report has a value: the metric's own or that of its alternative for this chip."""
    names = [_text(option, _OPTION_NAME) for option in _messages(metric, _METRIC_OPTIONS)]
    names.append(_text(metric, _METRIC_NAME))
    return next((name for name in names if values.get(name) is not None), None)


def _messages(message: memoryview, field: int) -> Iterator[memoryview]:
    for number, _, value in wire.fields(message):
        if number == field and not isinstance(value, int):
            yield value


def _text(message: memoryview, field: int) -> str:
    return next((bytes(value).decode() for value in _messages(message, field)), "")
