"""The reader that uses NVIDIA's own `ncu_report` module, the reference for every value.

The module opens any file, even random bytes, and then reports zero ranges, so the caller checks the framing first. None of the
module's objects leave this file: names, numbers and texts are copied.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from ncuroof.errors import MissingExtraError, ReportAccessError
from ncuroof.ingest.counter_choice import CounterChoice
from ncuroof.ingest.file_content import readable
from ncuroof.ingest.raw_report import (
    GREATEST_VALUE,
    LEAST_VALUE,
    RAW_RULES,
    RAW_WORKLOADS,
    RULE_SCOPES,
    CounterSelection,
    ResultTables,
    instances_text,
    is_measured,
    telling,
    without_columns,
)

_RULE_TYPES = ("none", "ok", "optimization", "warning", "error")
"""By the module's own numbering; in the file a warning is 2, an error 3 and an optimization 4."""

_STORED_UNIT = {"s": "ns"}
"""Corrections of the module's units. The file stores no units, the module looks them up; after it has opened a damaged report it
gives "s" for times until the process ends, although the stored values are nanoseconds."""

_PERCENT_SUFFIX = ".pct"


@dataclass(slots=True)
class _Columns:
    """Cells by column, filled row by row; rows without a value in a column are null."""

    cells: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def put(self, name: str, row: int, value: object) -> None:
        column = self.cells[name]
        if len(column) < row:
            column.extend([None] * (row - len(column)))
        column.append(value)

    def frame(self, n_rows: int, dtype: type[pl.DataType]) -> pl.DataFrame:
        if not self.cells:
            return without_columns(n_rows)
        return pl.DataFrame(
            [
                pl.Series(name, cells + [None] * (n_rows - len(cells)), dtype=dtype, strict=False)
                for name, cells in self.cells.items()
            ]
        )


def read_tables(path: Path, selection: CounterSelection | None) -> ResultTables:
    """Return the workloads of the report at `path` with the selected counters (None for all of them).

    Raises:
        ReportFormatError: the report lists more counters of a kind than any GPU has.
        ReportAccessError: the file disappeared in the meantime.
        MissingExtraError: the module is not installed.
    """
    with _quiet_standard_error():
        ncu_report = _module()
        try:
            context = ncu_report.load_report(str(path))
        except OSError as error:
            raise ReportAccessError(f"{path.name}: cannot be read: {error}", hint="check the path") from error
        # One at a time: the module decodes a workload on request and frees it when the last reference is gone.
        actions = (
            action
            for profiled in (context.range_by_idx(i) for i in range(context.num_ranges()))
            for action in (profiled.action_by_idx(index) for index in range(profiled.num_actions()))
            if action.name() is not None  # a result whose message is damaged has no name and no metrics
        )
        return _Collector(ncu_report, path, selection).collect(actions)


def _module() -> Any:
    """Return NVIDIA's module, imported late because it is large.

    Raises:
        MissingExtraError: it is not installed, or its library does not load on this machine.
    """
    try:
        import ncu_report  # noqa: PLC0415  only this reader needs it
    except ImportError as error:
        raise MissingExtraError(
            f"NVIDIA's module ncu_report cannot be imported: {error}",
            hint="install it with pip install 'ncuroof[nvidia]', or use --reader native",
        ) from error
    return ncu_report


@contextlib.contextmanager
def _quiet_standard_error() -> Iterator[None]:
    """Redirect file descriptor 2 to the null device: the module's C++ library logs damaged messages there."""
    try:
        saved = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 2)
        os.close(sink)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


