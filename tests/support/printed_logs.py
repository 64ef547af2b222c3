"""Reads texts as ncu prints them, for tests of that reader."""

from __future__ import annotations

from pathlib import Path

from ncuroof.ingest import RawReport, open_report


def read_log(folder: Path, text: str) -> RawReport:
    """Return what is read of a text that is written to a file in a folder."""
    path = folder / "ncu.log"
    path.write_text(text)
    return open_report(path)


def counter_values(report: RawReport, *names: str) -> list[list[float | None]]:
    """Return the values of counters by launch; none of those that the report lacks."""
    return [report.counters[name].to_list() if name in report.counters.columns else [] for name in names]
