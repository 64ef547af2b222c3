"""Imitates what `ncu` prints for a terminal, in columns as wide as their contents."""

from __future__ import annotations

from collections.abc import Sequence

LAUNCH = "void ns::fn<int>(int, T1) (10, 20, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0"

Row = tuple[str, str, str]
"""Label, unit and value."""

HEADER: Row = ("Metric Name", "Metric Unit", "Metric Value")


def table(rows: Sequence[Row], *, indent: str = "    ", has_header: bool = True) -> str:
    """Return a table with rulers and, as since 2022, a header: labels left-aligned, units and values right-aligned."""
    widths = [max(len(row[place]) for row in (HEADER, *rows)) for place in range(3)]
    ruler = " ".join("-" * width for width in widths)
    header = [ruler, _line(HEADER, widths)] if has_header else []
    lines = [*header, ruler, *(_line(row, widths) for row in rows), ruler]
    return "".join(f"{indent}{line}\n" for line in lines)


def section(name: str, rows: Sequence[Row], *, has_header: bool = True) -> str:
    """Return a section with its table."""
    return f"    Section: {name}\n{table(rows, has_header=has_header)}\n"


def log(*sections: str, launch: str = LAUNCH, process: str = "[4242] app@127.0.0.1") -> str:
    """Return everything that is printed for a launch."""
    return f"{process}\n  {launch}\n" + "".join(sections)


def _line(row: Row, widths: Sequence[int]) -> str:
    label, unit, value = row
    return f"{label:<{widths[0]}} {unit:>{widths[1]}} {value:>{widths[2]}}"
