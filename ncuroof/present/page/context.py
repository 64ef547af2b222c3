"""The template's context: frozen, with every field documented and every number already written as text."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from ncuroof import formatting
from ncuroof.diagnosis import Rules
from ncuroof.present.page.changes import RunChanges, changes
from ncuroof.present.page.kernel_table import KernelRow, table_columns, table_rows, top_rows
from ncuroof.present.page.methods import Methods, methods
from ncuroof.present.page.operators import Operators, operators
from ncuroof.present.page.range_tree import RangeLine
from ncuroof.present.schemas.analysis import AnalysisDocument, DeviceEntry, SourceEntry, SummaryEntry, WallTimeEntry
from ncuroof.present.schemas.comparison import ComparisonDocument
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.actions import LargestSavings, whole_time_ns
from ncuroof.present.sentences.breakdowns import BreakdownLine, VerdictShare, by_family
from ncuroof.present.sentences.model_utilisation import mfu_share, mfu_value
from ncuroof.present.sentences.remarks import (
    Doubt,
    RunRemark,
    doubted,
    doubts_claim,
    locked_clock_remark,
    run_remarks,
)
from ncuroof.present.sentences.savings import about, saves
from ncuroof.present.sentences.wall_time import WallTimeTable, told_time, wall_time_tables, whose_time
from ncuroof.present.sentences.weighting import not_the_run_sentences, weighting_sentences
from ncuroof.present.texts.answer_sentences import step_or_gpu_time
from ncuroof.present.view import RunView, most_recoverable_first, n_represented

_OF_REPORTS = "The outermost lines are the reports."
_OTHER_RANGES = "A launch counts with the launches that it represents, which may be in other ranges."

_MOST_ROWS = 30
"""Most rows in the static HTML of the table, which the script replaces."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A report file."""

    file: Annotated[str, "file name"]
    facts: Annotated[Sequence[tuple[str, str]], "label and value: versions and collection settings"]
    command_line: Annotated[str, "command line of ncu, or empty"]
    n_sections: Annotated[str, "number of collected sections, in words"]
    sections: Annotated[Sequence[str], "identifiers of the collected sections"]
    damage: Annotated[str, "what is wrong with the file, or empty"]
    is_simulated: Annotated[bool, "whether ncuroof wrote it"]


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part of a step's time."""

    title: Annotated[str, "what the GPU does, or why it waits"]
    share: Annotated[str, "of the step"]
    duration: Annotated[str, "how long"]
    width: Annotated[str, "width of its part of the bar, in thousandths"]
    offset: Annotated[str, "start of its part of the bar, in thousandths"]
    is_idle: Annotated[bool, "whether the GPU waits"]


@dataclass(frozen=True, slots=True)
class PageContext:
    """All variables of the template, besides `assets`."""

    title: Annotated[str, "of the page"]
    chips: Annotated[Sequence[str], "the GPUs, and how many launches were profiled, each in a few words"]
    is_simulated: Annotated[bool, "whether ncuroof wrote any of the reports, instead of recording it on a GPU"]
    sources: Annotated[Sequence[SourceFacts], "the report files"]
    devices: Annotated[
        Sequence[tuple[str, Sequence[tuple[str, str]]]], "name of each GPU, with label and value of its facts"
    ]
    answer: Annotated[tuple[str, str], "what takes the time, and what else belongs to it, or empty"]
    figures: Annotated[Sequence[tuple[str, str]], "up to three numbers of the run, each with what it is"]
    step: Annotated[
        Sequence[StepPart], "the parts of a step, or of the run; none where no timeline tells that the GPU waits"
    ]
    step_title: Annotated[str, "how long it takes"]
    remarks: Annotated[Sequence[RunRemark], "what to know of the run before trusting its numbers"]
    weighting: Annotated[Sequence[str], "sentences on how sums are weighted, or none"]
    doubts: Annotated[str, "the remark on verdicts that are less certain; empty where there are few"]
    less_certain: Annotated[str, "the share of the time for which they are, in a few words, or empty"]
    doubted: Annotated[Sequence[Doubt], "the caveats for which they are"]
    not_the_run: Annotated[Sequence[str], "sentences on why sums differ from those of the run, or none"]
    totals: Annotated[Sequence[tuple[str, str]], "label and value of sums over the run"]
    wall_times: Annotated[Sequence[WallTimeTable], "what the GPU does in a step, for each counting run with a timeline"]
    verdict_shares: Annotated[Sequence[VerdictShare], "time by verdict"]
    time_by_verdict: Annotated[str, "the same as one sentence, for screen readers"]
    changes: Annotated[RunChanges | None, "what changed since another run, on the page of a comparison"]
    operators: Annotated[Operators | None, "expected against measured, where NVTX ranges name operators and shapes"]
    families: Annotated[Sequence[BreakdownLine], "time by family, the longest first"]
    ranges: Annotated[Sequence[RangeLine], "time by NVTX range, none where there are no ranges"]
    ranges_remark: Annotated[str, "what the time of a range includes besides its own launches, or empty"]
    outlook: Annotated[LargestSavings, "the largest potential savings over the run"]
    top_kernels: Annotated[Sequence[KernelRow], "the groups of equal launches with the most recoverable time"]
    columns: Annotated[Sequence[tuple[str, str, str]], "key, title and kind (number or text) of the table's columns"]
    rows: Annotated[
        Sequence[KernelRow], "the first rows of the table, most recoverable time first, for browsers without scripts"
    ]
    n_more: Annotated[int, "number of further rows"]
    methods: Annotated[Methods, "how the numbers were obtained"]


