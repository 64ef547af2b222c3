"""The recorded counters of a page's launches, in parts that are unpacked on demand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from ncuroof.ingest.raw_report import RawReport
from ncuroof.present.page.data import DETAILS_PER_PART

MOST_LAUNCHES = 1000
"""Most launches for which the page has counters; with more, they would make up most of it, and the report has them anyway."""


def counter_parts(reports: Sequence[RawReport]) -> Iterable[dict[str, Any]]:
    """Yield the counters of the launches of all reports in order, `DETAILS_PER_PART` launches at a time.

    Yields:
        For each part, `names` and `units` of the counters that any of its launches has, and `values` per launch in the same order,
        None where not collected. Yields nothing for more than `MOST_LAUNCHES` launches.
    """
    n_launches = sum(report.counters.height for report in reports)
    if not 0 < n_launches <= MOST_LAUNCHES:
        return
    units = {name: report.units.get(name, "") for report in reports for name in report.counters.columns}
    counters = pl.concat([report.counters for report in reports], how="diagonal")
    for first in range(0, n_launches, DETAILS_PER_PART):
        part = counters.slice(first, DETAILS_PER_PART)
        names = sorted(column.name for column in part if column.null_count() < part.height)
        yield {
            "names": names,
            "units": [units[name] for name in names],
            "values": [list(row) for row in part.select(names).rows()] if names else [[]] * part.height,
        }