class _Collector:
    """Copies workloads out of the module's objects, row by row."""

    def __init__(self, module: Any, path: Path, selection: CounterSelection | None) -> None:
        self._choice = CounterChoice(selection, path.name)
        self._counters = _Columns()
        self._texts = _Columns()
        self._units: dict[str, str] = {}
        self._sections: dict[str, None] = {}
        self._wanted_by_stored: dict[tuple[object, ...], list[str]] = {}
        self._text_kind = module.IMetric.ValueKind_STRING
        self._number_kinds = frozenset(
            getattr(module.IMetric, f"ValueKind_{name}") for name in ("DOUBLE", "FLOAT", "UINT32", "UINT64")
        )
        self._workload_names = {
            getattr(module.IAction, f"WorkloadType_{name}", None): name.lower()
            for name in ("KERNEL", "RANGE", "GRAPH", "CMDLIST")
        }
        self._demangled, self._mangled = module.IAction.NameBase_DEMANGLED, module.IAction.NameBase_MANGLED

    def collect(self, actions: Iterable[Any]) -> ResultTables:
        workloads: list[tuple[object, ...]] = []
        rules: list[tuple[object, ...]] = []
        for row, action in enumerate(actions):
            workloads.append(self._workload(row, action))
            rules += _rules(row, action)
        n_rows = len(workloads)
        return ResultTables(
            workloads=pl.DataFrame(workloads, schema=RAW_WORKLOADS, orient="row"),
            counters=self._counters.frame(n_rows, pl.Float64),
            units=self._units,
            texts=self._texts.frame(n_rows, pl.String),
            rules=pl.DataFrame(rules, schema=RAW_RULES, orient="row"),
            sections=tuple(self._sections),
        )

    def _workload(self, row: int, action: Any) -> tuple[object, ...]:
        n_collected, n_not_finite = self._read_metrics(row, action)
        for section in action.sections():
            self._sections[_text(section.identifier()) or ""] = None
        workload = self._workload_names.get(action.workload_type(), "kernel")
        return (
            _text(action.name()),
            _text(action.name(self._demangled)),
            (_text(action.name(self._mangled)) or None) if workload == "kernel" else None,
            workload,
            _nvtx(action.nvtx_state()),
            n_collected,
            n_not_finite,
        )

    def _read_metrics(self, row: int, action: Any) -> tuple[int, int]:
        n_collected = n_not_finite = n_zero = 0
        for name in self._wanted(action):
            metric = action.metric_by_name(name)
            if metric is None:
                continue
            prefixes = self._choice.instances_of(name)
            value = self._value(metric) if prefixes is None else _instances(metric, prefixes)
            if isinstance(value, str):
                self._texts.put(name, row, _text(value))
            elif value is not None:
                is_number = _is_possible(value)
                if is_measured(name):
                    n_collected += 1
                    n_not_finite += not is_number
                    n_zero += value == 0
                self._counters.put(name, row, value if is_number else None)
                if name not in self._units:
                    self._units[name] = _unit(name, _text(metric.unit()) or "")
        counts = (pl.Series([count], dtype=pl.UInt32) for count in (n_collected, n_not_finite, n_zero))
        return int(telling(*counts)[0]), n_not_finite

    def _wanted(self, action: Any) -> list[str]:
        """Return the names of the counters to read, each once; those that are not UTF-8 are left out, as they cannot be looked up.

        Nearly every workload of a report stores the same counters, so the choice is made once per distinct set of them.
        """
        listings = self._choice.listings
        members = [self._value(metric) for name in listings if (metric := action.metric_by_name(name)) is not None]
        stored = action.metric_names()
        key = (stored, *members)
        if key not in self._wanted_by_stored:
            names = [name for name in dict.fromkeys(stored) if _text(name) == name]
            self._wanted_by_stored[key] = self._choice.of(names, members)
        return self._wanted_by_stored[key]

    def _value(self, metric: Any) -> float | str | None:
        """Return a metric's own value; None if it has only instances, or text that is not UTF-8.

        The same as the module's `value()`, which takes three times as long.
        """
        kind = metric.kind()
        try:
            if kind in self._number_kinds:
                value = float(metric.as_double())
                return value if value or metric.has_value() else None
            text: str | None = metric.as_string() if kind == self._text_kind else None
        except (UnicodeDecodeError, SystemError, TypeError):
            return None
        return text


def _instances(metric: Any, prefixes: tuple[str, ...]) -> str:
    """Return the values of a counter's instances whose names begin with one of `prefixes`, as text (`instances_text`)."""
    if not metric.has_correlation_ids():
        return ""
    names = metric.correlation_ids()
    named = ((_text(names.as_string(index)) or "", index) for index in range(metric.num_instances()))
    return instances_text((name, metric.as_double(index)) for name, index in named if name.startswith(prefixes))


def _is_possible(value: float) -> bool:
    """Return whether a counter can have this value: not NaN, not infinite, and of a plausible magnitude."""
    return value == 0 or LEAST_VALUE <= abs(value) <= GREATEST_VALUE


def _unit(name: str, unit: str) -> str:
    """Return the unit of the stored value.

    Args:
        name: the counter's name.
        unit: the unit that the module gives; on two chips it gives sectors for the success rate of compression, a percentage.
    """
    return "%" if unit and name.endswith(_PERCENT_SUFFIX) else _STORED_UNIT.get(unit, unit)


def _text(value: str | None) -> str | None:
    """Return a string of the module with U+FFFD in place of the lone surrogates that it returns for bytes that are not UTF-8."""
    return value if value is None or value.isascii() else readable(value)


def _nvtx(state: Any) -> list[str | None]:
    """Return the names of the open NVTX ranges of all domains: push/pop ranges outermost first, then start/end ranges."""
    if state is None:
        return []
    domains = [state.domain_by_id(number) for number in state.domains()]
    pushed = [_text(name) for domain in domains for name in domain.push_pop_ranges()]
    return pushed + [_text(name) for domain in domains for name in domain.start_end_ranges()]


def _rules(row: int, action: Any) -> Iterator[tuple[object, ...]]:
    for result in action.rule_results_as_dicts():
        message = result.get("rule_message") or {}
        speedup = result.get("speedup_estimation") or {}
        kind = message.get("type", 0)
        share = speedup.get("speedup")
        yield (
            row,
            _text(result.get("rule_identifier")),
            _text(result.get("section_identifier")),
            _text(message.get("title")),
            _text(message.get("message")),
            _RULE_TYPES[kind] if 0 <= kind < len(_RULE_TYPES) else "none",
            share / 100 if share is not None and math.isfinite(share) else None,
            RULE_SCOPES.get(speedup.get("type", 0)),
        )
