"""The summary of an analysis as plain values: the content of the terminal and Markdown summaries.

Each group of launches has a line: its time, what bounds it, and the first thing to do about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import polars as pl

from ncuroof import formatting
from ncuroof.diagnosis import load_rules, with_weights
from ncuroof.present.analysed import Analysed, Record
from ncuroof.present.documents.analysis import document, utilisation_document
from ncuroof.present.explanations.meanings import limiter_label
from ncuroof.present.schemas.analysis import AnalysisDocument, GroupEntry, SourceEntry, SummaryEntry
from ncuroof.present.schemas.kernels import FindingEntry, KernelEntry
from ncuroof.present.sentences.actions import LargestSavings, most_worth, of_what
from ncuroof.present.sentences.breakdowns import (
    BreakdownLine,
    VerdictShare,
    by_family,
    by_outer_range,
    differing,
    extremes,
)
from ncuroof.present.sentences.model_utilisation import mfu_line
from ncuroof.present.sentences.remarks import (
    doubts_sentence,
    locked_clock_remark,
    reached_roof_lines,
    run_remarks,
    to_know_more,
)
from ncuroof.present.sentences.report_names import distinguishing_words, with_folders
from ncuroof.present.sentences.savings import about_share
from ncuroof.present.sentences.source_lines import first_place
from ncuroof.present.sentences.wall_time import wall_time_lines
from ncuroof.present.sentences.weighting import not_the_run_sentences, weighting_sentences
from ncuroof.present.view import RunView

N_KERNELS = 10
"""Most kernel groups in a summary."""

_MOST_WORD = 40
"""Most characters of a word that distinguishes a name from another."""

_STALLS = "stalls"
"""The missing quantity that would say what warps wait for."""

_HALF = 0.5
"""Share of the time above the roofline that a cause has to explain; the threshold of the caveat `stalls_unknown`, too."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run.

    Attributes:
        title: the reports' names.
        is_simulated: whether a report was written by ncuroof, not recorded on a GPU.
        devices: a line per GPU, and one on its measured roofs, if any.
        tool: Nsight Compute version and number of sections; empty where neither is known, as for a printed table.
        totals: launches, GPU time, recoverable time.
        mfu: model FLOP utilisation; empty where no NVTX range names operators, or it is not known.
        wall_time: how long a step takes, and why the GPU is idle in it; empty without a timeline from a counting run.
        shares: time by verdict.
        families: time by source of the kernels.
        ranges: time by NVTX range; empty without ranges.
        outlook: the largest potential savings over the run.
        kernels: the groups with the most recoverable time. Those without advice say what to do to know why, unless `to_know` does.
        to_know: the same, once for all kernels for which several would say it.
        n_more: groups that are not shown.
        notes: what a reader must know before trusting the numbers.
    """

    title: str
    is_simulated: bool
    devices: tuple[str, ...]
    tool: str
    totals: str
    mfu: str
    wall_time: tuple[str, ...]
    shares: tuple[VerdictShare, ...]
    families: tuple[BreakdownLine, ...]
    ranges: tuple[BreakdownLine, ...]
    outlook: LargestSavings
    kernels: tuple[KernelLine, ...]
    to_know: tuple[str, ...]
    n_more: int
    notes: tuple[str, ...]


def run_summary(analysed: Analysed, *, n_kernels: int | None = N_KERNELS) -> RunSummary:
    """Return the summary of an analysis.

    Args:
        analysed: the analysis.
        n_kernels: most groups to list; None for all.
    """
    groups = analysed.groups
    shown = groups if n_kernels is None else groups.head(n_kernels)
    view = RunView(document(analysed, ids=shown["id"].to_list()))
    entries, summary = view.document, view.summary
    reports = report_names(analysed)
    kernels, to_know = _told_once(tuple(kernel_lines(analysed, entries, shown)))
    return RunSummary(
        title=formatting.first_of(reports, 3),
        is_simulated=view.is_simulated,
        devices=(*_devices(analysed, entries), *reached_roof_lines(analysed)),
        tool=_tool(analysed),
        totals=_totals(analysed),
        mfu=_mfu(analysed, summary),
        wall_time=wall_time_lines(summary.get("weighting"), view.reports),
        shares=view.shares,
        families=by_family(summary),
        ranges=by_outer_range(summary),
        outlook=view.outlook,
        kernels=kernels,
        to_know=to_know,
        n_more=groups.height - shown.height,
        notes=tuple(notes(analysed, reports, summary)),
    )


def _told_once(lines: tuple[KernelLine, ...]) -> tuple[tuple[KernelLine, ...], tuple[str, ...]]:
    """Return the lines with what to do to know why in place of missing advice, and what several of them would say, said once."""
    n_by_text = Counter(line.to_know for line in lines if line.to_know)
    said_once = tuple(f"For {n} kernels without advice: to know why, {text}" for text, n in n_by_text.items() if n > 1)
    own = (
        replace(line, advice=f"To know why, {line.to_know}") if n_by_text[line.to_know] == 1 else line for line in lines
    )
    return tuple(own), said_once


def _mfu(analysed: Analysed, summary: SummaryEntry) -> str:
    utilisation = utilisation_document(analysed)
    return "" if utilisation is None else mfu_line(utilisation, summary)


def report_names(analysed: Analysed) -> list[str]:
    """Return what to call the reports: their names, with folders where several share one."""
    return with_folders(
        [(formatting.printable(report.folder), formatting.printable(report.file)) for report in analysed.reports]
    )


def _devices(analysed: Analysed, entries: AnalysisDocument) -> Iterator[str]:
    kernels = analysed.measurements.kernels
    clocks = kernels.group_by("device").agg(pl.col("sm_clock_hz").median(), pl.col("device.boost_clock_hz").max())
    clock_by_device = {device: (clock, boost) for device, clock, boost in clocks.iter_rows()}
    caveats = kernels.select("id", "device").join(analysed.diagnosis.verdicts.select("id", "caveats"), on="id")
    caveats_by_device = dict(caveats.group_by("device").agg("caveats").iter_rows())
    for number, device in enumerate(entries["devices"]):
        clock, boost = clock_by_device.get(number, (None, None))
        parts = [formatting.printable(formatting.gpu_name(device))]
        if device["sm_count"] is not None:
            parts.append(f"{device['sm_count']} SMs")
        if clock is not None:
            remark = locked_clock_remark(caveats_by_device.get(number, ()))
            parts.append(
                formatting.scaled(clock, "Hz") + (f" (boost {formatting.scaled(boost, 'Hz')}{remark})" if boost else "")
            )
        number_of_several = f"{gpu_label(number)}: " if len(entries["devices"]) > 1 else ""
        yield number_of_several + " · ".join(parts)


def _tool(analysed: Analysed) -> str:
    versions = sorted(filter(None, {report.session.ncu_version for report in analysed.reports}))
    sections = list(dict.fromkeys(section for report in analysed.reports for section in report.sections))
    named = f"Nsight Compute {formatting.printable(', '.join(versions))}" if versions else ""
    collected = f"{formatting.counted(len(sections), 'section')} collected" if sections else ""
    return " · ".join(filter(None, (named, collected)))


def _totals(analysed: Analysed) -> str:
    summary = analysed.summary
    launches = formatting.launches(summary.n_kernels)
    if analysed.weighting is not None and analysed.weighting.is_summary:
        launches = f"{formatting.launches(summary.n_launches)} in {formatting.counted(summary.n_kernels, 'row')}"
    elif analysed.weighting is not None:
        launches = launches.replace(" ", " profiled ", 1) + f" representing {summary.n_launches}"
    known = summary.duration_ns is not None
    parts = [
        f"{launches}, {formatting.duration(summary.duration_ns)} of GPU time"
        if known
        else f"{launches}, GPU time unknown"
    ]
    if summary.recoverable_ns:
        parts.append(f"{formatting.duration(summary.recoverable_ns)} above the roofline")
    if summary.n_failed:
        parts.append(f"{summary.n_failed} failed to profile")
    return "; ".join(parts)


def notes(analysed: Analysed, reports: Sequence[str], summary: SummaryEntry) -> Iterator[str]:
    """Yield what a reader must know before trusting the numbers, the most important first."""
    weighting = summary.get("weighting")
    command_lines = [report.session.command_line for report in analysed.reports]
    remarks = run_remarks(summary, _names_of_failed(analysed))
    said = (
        *(remark.text for remark in remarks if not remark.is_warning),
        *_of_files(analysed, reports),
        *(remark.text for remark in remarks if remark.is_warning),
        *not_the_run_sentences(weighting, command_lines),
        doubts_sentence(summary),
        *weighting_sentences(weighting),
    )
    return filter(None, said)


def _of_files(analysed: Analysed, names: Sequence[str]) -> Iterator[str]:
    for report, name in zip(analysed.reports, names, strict=True):
        if report.damage is not None:
            yield f"{name} is damaged: {report.damage}"
        yield from (f"{name}: {line}" for line in report.warnings)


def _names_of_failed(analysed: Analysed) -> list[str]:
    failed = analysed.measurements.kernels.filter("failed").select("short_name", "name")
    return [formatting.kernel_name(kernel) for kernel in failed.iter_rows(named=True)]


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


_SAVED = ("gain_ns", "expected_ns", "expected_low_ns", "expected_high_ns")


def _savings(analysed: Analysed, shown: pl.DataFrame) -> dict[tuple[int, str], Record]:
    """Return, by group and finding, what the finding's launches in it save, and the time of the group as `whole_ns`.

    Left out where a counting run found no time in the group: timelines in whole microseconds round short launches to 0.
    """
    launches = shown.select(group="id", whole_ns="duration_ns", id="launches").explode("id")
    found = with_weights(launches, analysed.weights).join(analysed.diagnosis.findings, on="id").drop_nulls("gain_ns")
    saved = found.group_by("group", "finding").agg(
        pl.col("whole_ns").first(), *((pl.col(name) * pl.col("weight")).sum() for name in _SAVED)
    )
    return {(row["group"], row["finding"]): row for row in saved.filter(pl.col("whole_ns") > 0).to_dicts()}


def kernel_lines(analysed: Analysed, entries: AnalysisDocument, shown: pl.DataFrame) -> Iterator[KernelLine]:
    """Yield the lines of groups.

    Args:
        analysed: the analysis.
        entries: the document of the launches that represent the groups, in the same order.
        shown: rows of GROUPS.
    """
    savings = _savings(analysed, shown)
    kernels = entries["kernels"]
    words = distinguishing_words(kernels)
    for kernel, group, differs_in in zip(kernels, cast("list[GroupEntry]", shown.to_dicts()), words, strict=True):
        gpu = gpu_label(kernel["device"]) if len(entries["devices"]) > 1 else ""
        yield _line(kernel, group, entries["sources"], savings, differs_in=differs_in, gpu=gpu)


def _line(
    kernel: KernelEntry,
    group: GroupEntry,
    sources: Sequence[SourceEntry],
    savings: Mapping[tuple[int, str], Record],
    *,
    differs_in: Sequence[str],
    gpu: str,
) -> KernelLine:
    finding = most_worth(kernel["findings"])
    advice, gain = (
        (formatting.first_clause(finding["advice"]), _gain(finding, kernel, savings)) if finding else ("", "")
    )
    if finding and gain and _leaves_most(finding, kernel) and (more := to_know_more(kernel, sources, only=_STALLS)):
        gain = f"{gain}; to know the rest, {more}"
    return KernelLine(
        number=kernel["id"],
        name=formatting.printable(formatting.kernel_name(kernel)),
        differs_in=tuple(formatting.shortened(formatting.printable(word), _MOST_WORD) for word in differs_in),
        gpu=gpu,
        n_launches=group["n_launches"],
        spread=differing(group),
        extremes=extremes(group),
        duration=formatting.duration(group["duration_ns"]),
        recoverable=formatting.duration(group["recoverable_ns"]),
        verdict=kernel["verdict"],
        limiter=limiter_label(kernel) or "",
        advice=advice,
        to_know="" if finding else to_know_more(kernel, sources),
        where=first_place(finding["where"]) if finding is not None else "",
        gain=gain,
    )


def _gain(finding: FindingEntry, kernel: KernelEntry, savings: Mapping[tuple[int, str], Record]) -> str:
    """Return in words the share of the group's time that a finding saves; empty where it is not known.

    Where it asks for a type of lower precision, also what the best finding saves that keeps the type.
    """
    saved = savings.get((kernel["id"], finding["id"]))
    if saved is None:
        return ""
    gain = f"{about_share(saved, saved['whole_ns'])} {of_what(finding)}"
    kept = _best_in_its_type(kernel, savings) if load_rules().findings[finding["id"]].lowers_precision else None
    return f"{gain}; with its type kept, {kept}" if kept else gain


def _best_in_its_type(kernel: KernelEntry, savings: Mapping[tuple[int, str], Record]) -> str:
    """Return the finding that saves most of a group's time at its present precision, and how much; empty without one."""
    rules = load_rules().findings
    found = {
        finding["title"]: saved
        for finding in kernel["findings"]
        if (saved := savings.get((kernel["id"], finding["id"]))) and not rules[finding["id"]].lowers_precision
    }
    best = max(found, key=lambda title: found[title]["expected_ns"], default=None)
    return "" if best is None else f"{about_share(found[best], found[best]['whole_ns'])}: {best.split(':')[0]}"


def _leaves_most(finding: FindingEntry, kernel: KernelEntry) -> bool:
    """Return whether a finding explains less than half of the time above the roofline of a kernel that is latency-bound."""
    above_ns = kernel["recoverable_ns"]
    return kernel["verdict"] == "latency" and above_ns is not None and (finding["gain_ns"] or 0.0) < _HALF * above_ns
