"""The summary of an analysis as plain values: the content of the terminal and Markdown summaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ncuroof.diagnosis import load_rules, with_weights
from ncuroof.metrics.names import differences
from ncuroof.present import format as text
from ncuroof.present.analysed import Analysed
from ncuroof.present.documents.analysis import Document, document
from ncuroof.present.documents.weighting import weighting_document
from ncuroof.present.sentences.actions import (
    LEAST_GAIN,
    Outlook,
    gpu_time,
    most_worth,
    outlook,
)
from ncuroof.present.sentences.breakdowns import BreakdownLine, by_family, by_outer_range, differing, extremes
from ncuroof.present.sentences.clocks import locked_clock_remark
from ncuroof.present.sentences.collect_options import RAW_PAGE, SHARED_SLICE, is_on_shared_slice, raw_page_tells
from ncuroof.present.sentences.debug_build import debug_build_sentence
from ncuroof.present.sentences.distinct_labels import with_folders
from ncuroof.present.sentences.reached_roofs import reached_roof_lines
from ncuroof.present.sentences.source_lines import first_place
from ncuroof.present.sentences.wall_time import wall_time_lines
from ncuroof.present.sentences.weighting import not_the_run_sentences, recorded_once_sentence, weighting_sentences

N_KERNELS = 10
"""Most kernel groups in a summary."""

_CLAUSE_END = re.compile(r"(?<=[a-z0-9)])[.:;](?= |$)(?![^()]*\))")
_MOST_WORD = 40
"""Most characters of a word that distinguishes a name from another."""

_N_OPTIONS = 2
"""Most ncu options to name where advice needs more counters."""


@dataclass(frozen=True, slots=True)
class VerdictShare:
    """One verdict's part of the run: name, title, share of GPU time (None without times), and launches."""

    verdict: str
    title: str
    share_frac: float | None
    n_launches: int


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A group of equal launches as a line: text ready to show.

    Attributes:
        number: id of the launch that represents the group.
        name: short name.
        differs_in: words of the full name that distinguish it from others shown with this short name.
        gpu: "GPU n" if the run used several; else empty.
        n_launches: launches in the group.
        spread: of their times, standard deviation over mean; empty where it is small.
        extremes: shortest and longest of their times, with the spread; empty for a single launch.
        duration: of all its launches.
        recoverable: time above the roofline of all its launches.
        verdict: name of the verdict.
        limiter: label of the limiter, or empty.
        advice: first clause of the advice that saves most, or of the first where no gain is known; or what to collect; or empty.
        where: the source line that the advice concerns most; empty where that is not known.
        gain: what the advice saves, in words; empty where that is not known.
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
    where: str
    gain: str


@dataclass(frozen=True, slots=True)
class Brief:
    """The summary of a run.

    Attributes:
        title: the reports' names.
        is_simulated: whether a report was written by ncuroof, not recorded on a GPU.
        devices: a line per GPU, and one on its measured roofs, if any.
        tool: Nsight Compute version and number of sections; empty where neither is known, as for a printed table.
        totals: launches, GPU time, recoverable time.
        wall_time: how long a step takes, and why the GPU is idle in it; empty without a timeline from a counting run.
        shares: time by verdict.
        families: time by source of the kernels.
        ranges: time by NVTX range; empty without ranges.
        outlook: the largest potential savings over the run.
        kernels: the groups with the most recoverable time.
        n_more: groups that are not shown.
        notes: what a reader must know before trusting the numbers.
    """

    title: str
    is_simulated: bool
    devices: tuple[str, ...]
    tool: str
    totals: str
    wall_time: tuple[str, ...]
    shares: tuple[VerdictShare, ...]
    families: tuple[BreakdownLine, ...]
    ranges: tuple[BreakdownLine, ...]
    outlook: Outlook
    kernels: tuple[KernelLine, ...]
    n_more: int
    notes: tuple[str, ...]


