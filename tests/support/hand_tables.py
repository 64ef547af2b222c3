"""Builds WORK and BANDWIDTH tables from a few rows written in a test."""

from __future__ import annotations

import polars as pl

from ncuroof.tables import BANDWIDTH, WORK


def work_table(*rows: tuple[int, str, float, float | None, bool]) -> pl.DataFrame:
    """Return WORK from rows of (id, precision, flop/s, peak, reliable)."""
    return pl.DataFrame(
        [
            {
                "id": number,
                "precision": precision,
                "flop_per_s": rate,
                "peak_flop_per_s": peak,
                "frac": rate / peak if peak else None,
                "definition": "test",
                "reliable": reliable,
                "peak_source": "counters" if peak else None,
                "is_from_chart": False,
            }
            for number, precision, rate, peak, reliable in rows
        ],
        schema=WORK,
    )


def bandwidth_table(*rows: tuple[int, str, float, float | None]) -> pl.DataFrame:
    """Return BANDWIDTH from rows of (id, level, byte/s, peak)."""
    return pl.DataFrame(
        [
            {
                "id": number,
                "level": level,
                "bytes_per_s": rate,
                "peak_bytes_per_s": peak,
                "frac": rate / peak if peak else None,
                "definition": "test",
                "reliable": True,
                "peak_source": "counters" if peak else None,
                "is_from_chart": False,
            }
            for number, level, rate, peak in rows
        ],
        schema=BANDWIDTH,
    )
