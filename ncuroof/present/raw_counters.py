"""The counters that a page's numbers come from, as they were recorded, in parts that are unpacked on demand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from ncuroof.ingest.raw_report import RawReport

MOST_LAUNCHES = 1000
"""Of more launches the counters would be most of the page; the report itself holds them."""


def counter_parts(reports: Sequence[RawReport], launches_per_part: int) -> Iterable[dict[str, Any]]:
    """Yield the counters of the launches of all reports in their order, so many launches at a time.

    Returns:
        Each with `names` and `units` of the counters that any of its launches has, and per launch its `values` in the same
        order, None where not collected. Nothing at all for more than `MOST_LAUNCHES` launches.
    """
    if sum(report.counters.height for report in reports) > MOST_LAUNCHES:
        return
    rows = (row for report in reports for row in _rows(report))
    while part := list(islice(rows, launches_per_part)):
        units = {name: unit for row in part for name, (_, unit) in row.items()}
        names = sorted(units)
        yield {
            "names": names,
            "units": [units[name] for name in names],
            "values": [[row[name][0] if name in row else None for name in names] for row in part],
        }


def _rows(report: RawReport) -> Iterable[dict[str, tuple[float, str]]]:
    """Yield value and unit of the counters that a launch has, by name."""
    for row in report.counters.iter_rows(named=True):
        yield {name: (value, report.units.get(name, "")) for name, value in row.items() if value is not None}
