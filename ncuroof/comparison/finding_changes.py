"""Changes inside a kernel: findings that are gone or new, and source lines that take more or less time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import polars as pl

from ncuroof.comparison.matched_groups import Row
from ncuroof.comparison.rules import ISSUED, STALLS, WARPS, Noise
from ncuroof.diagnosis import load_rules

FOUND = "findings"
"""Column of the groups of a run, of type FOUND_TYPE: findings of the group's longest launch; null if unknown."""

_STALL = "stall_"
"""Prefix of the names of findings about what warps wait for."""

Gains = Mapping[str, float | None]

FOUND_TYPE = pl.List(pl.Struct({"finding": pl.String(), "gain_frac": pl.Float64()}))
"""Findings, each with the most that it saves, as a share of the launch's time; null if the counters do not show it."""


@dataclass(frozen=True, slots=True)
class FindingChange:
    """Findings of one side only.

    Attributes:
        gone: findings of the side before, each with the largest share of the time that it could save; None if unknown.
        new: findings of the side after, each with its share; None if unknown.
    """

    gone: Gains
    new: Gains


def found_in(kernels: pl.DataFrame, findings: pl.DataFrame) -> pl.DataFrame:
    """Return the findings of each launch that has any: `id` and FOUND.

    Args:
        kernels: one row per launch, with id and duration_ns.
        findings: FINDINGS.
    """
    return (
        findings.join(kernels.select("id", "duration_ns"), on="id", how="left", maintain_order="left")
        .group_by("id", maintain_order=True)
        .agg(pl.struct("finding", (pl.col("gain_ns") / pl.col("duration_ns")).alias("gain_frac")).alias(FOUND))
    )


def finding_change(before: Row, after: Row) -> FindingChange | None:
    """Return the findings that only one of two groups has; None unless the findings of both are known.

    A finding is not gone if a different finding replaces it, or if the wait that it is about takes as long as before: the share of
    a stall may fall only because the shares of others grew.
    """
    if before[FOUND] is None or after[FOUND] is None:
        return None
    was, became = ({each["finding"]: each["gain_frac"] for each in row[FOUND]} for row in (before, after))
    return FindingChange(gone=_without(before, after, was, became), new=_without(after, before, became, was))


def _without(side: Row, other: Row, own: Gains, others: Gains) -> Gains:
    findings = load_rules().findings
    known = [findings[name] for name in others if name in findings]
    replaced = {name for finding in known for name in (*finding.instead_of, *finding.covers)}
    return {
        name: gain
        for name, gain in own.items()
        if name not in others and name not in replaced and not _waits_as_long(name, side, other)
    }


def _waits_as_long(finding: str, side: Row, other: Row) -> bool:
    """Return whether a warp waits at least as long for the reason of a stall, in cycles per instruction; false if unknown."""
    stall = finding.removeprefix(_STALL)
    waits = [_wait_cycles(row, STALLS + stall) for row in (side, other)]
    if stall == finding or waits[0] is None or waits[1] is None:
        return False
    return waits[1] >= waits[0]


def _wait_cycles(row: Row, quantity: str) -> float | None:
    share, warps, issued = (row.get(name) for name in (quantity, WARPS, ISSUED))
    return share * warps / issued if share is not None and warps is not None and issued else None


@dataclass(frozen=True, slots=True)
class LineChange:
    """A source line before and after.

    Attributes:
        file: name, without folder.
        text: what the line says.
        lines: its line numbers before and after; None if no sample fell on it.
        callers: where an inlined line was called from, as in LINES.
        time_ns: its time per launch before and after: its share of the samples times the time of a launch.
    """

    file: str
    text: str
    lines: tuple[int | None, int | None]
    callers: str | None
    time_ns: tuple[float, float]


def line_changes(
    old: Sequence[Row], new: Sequence[Row], mean_ns: tuple[float, float], noise: Noise
) -> tuple[LineChange, ...]:
    """Return the lines whose time changed, the largest change first.

    Lines are matched by their text and order within files of the same name, because line numbers move with every edit.

    Args:
        old: LINE_SHARES of a group before; if empty, nothing is reported.
        new: LINE_SHARES of the group after; if empty, nothing is reported.
        mean_ns: time of one launch before and after.
        noise: which changes are too small.
    """
    if not old or not new:
        return ()
    n_samples = old[0]["n_samples"], new[0]["n_samples"]
    found = []
    for pair in _pairs(old, new):
        shares = [row["frac"] if row else 0.0 for row in pair]
        times_ns = shares[0] * mean_ns[0], shares[1] * mean_ns[1]
        errors_ns = (_standard_error_ns(*each) for each in zip(shares, n_samples, mean_ns, strict=True))
        least_ns = max(noise.least_line_frac * max(mean_ns), noise.n_standard_errors * math.hypot(*errors_ns))
        if abs(times_ns[1] - times_ns[0]) >= least_ns:
            found.append(_change(pair, times_ns))
    return tuple(sorted(found, key=lambda each: -abs(each.time_ns[1] - each.time_ns[0])))


def _pairs(old: Sequence[Row], new: Sequence[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Yield each line before with the same line after; None stands for a missing line."""
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


def _standard_error_ns(frac: float, n_samples: float, mean_ns: float) -> float:
    """Return the standard error of a line's time: its share of the samples is binomially distributed."""
    return mean_ns * math.sqrt(max(frac * (1 - frac), 0.0) / n_samples)


def _change(pair: tuple[Row | None, Row | None], times_ns: tuple[float, float]) -> LineChange:
    before, after = pair
    row = after or before or {}
    numbers = before["line"] if before else None, after["line"] if after else None
    return LineChange(row["file"], row["text"], numbers, row["callers"], times_ns)
