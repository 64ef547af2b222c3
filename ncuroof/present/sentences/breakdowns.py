"""The run's time by verdict, family and NVTX range, and the spread of times within a group, as text ready to show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from ncuroof import formatting
from ncuroof.diagnosis import load_rules
from ncuroof.metrics.families import title
from ncuroof.present.schemas.analysis import BreakdownEntry, GroupEntry, SummaryEntry

NO_RANGE = "(outside any range)"
"""Name of the part with launches outside any NVTX range."""

LEAST_SPREAD_FRAC = 0.05
"""Launches whose times differ by less count as equal: the same launch profiled again differs by a few percent."""


@dataclass(frozen=True, slots=True)
class VerdictShare:
    """The launches of one verdict."""

    name: Annotated[str, "name of the verdict, for its colour"]
    title: Annotated[str, "title of the verdict"]
    doc: Annotated[str, "what the verdict means"]
    launches: Annotated[str, "number of launches, in words"]
    n_launches: Annotated[int, "number of launches"]
    duration: Annotated[str, "their GPU time"]
    share: Annotated[str, "of the run's GPU time"]
    share_frac: Annotated[float | None, "the same as a number; None where no time is known"]
    before_frac: Annotated[float, "share of the verdicts before it: where its part of a bar starts"]


@dataclass(frozen=True, slots=True)
class BreakdownLine:
    """A part of the run."""

    name: Annotated[str, "of the family or range"]
    share: Annotated[str, "of the run's GPU time"]
    duration: Annotated[str, "GPU time of all its launches"]
    recoverable: Annotated[str, "time above the roofline of all its launches"]
    launches: Annotated[str, "number of launches"]


def by_verdict(summary: SummaryEntry) -> tuple[VerdictShare, ...]:
    """Return the parts of the run by verdict, in the order of the summary."""
    return tuple(_by_verdict(summary))


def _by_verdict(summary: SummaryEntry) -> Iterator[VerdictShare]:
    verdicts, before_frac = load_rules().verdicts, 0.0
    for name, part in summary["by_verdict"].items():
        yield VerdictShare(
            name=name,
            title=verdicts[name].title,
            doc=verdicts[name].doc,
            launches=formatting.launches(part["n_launches"]),
            n_launches=part["n_launches"],
            duration=formatting.duration(part["duration_ns"]),
            share=formatting.share(part["share_frac"]),
            share_frac=part["share_frac"],
            before_frac=before_frac,
        )
        before_frac += part["share_frac"] or 0.0


def by_family(summary: SummaryEntry) -> tuple[BreakdownLine, ...]:
    """Return the parts of the run by family, the longest first."""
    return tuple(_line(title(entry["key"] or ""), entry) for entry in summary["by_family"])


def by_outer_range(summary: SummaryEntry) -> tuple[BreakdownLine, ...]:
    """Return the parts of the run by outermost NVTX range, deeper where there is only one of these; empty without ranges."""
    entries = summary["by_nvtx_branch"]
    if all(entry["key"] is None for entry in entries):
        return ()
    return tuple(_line(NO_RANGE if entry["key"] is None else entry["key"], entry) for entry in entries)


def differing(group: GroupEntry) -> str:
    """Return the spread of a group's times ("8.3 %": standard deviation over mean); empty below LEAST_SPREAD_FRAC."""
    spread = group["duration_cv"]
    return "" if spread is None or spread < LEAST_SPREAD_FRAC else formatting.share(spread)


def extremes(group: GroupEntry) -> str:
    """Return the range of a group's times: "210 µs to 290 µs each (±8.3 %)"; empty for a single launch."""
    if group["duration_cv"] is None:
        return ""
    low, high = formatting.duration(group["min_duration_ns"]), formatting.duration(group["max_duration_ns"])
    spread = differing(group)
    return (f"{low} each" if low == high else f"{low} to {high} each") + (f" (±{spread})" if spread else "")


def _line(name: str, entry: BreakdownEntry) -> BreakdownLine:
    return BreakdownLine(
        name=formatting.printable(name),
        share=formatting.share(entry["share_frac"]),
        duration=formatting.duration(entry["duration_ns"]),
        recoverable=formatting.duration(entry["recoverable_ns"]),
        launches=str(entry["n_launches"]),
    )
