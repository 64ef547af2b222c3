"""A kernel's traffic, bandwidth and work, as table rows of its detail."""

from __future__ import annotations

from collections.abc import Callable

from ncuroof import wording
from ncuroof.present.analysed import Record
from ncuroof.present.page.interned import Cell, Texts
from ncuroof.words import CeilingSource


def traffic_rows(kernel: Record, texts: Texts) -> list[list[Cell]]:
    """Return a row per level: level, bytes in both directions, and what was counted."""
    traffic, definitions = kernel["traffic_bytes"], kernel["traffic_definition"]
    rows: list[list[Cell]] = [
        [wording.label(level), wording.quantity(value, "byte"), texts.add(definitions.get(level) or "")]
        for level, value in traffic.items()
        if value is not None
    ]
    return rows + texts.note(
        "Not collected", [wording.label(level) for level, value in traffic.items() if value is None]
    )


def bandwidth_rows(kernel: Record, texts: Texts) -> list[list[Cell]]:
    """Return a row per level: level, achieved rate, peak, their ratio, shares of other roofs, and what was counted."""
    return [
        [
            wording.label(level),
            wording.byte_rate(entry["bytes_per_s"]),
            _peak(entry, "peak_bytes_per_s", wording.byte_rate),
            wording.share(entry["frac"]),
            *_of_other_roofs(entry),
            texts.add(entry["definition"]),
        ]
        for level, entry in kernel["bandwidth"].items()
    ]


def work_rows(kernel: Record, texts: Texts) -> list[list[Cell]]:
    """Return a row per precision: work, rate, peak, ratio, shares of other roofs, what was counted, whether that is reliable."""
    work = kernel["work"]
    rows: list[list[Cell]] = [
        [
            wording.label(precision),
            wording.flop_count(entry["flop"], precision),
            wording.flop_rate(entry["flop_per_s"], precision),
            wording.in_operations(_peak(entry, "peak_flop_per_s", wording.flop_rate), precision),
            wording.share(entry["frac"]),
            *_of_other_roofs(entry),
            texts.add(entry["definition"]),
            "yes" if entry["reliable"] else "no",
        ]
        for precision, entry in work.items()
        if entry["flop"] != 0
    ]
    return rows + texts.note(
        "Measured as zero", [wording.label(name) for name, entry in work.items() if entry["flop"] == 0]
    )


def _of_other_roofs(entry: Record) -> list[Cell]:
    """Return the shares of the data-sheet roof and of the roof that a calibration reached."""
    return [wording.share(entry[key]) for key in ("datasheet_frac", "reached_frac")]


def _peak(entry: Record, key: str, write: Callable[[float | None], str]) -> str:
    """Return a peak as text, marked if it is from the data sheet, with the peak of a faster path if there is one."""
    remarks = ["data sheet"] if entry["peak_source"] == CeilingSource.DATASHEET else []
    fastest = entry.get("fastest_peak_flop_per_s")
    if fastest is not None and fastest > (entry[key] or fastest):
        remarks.append(f"fastest path {write(fastest)}")
    return write(entry[key]) + (f" ({'; '.join(remarks)})" if remarks else "")
