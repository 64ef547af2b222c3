"""The summary of an analysis as plain values: the content of the terminal and Markdown summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import polars as pl

from ncuroof import wording
from ncuroof.diagnosis import load_rules
from ncuroof.present.analysed import Analysed, Record
from ncuroof.present.documents.analysis import document
from ncuroof.present.sentences.actions import Outlook, outlook
from ncuroof.present.sentences.breakdowns import BreakdownLine, by_family, by_outer_range
from ncuroof.present.sentences.clocks import locked_clock_remark
from ncuroof.present.sentences.debug_build import debug_build_sentence
from ncuroof.present.sentences.doubts import doubts_sentence
from ncuroof.present.sentences.failed_launches import failed_sentence
from ncuroof.present.sentences.model_utilisation import mfu_line
from ncuroof.present.sentences.reached_roofs import reached_roof_lines
from ncuroof.present.sentences.report_names import names_of_several, with_folders
from ncuroof.present.sentences.selection import selection_sentence
from ncuroof.present.sentences.wall_time import wall_time_lines
from ncuroof.present.sentences.weighting import not_the_run_sentences, weighting_sentences
from ncuroof.present.texts.kernel_lines import KernelLine, gpu_label, kernel_lines

N_KERNELS = 10
"""Most kernel groups in a summary."""


@dataclass(frozen=True, slots=True)
class VerdictShare:
    """One verdict's part of the run: name, title, share of GPU time (None without times), and launches."""

    verdict: str
    title: str
    share_frac: float | None
    n_launches: int


@dataclass(frozen=True, slots=True)
class Brief:
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
    outlook: Outlook
    kernels: tuple[KernelLine, ...]
    to_know: tuple[str, ...]
    n_more: int
    notes: tuple[str, ...]


def brief(analysed: Analysed) -> Brief:
    """Return the summary of an analysis."""
    groups = analysed.groups
    shown = groups.head(N_KERNELS)
    entries = document(analysed, ids=shown["id"].to_list())
    summary = entries["summary"]
    reports = _report_names(analysed)
    kernels, to_know = _told_once(tuple(kernel_lines(analysed, entries, shown)))
    return Brief(
        title=wording.first_of(reports, 3),
        is_simulated=any(report.session.is_simulated for report in analysed.reports),
        devices=(*_devices(analysed, entries), *reached_roof_lines(analysed)),
        tool=_tool(analysed),
        totals=_totals(analysed),
        mfu=_mfu(analysed, summary),
        wall_time=wall_time_lines(summary.get("weighting"), names_of_several(entries["sources"])),
        shares=tuple(_shares(analysed)),
        families=by_family(summary),
        ranges=by_outer_range(summary),
        outlook=outlook(entries),
        kernels=kernels,
        to_know=to_know,
        n_more=groups.height - shown.height,
        notes=tuple(_notes(analysed, reports, summary)),
    )


def _told_once(lines: tuple[KernelLine, ...]) -> tuple[tuple[KernelLine, ...], tuple[str, ...]]:
    """Return the lines with what to do to know why in place of missing advice, and what several of them would say, said once."""
    n_by_text = Counter(line.to_know for line in lines if line.to_know)
    said_once = tuple(f"For {n} kernels without advice: to know why, {text}" for text, n in n_by_text.items() if n > 1)
    own = (
        replace(line, advice=f"To know why, {line.to_know}") if n_by_text[line.to_know] == 1 else line for line in lines
    )
    return tuple(own), said_once


def _mfu(analysed: Analysed, summary: Record) -> str:
    if not analysed.measurements.kernels["nvtx"].list.len().sum():
        return ""
    utilisation = analysed.expected.utilisation
    return "" if utilisation is None else mfu_line(asdict(utilisation), summary)


def _report_names(analysed: Analysed) -> list[str]:
    return with_folders(
        [(wording.printable(report.folder), wording.printable(report.file)) for report in analysed.reports]
    )


def _devices(analysed: Analysed, entries: Record) -> Iterator[str]:
    kernels = analysed.measurements.kernels
    clocks = kernels.group_by("device").agg(pl.col("sm_clock_hz").median(), pl.col("device.boost_clock_hz").max())
    clock_by_device = {device: (clock, boost) for device, clock, boost in clocks.iter_rows()}
    caveats = kernels.select("id", "device").join(analysed.diagnosis.verdicts.select("id", "caveats"), on="id")
    caveats_by_device = dict(caveats.group_by("device").agg("caveats").iter_rows())
    for number, device in enumerate(entries["devices"]):
        clock, boost = clock_by_device.get(number, (None, None))
        parts = [wording.printable(wording.gpu_name(device))]
        if device["sm_count"] is not None:
            parts.append(f"{device['sm_count']} SMs")
        if clock is not None:
            remark = locked_clock_remark(caveats_by_device.get(number, ()))
            parts.append(
                wording.scaled(clock, "Hz") + (f" (boost {wording.scaled(boost, 'Hz')}{remark})" if boost else "")
            )
        number_of_several = f"{gpu_label(number)}: " if len(entries["devices"]) > 1 else ""
        yield number_of_several + " · ".join(parts)


def _tool(analysed: Analysed) -> str:
    versions = sorted(filter(None, {report.session.ncu_version for report in analysed.reports}))
    sections = list(dict.fromkeys(section for report in analysed.reports for section in report.sections))
    named = f"Nsight Compute {wording.printable(', '.join(versions))}" if versions else ""
    collected = f"{wording.counted(len(sections), 'section')} collected" if sections else ""
    return " · ".join(filter(None, (named, collected)))


def _totals(analysed: Analysed) -> str:
    summary = analysed.summary
    launches = wording.launches(summary.n_kernels)
    if analysed.weighting is not None:
        launches = launches.replace(" ", " profiled ", 1) + f" representing {summary.n_launches}"
    known = summary.duration_ns is not None
    parts = [
        f"{launches}, {wording.duration(summary.duration_ns)} of GPU time" if known else f"{launches}, GPU time unknown"
    ]
    if summary.recoverable_ns:
        parts.append(f"{wording.duration(summary.recoverable_ns)} above the roofline")
    if summary.n_failed:
        parts.append(f"{summary.n_failed} failed to profile")
    return "; ".join(parts)


def _shares(analysed: Analysed) -> Iterator[VerdictShare]:
    titles = load_rules().verdicts
    for name, share in analysed.summary.by_verdict.items():
        yield VerdictShare(name, titles[name].title, share.share_frac, share.n_launches)


def _notes(analysed: Analysed, reports: Sequence[str], summary: Record) -> Iterator[str]:
    weighting = summary.get("weighting")
    command_lines = [report.session.command_line for report in analysed.reports]
    notes = (
        selection_sentence(summary),
        *_of_files(analysed, reports),
        debug_build_sentence(summary),
        failed_sentence(_names_of_failed(analysed)),
        *weighting_sentences(weighting),
        *not_the_run_sentences(weighting, command_lines),
        doubts_sentence(summary),
    )
    return filter(None, notes)


def _of_files(analysed: Analysed, names: Sequence[str]) -> Iterator[str]:
    for report, name in zip(analysed.reports, names, strict=True):
        if report.damage is not None:
            yield f"{name} is damaged: {report.damage}"
        yield from (f"{name}: {line}" for line in report.warnings)


def _names_of_failed(analysed: Analysed) -> list[str]:
    failed = analysed.measurements.kernels.filter("failed").select("short_name", "name")
    return [wording.kernel_name(kernel) for kernel in failed.iter_rows(named=True)]
