"""At which lines of the source a kernel takes more or less time than before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ncuroof.comparison.matched_groups import Row
from ncuroof.comparison.rules import Noise


@dataclass(frozen=True, slots=True)
class LineChange:
    """A line before and after.

    Attributes:
        file: name, without folder.
        text: what the line says.
        lines: its number before and after; None where no warp was found there.
        callers: of an inlined line, as of LINES.
        time_ns: its share of the samples, of the time of a launch, before and after.
    """

    file: str
    text: str
    lines: tuple[int | None, int | None]
    callers: str | None
    time_ns: tuple[float, float]


def line_changes(
    old: Sequence[Row], new: Sequence[Row], mean_ns: tuple[float, float], noise: Noise
) -> tuple[LineChange, ...]:
    """Return the lines that take longer or less long than before, those that changed most first.

    Lines are the same where they say the same, in the same order in files of the same name: their numbers move with every edit.

    Args:
        old: LINE_SHARES of a group before; nothing is reported without.
        new: of it after; nothing is reported without.
        mean_ns: time of one launch of each.
        noise: tells which changes are too small.
    """
    if not old or not new:
        return ()
    n_samples = old[0]["n_samples"], new[0]["n_samples"]
    found = []
    for pair in _pairs(old, new):
        shares = [row["frac"] if row else 0.0 for row in pair]
        times_ns = shares[0] * mean_ns[0], shares[1] * mean_ns[1]
        errors_ns = (_error(*each) for each in zip(shares, n_samples, mean_ns, strict=True))
        least_ns = max(noise.least_line_frac * max(mean_ns), noise.n_standard_errors * math.hypot(*errors_ns))
        if abs(times_ns[1] - times_ns[0]) >= least_ns:
            found.append(_change(pair, times_ns))
    return tuple(sorted(found, key=lambda each: -abs(each.time_ns[1] - each.time_ns[0])))


def _pairs(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield each line before with the same line after, and None in place of the one that is not there."""
    for file in sorted({row["file"] for row in (*old, *new)}):
        sides = [
            sorted((row for row in rows if row["file"] == file), key=lambda row: row["line"]) for rows in (old, new)
        ]
        before, after = ([row["text"] for row in side] for side in sides)
        start, start_new = 0, 0
        for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
            yield from ((row, None) for row in sides[0][start : block.a])
            yield from ((None, row) for row in sides[1][start_new : block.b])
            start, start_new = block.a + block.size, block.b + block.size
            yield from zip(sides[0][block.a : start], sides[1][block.b : start_new], strict=True)


def _error(frac: float, n_samples: float, mean_ns: float) -> float:
    """Return the standard error of a line's time: a share of so many samples deviates binomially."""
    return mean_ns * math.sqrt(max(frac * (1 - frac), 0.0) / n_samples)


def _change(pair: tuple[Row | None, Row | None], times_ns: tuple[float, float]) -> LineChange:
    before, after = pair
    row = after or before or {}
    numbers = before["line"] if before else None, after["line"] if after else None
    return LineChange(row["file"], row["text"], numbers, row["callers"], times_ns)