def brief(analysed: Analysed) -> Brief:
    """Return the summary of an analysis."""
    groups = analysed.groups
    shown = groups.head(N_KERNELS)
    entries = document(analysed, ids=shown["id"].to_list())
    reports = _report_names(analysed)
    times = analysed.measurements.kernels.select("id", "duration_ns")
    is_gain = pl.col("gain_ns") >= LEAST_GAIN * pl.col("duration_ns")
    with_gain = analysed.diagnosis.findings.join(times, on="id").filter(is_gain)["id"].implode()
    verdicts = analysed.diagnosis.verdicts.select("id", "verdict", "limiter")
    judged = groups.join(verdicts, on="id", how="left").with_columns(has_gain=pl.col("id").is_in(with_gain))
    return Brief(
        title=", ".join(reports[:3]) + (f" and {len(reports) - 3} more" if len(reports) > 3 else ""),
        is_simulated=any(report.session.is_simulated for report in analysed.reports),
        devices=(*_devices(analysed, entries), *reached_roof_lines(analysed)),
        tool=_tool(analysed),
        totals=_totals(analysed),
        wall_time=wall_time_lines(entries["summary"].get("weighting")),
        shares=tuple(_shares(analysed)),
        families=by_family(entries["summary"]),
        ranges=by_outer_range(entries["summary"]),
        outlook=outlook(entries, judged.to_dicts()),
        kernels=tuple(_lines(entries, shown, _gains(analysed, shown))),
        n_more=groups.height - shown.height,
        notes=tuple(_notes(analysed, reports, gpu_time(entries["summary"].get("weighting")))),
    )


def _report_names(analysed: Analysed) -> list[str]:
    return with_folders([(text.printable(report.folder), text.printable(report.file)) for report in analysed.reports])


def _devices(analysed: Analysed, entries: Document) -> Iterator[str]:
    kernels = analysed.measurements.kernels
    clocks = kernels.group_by("device").agg(pl.col("sm_clock_hz").median(), pl.col("device.boost_clock_hz").max())
    clock_by_device = {device: (clock, boost) for device, clock, boost in clocks.iter_rows()}
    caveats = kernels.select("id", "device").join(analysed.diagnosis.verdicts.select("id", "caveats"), on="id")
    caveats_by_device = dict(caveats.group_by("device").agg("caveats").iter_rows())
    for number, device in enumerate(entries["devices"]):
        clock, boost = clock_by_device.get(number, (None, None))
        parts = [text.printable(text.gpu_name(device))]
        if device["sm_count"] is not None:
            parts.append(f"{device['sm_count']} SMs")
        if clock is not None:
            remark = locked_clock_remark(caveats_by_device.get(number, ()))
            parts.append(
                f"{text.scaled(clock, 'Hz')}" + (f" (boost {text.scaled(boost, 'Hz')}{remark})" if boost else "")
            )
        number_of_several = f"{_gpu(number)}: " if len(entries["devices"]) > 1 else ""
        yield number_of_several + " · ".join(parts)


def _gpu(number: int) -> str:
    return f"GPU {number}"


def _tool(analysed: Analysed) -> str:
    versions = sorted(filter(None, {report.session.ncu_version for report in analysed.reports}))
    sections = list(dict.fromkeys(section for report in analysed.reports for section in report.sections))
    named = f"Nsight Compute {text.printable(', '.join(versions))}" if versions else ""
    collected = f"{len(sections)} section{'s' if len(sections) != 1 else ''} collected" if sections else ""
    return " · ".join(filter(None, (named, collected)))


def _totals(analysed: Analysed) -> str:
    summary = analysed.summary
    launches = text.launches(summary.n_kernels)
    if analysed.weighting is not None:
        launches = launches.replace(" ", " profiled ", 1) + f" representing {summary.n_launches}"
    known = summary.duration_ns is not None
    parts = [
        f"{launches}, {text.duration(summary.duration_ns)} of GPU time" if known else f"{launches}, GPU time unknown"
    ]
    if summary.recoverable_ns:
        parts.append(f"{text.duration(summary.recoverable_ns)} above the roofline")
    if summary.n_failed:
        parts.append(f"{summary.n_failed} failed to profile")
    return "; ".join(parts)


def _shares(analysed: Analysed) -> Iterator[VerdictShare]:
    titles = load_rules().verdicts
    for name, share in analysed.summary.by_verdict.items():
        yield VerdictShare(name, titles[name].title, share.share_frac, share.n_launches)


def _notes(analysed: Analysed, reports: Sequence[str], of_time: str) -> Iterator[str]:
    for report, name in zip(analysed.reports, reports, strict=True):
        if report.damage is not None:
            yield f"{name} is damaged: {report.damage}"
        yield from (f"{name}: {line}" for line in report.warnings)
    if debug_builds := debug_build_sentence(*_debug_builds(analysed), of_time):
        yield debug_builds
    command_lines = [report.session.command_line for report in analysed.reports]
    if analysed.weighting is not None:
        found = weighting_document(analysed)["weighting"]
        yield from weighting_sentences(**found)
        yield from not_the_run_sentences(**found, command_lines=command_lines)
    elif once := recorded_once_sentence(command_lines):
        yield once


