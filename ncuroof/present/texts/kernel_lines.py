"""A line of the summary for each group of launches: its time, what bounds it, and the first thing to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ncuroof import wording
from ncuroof.diagnosis import load_rules, with_weights
from ncuroof.present.analysed import Analysed, Record
from ncuroof.present.explanations.limiters import limiter_label
from ncuroof.present.sentences.actions import most_worth, of_what
from ncuroof.present.sentences.breakdowns import differing, extremes
from ncuroof.present.sentences.distinguishing_words import distinguishing_words
from ncuroof.present.sentences.source_lines import first_place
from ncuroof.present.sentences.to_know import to_know_more

_CLAUSE_END = re.compile(r"(?<=[a-z0-9)])[.:;](?= |$)(?![^()]*\))")
_MOST_WORD = 40
"""Most characters of a word that distinguishes a name from another."""

_STALLS = "stalls"
"""The missing quantity that would say what warps wait for."""

_HALF = 0.5
"""Share of the time above the roofline that a cause has to explain; the threshold of the caveat `stalls_unknown`, too."""


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A group of equal launches as a line: text ready to show.

    Attributes:
        number: id of the launch that represents the group.
        name: short name.
        differs_in: words that distinguish it from others shown with this short name: of the full name, then block and grid.
        gpu: "GPU n" if the run used several; else empty.
        n_launches: launches in the group.
        spread: of their times, standard deviation over mean; empty where it is small.
        extremes: shortest and longest of their times, with the spread; empty for a single launch.
        duration: of all its launches.
        recoverable: time above the roofline of all its launches.
        verdict: name of the verdict.
        limiter: label of the limiter, or empty.
        advice: first clause of the advice that saves most, or of the first where no gain is known; or empty.
        to_know: what to do to know why it takes its time, where there is no advice; or empty.
        where: the source line that the advice concerns most; empty where that is not known.
        gain: what the advice saves, in words, and what to collect where that is little; empty where it is not known.
    """

    number: int
    name: str
    differs_in: tuple[str, ...]
    gpu: str
    n_launches: int
    spread: str
    extremes: str
    duration: str
    recoverable: str
    verdict: str
    limiter: str
    advice: str
    to_know: str
    where: str
    gain: str


def gpu_label(number: int) -> str:
    """Return what to call one of several GPUs of a run."""
    return f"GPU {number}"


def _gains(analysed: Analysed, shown: pl.DataFrame) -> dict[tuple[int, str], float | None]:
    """Return, by group and finding, the share of the group's time that the finding's launches in it save at most.

    None where a counting run found no time in the group: timelines in whole microseconds round short launches to 0.
    """
    launches = shown.select(group="id", whole_ns="duration_ns", id="launches").explode("id")
    gains = with_weights(launches, analysed.weights).join(analysed.diagnosis.findings, on="id").drop_nulls("gain_ns")
    whole_ns = pl.col("whole_ns").first()
    saved = gains.group_by("group", "finding").agg(
        share=(pl.col("gain_ns") * pl.col("weight")).sum() / pl.when(whole_ns > 0).then(whole_ns)
    )
    return {(group, finding): share for group, finding, share in saved.iter_rows()}


def kernel_lines(analysed: Analysed, entries: Record, shown: pl.DataFrame) -> Iterator[KernelLine]:
    """Yield the lines of groups.

    Args:
        analysed: the analysis.
        entries: the document of the launches that represent the groups, in the same order.
        shown: rows of GROUPS.
    """
    gains = _gains(analysed, shown)
    kernels = entries["kernels"]
    words = distinguishing_words(kernels)
    for kernel, group, differs_in in zip(kernels, shown.iter_rows(named=True), words, strict=True):
        gpu = gpu_label(kernel["device"]) if len(entries["devices"]) > 1 else ""
        yield _line(kernel, group, entries["sources"], gains, differs_in=differs_in, gpu=gpu)


def _line(
    kernel: Record,
    group: Mapping[str, Any],
    sources: Sequence[Record],
    gains: Mapping[tuple[int, str], float | None],
    *,
    differs_in: Sequence[str],
    gpu: str,
) -> KernelLine:
    finding = most_worth(kernel["findings"])
    advice, gain = (first_clause(finding["advice"]), _gain(finding, kernel, gains)) if finding else ("", "")
    if finding and gain and _leaves_most(finding, kernel) and (more := to_know_more(kernel, sources, only=_STALLS)):
        gain = f"{gain}; to know the rest, {more}"
    return KernelLine(
        number=kernel["id"],
        name=wording.printable(wording.kernel_name(kernel)),
        differs_in=tuple(wording.shortened(wording.printable(word), _MOST_WORD) for word in differs_in),
        gpu=gpu,
        n_launches=group["n_launches"],
        spread=differing(group),
        extremes=extremes(group),
        duration=wording.duration(group["duration_ns"]),
        recoverable=wording.duration(group["recoverable_ns"]),
        verdict=kernel["verdict"],
        limiter=limiter_label(kernel) or "",
        advice=advice,
        to_know="" if finding else to_know_more(kernel, sources),
        where=first_place(finding["where"]) if finding is not None else "",
        gain=gain,
    )


def _gain(finding: Record, kernel: Record, gains: Mapping[tuple[int, str], float | None]) -> str:
    """Return in words the share of the group's time that a finding saves at most; empty where it is not known.

    Where it asks for a type of lower precision, also what the best finding saves that keeps the type.
    """
    share = gains.get((kernel["id"], finding["id"]))
    if share is None:
        return ""
    gain = f"{wording.at_most(share)} {of_what(finding)}"
    kept = _best_in_its_type(kernel, gains) if load_rules().findings[finding["id"]].lowers_precision else None
    return f"{gain}; with its type kept, {kept}" if kept else gain


def _best_in_its_type(kernel: Record, gains: Mapping[tuple[int, str], float | None]) -> str:
    """Return the finding that saves most of a group's time at its present precision, and how much; empty without one."""
    rules = load_rules().findings
    shares = {
        finding["title"]: share
        for finding in kernel["findings"]
        if (share := gains.get((kernel["id"], finding["id"]))) and not rules[finding["id"]].lowers_precision
    }
    best = max(shares, key=lambda title: shares[title], default=None)
    return "" if best is None else f"{wording.at_most(shares[best])}: {best.split(':')[0]}"


def _leaves_most(finding: Record, kernel: Record) -> bool:
    """Return whether a finding explains less than half of the time above the roofline of a kernel that is latency-bound."""
    above_ns = kernel["recoverable_ns"]
    return kernel["verdict"] == "latency" and above_ns is not None and finding["gain_ns"] < _HALF * above_ns


def first_clause(advice: str) -> str:
    """Return an advice up to its first full stop, colon or semicolon outside parentheses."""
    return _CLAUSE_END.split(advice, maxsplit=1)[0]
