"""Adjusts roofs to the clock at which launches are judged: data-sheet and measured roofs hold at other clocks.

Roofs from counters hold at the clock of the launch. A data-sheet roof (where no counter gives it) or a measured one is therefore
drawn at the clock of the longest launch that is judged by it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ncuroof.present.analysed import Record
from ncuroof.words import CeilingSource

_NEXT_TO_NOTHING = 1e-3
"""Roofs that differ by a smaller fraction count as equal."""

_TABLE_AND_RATE = {"compute": ("work", "flop_per_s"), "bandwidth": ("bandwidth", "bytes_per_s")}


def at_the_launches_clock(
    ceilings: Iterable[Record], kernels: Sequence[Record], counted: Collection[tuple[str, str]]
) -> list[Record]:
    """Return the ceilings, those not from counters at the value by which the longest launch is judged, with its clock as `at_hz`.

    Args:
        ceilings: roofs of one device, from the document.
        kernels: kernels of that device, from the document.
        counted: kind and name of the roofs that need no stand-in; their data-sheet values are a mere comparison, left as they are.
    """
    longest_first = sorted(kernels, key=lambda kernel: -(kernel["duration_ns"] or 0.0))
    return [
        ceiling
        if ceiling["source"] == CeilingSource.COUNTERS
        or (ceiling["source"] == CeilingSource.DATASHEET and (ceiling["kind"], ceiling["name"]) in counted)
        else _as_judged(ceiling, longest_first)
        for ceiling in ceilings
    ]


def _as_judged(ceiling: Record, kernels: Iterable[Record]) -> Record:
    for kernel in kernels:
        per_s = _judged_by(kernel, ceiling)
        if per_s is not None:
            is_same = abs(per_s / ceiling["per_s"] - 1) < _NEXT_TO_NOTHING
            return ceiling if is_same else {**ceiling, "per_s": per_s, "at_hz": kernel["sm_clock_hz"]}
    return ceiling


def _judged_by(kernel: Record, ceiling: Record) -> float | None:
    """Return the value of a roof by which a launch is judged; None where it is not judged by this roof."""
    table, rate = _TABLE_AND_RATE[ceiling["kind"]]
    entry = kernel[table].get(ceiling["name"])
    if entry is None:
        return None
    if ceiling["source"] == CeilingSource.DATASHEET:
        peak = entry[f"peak_{rate}"] if entry["peak_source"] == CeilingSource.DATASHEET else None
        return peak or None
    return entry[rate] / entry["reached_frac"] if entry["reached_frac"] else None