def page_context(view: RunView, rules: Rules, comparison: ComparisonDocument | None = None) -> PageContext:
    """Return the template's context for an analysis, and for a comparison with that run as the one after."""
    document, kernels, summary = view.document, view.kernels, view.summary
    weighting = summary.get("weighting")
    rows = most_recoverable_first(view.rows)
    sources = document["sources"]
    changed = changes(comparison) if comparison is not None else None
    title = sources[0]["file"] if len(sources) == 1 else f"{len(sources)} reports"
    return PageContext(
        title=changed.title if changed else title,
        chips=_chips(document),
        is_simulated=view.is_simulated,
        sources=[_source(source) for source in sources],
        devices=[_device(index, device, kernels) for index, device in enumerate(document["devices"])],
        answer=view.answer,
        figures=_figures(view),
        step=list(_step(view.step)),
        step_title=_step_title(summary, view.reports),
        remarks=run_remarks(summary, [formatting.kernel_name(kernel) for kernel in kernels if kernel["failed"]]),
        weighting=weighting_sentences(weighting),
        doubts=doubts_claim(summary),
        less_certain=f"less certain: {formatting.share(summary['doubted_frac'])}" if doubts_claim(summary) else "",
        doubted=doubted(summary),
        not_the_run=not_the_run_sentences(weighting, [source["command_line"] for source in sources]),
        totals=_totals(document),
        wall_times=wall_time_tables(weighting, view.reports),
        verdict_shares=view.shares,
        time_by_verdict="; ".join(f"{share.title} {share.share} ({share.duration})" for share in view.shares),
        changes=changed,
        operators=operators(document["expected"], summary),
        families=by_family(summary),
        ranges=view.ranges.lines,
        ranges_remark=_ranges_remark(document),
        outlook=view.outlook,
        top_kernels=top_rows(view, rules),
        columns=table_columns(kernels),
        rows=table_rows(view, rules, rows[:_MOST_ROWS]),
        n_more=max(len(rows) - _MOST_ROWS, 0),
        methods=methods(document, rules),
    )


def _chips(document: AnalysisDocument) -> list[str]:
    """Return the GPUs, each name once, and how many of the run's launches were profiled."""
    names = dict.fromkeys(formatting.gpu_name(device) for device in document["devices"])
    summary, weighting = document["summary"], document["summary"].get("weighting")
    n_kernels = summary["n_kernels"]
    whole = f" of {summary['n_launches']} launches" if weighting else f" {'launch' if n_kernels == 1 else 'launches'}"
    profiled = f"{n_kernels}{whole}" + (" profiled" if weighting and not weighting["is_summary"] else "")
    return [*names, profiled]


def _figures(view: RunView) -> list[tuple[str, str]]:
    """Return the expected saving of the first change, how well the tensor cores are used, and how much is above the roofline."""
    summary, expected = view.summary, view.document["expected"]
    utilisation = None if expected is None else expected["utilisation"]
    found = []
    if actions := view.actions:
        number = view.document["actions"].index(actions[0]) + 1
        per_work = " per unit of work" if actions[0]["needs_more_work"] else ""
        what = (
            f"expected saving{per_work} of change {number}"
            if actions[0]["expected_ns"]
            else f"saved by change {number}"
        )
        whole_ns = whole_time_ns(summary)
        saved = about(actions[0], whole_ns) if actions[0]["expected_ns"] else saves(actions[0], whole_ns)
        found.append((saved, what + (f", of {step_or_gpu_time(summary)}" if step_or_gpu_time(summary) else "")))
    if utilisation is not None:
        found.append((mfu_share(utilisation), f"of the {formatting.label(utilisation['precision'])} peak (MFU)"))
    if summary["recoverable_ns"] is not None and summary["duration_ns"]:
        share = formatting.share(summary["recoverable_ns"] / summary["duration_ns"])
        found.append((share, "of kernel time is above the roofline"))
    return found


