"""The recorded counters of a page's launches, in parts that are unpacked on demand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from ncuroof.ingest.raw_report import RawReport
from ncuroof.present.page.data import DETAILS_PER_PART

_SEPARATOR = "\t"
"""Between a counter's name and its unit, in the name of a column."""

MOST_LAUNCHES = 1000
"""Most launches for which the page has counters; with more, they would make up most of it, and the report has them anyway."""


def counter_parts(reports: Sequence[RawReport], ids: Sequence[int]) -> Iterable[dict[str, Any]]:
    """Yield the counters of launches, `DETAILS_PER_PART` at a time.

    Args:
        reports: the reports of an analysis.
        ids: of the launches, which number those of all reports.

    Yields:
        For each part, `names` and `units` of the counters that any of its launches has, and `values` per launch in the same order,
        None where not collected. Yields nothing for more than `MOST_LAUNCHES` launches.
    """
    if not 0 < len(ids) <= MOST_LAUNCHES or not any(report.counters.height for report in reports):
        return
    counters = pl.concat([_by_name_and_unit(report) for report in reports], how="diagonal")[list(ids)]
    for first in range(0, len(ids), DETAILS_PER_PART):
        part = counters.slice(first, DETAILS_PER_PART)
        columns = sorted(column.name for column in part if column.null_count() < part.height)
        pairs = [column.split(_SEPARATOR, 1) for column in columns]
        yield {
            "names": [name for name, _ in pairs],
            "units": [unit for _, unit in pairs],
            "values": [list(row) for row in part.select(columns).rows()] if columns else [[]] * part.height,
        }


def _by_name_and_unit(report: RawReport) -> pl.DataFrame:
    """Return a report's counters in a column per name and unit: reports of several versions of ncu may use different units."""
    return report.counters.rename(lambda name: f"{name}{_SEPARATOR}{report.units.get(name, '')}")
