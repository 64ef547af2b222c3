"""Reads series over a kernel's time: the counters that ncu sampled while the kernel ran (PM sampling).

Nsight Compute 2024.1 and later stores them as counters named `pmsampling:COUNTER`, and on chips whose sampling counts fixed
groups (7.5, 8.6 to 8.9) `UNIT.TriageX.COUNTER`. Each has a value per sample, and with it the time in nanoseconds at which it was
taken. Series of one pass begin at the same time; each pass runs the kernel again.

Sizes in a file are not trusted: a series is looked at only if its encoding is short enough for any recorded one, and the series of
a report are limited together, so that no file makes this allocate without a limit.

Source: Nsight Compute Customization Guide, "Report File Format": ProfileMetricResult's values by correlation id; Nsight Compute
documentation, "PM Sampling".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import nan
from typing import Any

import polars as pl

from ncuroof.ingest.file_content import Content, part
from ncuroof.ingest.framing import Framing
from ncuroof.ingest.native.reader import string_table
from ncuroof.ingest.native.schema import messages
from ncuroof.ingest.native.values import name_id
from ncuroof.ingest.raw_report import GREATEST_VALUE, RAW_SAMPLES
from ncuroof.ingest.wire import WireError

_SAMPLED = re.compile(r"(?:pmsampling:|(?:\w+\.)?Triage\w*\.)(?=\w)")
_MARKS = (b"pmsampling:", b"Triage")

_MESSAGE_BY_KIND = {"kernel": "Kernel", "range": "Range", "cmdlist": "CommandList", "graph": "Graph"}

_MOST_WORKLOADS = 200
"""Workloads whose series are read, the longest first: each takes about as long as a kernel without series takes altogether."""

_MOST_BYTES_OF_ONE = 1 << 20
"""Encoded bytes of one series; one sample takes 24. ncu fits its interval to the kernel, so that recorded series have 2 000 samples
at most."""

_MOST_SAMPLES = 1 << 21
"""Samples of a report's series together, 32 MB as a table; further series are not read. Seventeen recorded kernels have 10 000."""

_LEAST_SAMPLES = 2

_LONGEST_NS = 1 << 42
"""More than an hour from a series' first sample to its last: its times are damaged."""

_LATEST_NS = (1 << 63) - 1
"""The largest time that a table holds; times count from 1970 or from when the machine started."""

_Row = tuple[int, str, list[int], list[float]]


def read_samples(content: Content, framing: Framing, rows: Iterable[int]) -> pl.DataFrame:
    """Return the series of a report's workloads as RAW_SAMPLES.

    Args:
        content: the report's bytes.
        framing: its blocks.
        rows: workload rows, the most important first; series of the first ones are read.

    Raises:
        ReportAccessError: the file was truncated in the meantime.
    """
    found: list[_Row] = []
    n_samples = 0
    if name_by_id := _sampled_names(framing):
        results = list(framing.results)
        for row in islice(rows, _MOST_WORKLOADS):
            for series in _series_of(*results[row], content, name_by_id):
                n_samples += len(series[2])
                if n_samples > _MOST_SAMPLES:
                    break
                found.append((row, *series))
            if n_samples > _MOST_SAMPLES:
                break
    return pl.DataFrame(found, schema=RAW_SAMPLES, orient="row").sort("row", maintain_order=True)


def sampled_counter(name: str) -> str:
    """Return the name of a sampled counter without the prefix of its group."""
    return _SAMPLED.sub("", name, count=1)


def _sampled_names(framing: Framing) -> dict[int, str]:
    """Return the names of sampled counters by their index in the string table; empty if the table is malformed."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    if not any(mark in block.header for block in framing.blocks for mark in _MARKS):
        return {}  # most reports; their string table is not decoded again
    try:
        names = string_table(framing)
    except DecodeError:
        return {}
    return {index: name for index, name in enumerate(names) if name is not None and _SAMPLED.match(name)}


def _series_of(
    kind: str, span: tuple[int, int], content: Content, name_by_id: Mapping[int, str]
) -> Iterator[tuple[str, list[int], list[float]]]:
    """Yield name, times in ns and values of each series of a result; nothing if the result is malformed."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    try:
        metrics = messages()[_MESSAGE_BY_KIND[kind]].FromString(bytes(part(content, *span))).metrics
    except DecodeError:
        return
    for metric in metrics:
        try:
            name = name_by_id.get(name_id(metric, len(metric))[0])
            if name is None or len(metric) > _MOST_BYTES_OF_ONE:
                continue
            elements = messages()["Instances"].FromString(metric).elements
        except (DecodeError, WireError):
            continue
        if len(elements) >= _LEAST_SAMPLES and (series := _sound(elements)) is not None:
            yield name, *series


def _sound(elements: Sequence[Any]) -> tuple[list[int], list[float]] | None:
    """Return times and values in the order of time, without impossible values; None if the times are invalid.

    A ratio of a sample in which nothing was counted, such as a hit rate, can be NaN.
    """
    value_by_time = {each.name.long: _number(each.value) for each in elements}
    sound = sorted((time, value) for time, value in value_by_time.items() if time > 0 and 0 <= value <= GREATEST_VALUE)
    if len(sound) < _LEAST_SAMPLES or sound[-1][0] - sound[0][0] > _LONGEST_NS or sound[-1][0] > _LATEST_NS:
        return None
    times, values = zip(*sound, strict=True)
    return list(times), list(values)


def _number(value: Any) -> float:
    """Return the number of a sample; NaN if it has none."""
    if value.HasField("double"):
        return float(value.double)
    return next((float(getattr(value, kind)) for kind in ("long", "short", "single") if value.HasField(kind)), nan)