def _step_title(summary: SummaryEntry, reports: Sequence[str]) -> str:
    """Return whose time the bar shows, and how long it is; empty without a timeline."""
    time = told_time(summary.get("weighting"))
    return "" if time is None else f"{whose_time(time, reports)}, {formatting.duration(time['duration_ns'])}"


def _step(time: WallTimeEntry | None) -> Iterable[StepPart]:
    """Yield the parts of a step: what the GPU works, and why it waits, as long as it does so without a profiler."""
    if time is None:
        return
    shares = {
        is_idle: sum(part["share_frac"] for part in time["parts"] if part["is_idle"] is is_idle)
        for is_idle in (False, True)
    }
    offset = 0.0
    for part in time["parts"]:
        of_kind = time["idle_frac"] if part["is_idle"] else 1 - time["idle_frac"]
        share_frac = part["share_frac"] / shares[part["is_idle"]] * of_kind if shares[part["is_idle"]] else 0.0
        yield StepPart(
            title=part["title"],
            share=formatting.share(share_frac),
            duration=formatting.duration(share_frac * time["duration_ns"]),
            width=f"{1000 * share_frac:.1f}",
            offset=f"{offset:.1f}",
            is_idle=part["is_idle"],
        )
        offset += 1000 * share_frac


def _ranges_remark(document: AnalysisDocument) -> str:
    represents_others = any(number != 1 for number in n_represented(document["kernels"]) or ())
    parts = [_OF_REPORTS if len(document["sources"]) > 1 else "", _OTHER_RANGES if represents_others else ""]
    return " ".join(filter(None, parts))


def _source(source: SourceEntry) -> SourceFacts:
    facts = {
        "Nsight Compute": source["ncu_version"],
        "driver": source["driver_version"],
        "CUDA": source["cuda_version"],
        "clock control": source["clock_control"],
        "cache control": source["cache_control"],
        "replay": source["replay_mode"],
    }
    return SourceFacts(
        file=source["file"],
        facts=[(label, value) for label, value in facts.items() if value],
        command_line=source["command_line"] or "",
        n_sections=formatting.counted(len(source["sections"]), "section"),
        sections=source["sections"],
        damage=source["damage"] or "",
        is_simulated=source["simulated"],
    )


def _device(index: int, device: DeviceEntry, kernels: Sequence[KernelEntry]) -> tuple[str, Sequence[tuple[str, str]]]:
    own = [kernel for kernel in kernels if kernel["device"] == index]
    clocks = [kernel["sm_clock_hz"] for kernel in own if kernel["sm_clock_hz"]]
    low, middle, high = (
        formatting.quantity(choose(clocks), "hz") if clocks else formatting.MISSING
        for choose in (min, statistics.median, max)
    )
    lock = locked_clock_remark([kernel["caveats"] for kernel in own])
    return formatting.gpu_name(device), [
        ("SMs", formatting.quantity(device["sm_count"], "count")),
        ("compute capability", device["compute_capability"] or formatting.MISSING),
        ("SM clock, measured", (middle if low == high else f"{middle} (median; {low} to {high})") + lock),
        ("data sheet", device["profile"] or "none for this GPU"),
    ]


def _totals(document: AnalysisDocument) -> list[tuple[str, str]]:
    summary, expected = document["summary"], document["expected"]
    utilisation = None if expected is None else expected["utilisation"]
    mfu = [] if utilisation is None else [("MFU", mfu_value(utilisation, summary))]
    duration_ns, recoverable_ns = summary["duration_ns"], summary["recoverable_ns"]
    recorded = formatting.quantity(summary["n_kernels"], "count")
    weighting = summary.get("weighting")
    what = " rows of a summary" if weighting and weighting["is_summary"] else " profiled"
    part = f" ({formatting.share(recoverable_ns / duration_ns)})" if recoverable_ns is not None and duration_ns else ""
    return [
        ("GPU time", formatting.duration(duration_ns)),
        ("above the roofline", formatting.duration(recoverable_ns) + part),
        ("launches", recorded + (f"{what}, representing {summary['n_launches']}" if weighting else "")),
        ("failed to profile", formatting.quantity(summary["n_failed"], "count")),
        *mfu,
    ]