def _debug_builds(analysed: Analysed) -> tuple[int, int, float | None]:
    """Return the number of debug builds, the number of all kernels, and the debug builds' share of the time."""
    weights = None if analysed.weighting is None else analysed.weighting.weights
    kernels = with_weights(analysed.measurements.kernels.filter(pl.col("check.debug_build") > 0), weights)
    whole_ns = analysed.summary.duration_ns
    times = kernels.filter(~pl.col("failed")).select(pl.col("duration_ns") * pl.col("weight"))["duration_ns"]
    share_frac = float(times.sum()) / whole_ns if whole_ns else None
    return kernels.height, analysed.summary.n_kernels, share_frac


def _gains(analysed: Analysed, shown: pl.DataFrame) -> dict[tuple[int, str], float]:
    """Return, by group and finding, the share of the group's time that the finding's launches in it save at most."""
    weights = None if analysed.weighting is None else analysed.weighting.weights
    launches = shown.select(group="id", whole_ns="duration_ns", id="launches").explode("id")
    gains = with_weights(launches, weights).join(analysed.diagnosis.findings, on="id").drop_nulls("gain_ns")
    saved = gains.group_by("group", "finding").agg(
        share=(pl.col("gain_ns") * pl.col("weight")).sum() / pl.col("whole_ns").first()
    )
    return {(group, finding): share for group, finding, share in saved.iter_rows()}


def _lines(entries: Document, shown: pl.DataFrame, gains: Mapping[tuple[int, str], float]) -> Iterator[KernelLine]:
    kernels = entries["kernels"]
    full_names: dict[str, list[str]] = {}
    for kernel in kernels:
        full_names.setdefault(kernel["short_name"], []).append(kernel["name"] or "")
    words = {short: differences(full) for short, full in full_names.items()}
    for kernel, group in zip(kernels, shown.iter_rows(named=True), strict=True):
        gpu = _gpu(kernel["device"]) if len(entries["devices"]) > 1 else ""
        yield _line(
            kernel,
            group,
            entries["sources"],
            gains,
            differs_in=words[kernel["short_name"]][kernel["name"] or ""],
            gpu=gpu,
        )


def _line(
    kernel: Document,
    group: Mapping[str, Any],
    sources: Sequence[Document],
    gains: Mapping[tuple[int, str], float],
    *,
    differs_in: Sequence[str],
    gpu: str,
) -> KernelLine:
    finding = most_worth(kernel["findings"])
    advice, gain = (
        _advice(finding, gains.get((kernel["id"], finding["id"]))) if finding else (_to_know_more(kernel, sources), "")
    )
    return KernelLine(
        number=kernel["id"],
        name=text.printable(text.kernel_name(kernel)),
        differs_in=tuple(text.shortened(text.printable(word), _MOST_WORD) for word in differs_in),
        gpu=gpu,
        n_launches=group["n_launches"],
        spread=differing(group),
        extremes=extremes(group),
        duration=text.duration(group["duration_ns"]),
        recoverable=text.duration(group["recoverable_ns"]),
        verdict=kernel["verdict"],
        limiter=text.label(kernel["limiter"]) if kernel["limiter"] else "",
        advice=advice,
        where=first_place(finding["where"]) if finding is not None else "",
        gain=gain,
    )


def _advice(finding: Mapping[str, Any], share: float | None) -> tuple[str, str]:
    """Return the first clause of a finding's advice, and in words the share of the group's time that it saves at most."""
    gain = "" if share is None else f"up to {text.share(share)} of its time"
    return first_clause(finding["advice"]), gain


def _to_know_more(kernel: Document, sources: Sequence[Document]) -> str:
    """Return what to print or collect for a kernel without findings; empty where nothing is missing."""
    if is_on_shared_slice(kernel):
        return f"To know why, {SHARED_SLICE}"
    options = list(dict.fromkeys(entry["collect"] for entry in kernel["missing"]))
    if not options:
        return ""
    if raw_page_tells(kernel, sources):
        return f"To know why, print the raw page: ncu {RAW_PAGE}"
    return f"To know why, collect {' '.join(options[:_N_OPTIONS])}"


def first_clause(advice: str) -> str:
    """Return an advice up to its first full stop, colon or semicolon outside parentheses."""
    return _CLAUSE_END.split(advice, maxsplit=1)[0]
