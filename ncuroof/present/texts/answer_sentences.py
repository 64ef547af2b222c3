"""The answer of a run in a sentence or two, from a document: what takes the time, what limits it, and what saves most.

All times are of a step where steps were counted, else of the run: a list with shares of several wholes cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncuroof import formatting
from ncuroof.diagnosis import load_rules
from ncuroof.enums import Verdict
from ncuroof.present.explanations.meanings import limiter_in_plain_words, verdicts_in_plain_words
from ncuroof.present.schemas.analysis import ActionEntry, AnalysisDocument, SummaryEntry
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.actions import step_ns, whole, whole_time_ns, without_gain
from ncuroof.present.sentences.collect_options import (
    RAW_PAGE,
    SHARED_SLICE,
    is_on_shared_slice,
    raw_page_tells,
)
from ncuroof.present.sentences.remarks import come_first, debug_build_sentence, to_know_more
from ncuroof.present.sentences.report_names import names_of_several
from ncuroof.present.sentences.savings import saves
from ncuroof.present.sentences.wall_time import told_time, whose_time

_MOSTLY, SOME = 0.5, 0.1
"""Shares of a time from which on it is most of it, and worth a sentence."""

_AT_THE_ROOF = 0.6
"""Share of the time that the roofline needs from which on a run without savings counts as near the roof (a choice)."""


def answer_sentences(entries: AnalysisDocument, actions: Sequence[ActionEntry]) -> tuple[str, str]:
    """Return the answer, and what else belongs to it.

    Args:
        entries: a document `ncuroof.analysis/1`, which may lack kernels but those to look at.
        actions: its actions that are worth a row.
    """
    summary = entries["summary"]
    return _unusable(summary) or _of_step(entries, actions) or _of_kernels(entries, actions)


def _unusable(summary: SummaryEntry) -> tuple[str, str] | None:
    """Return why nothing can be said of the run, or not yet; None where something can."""
    if summary["n_kernels"] == summary["n_failed"]:
        if "selection" in summary:
            return (
                "None of the selected launches was measured.",
                "ncu failed to profile them; other launches are not affected.",
            )
        return "No launch was measured.", "Nothing can be said about this run before it is recorded again."
    if come_first(summary["debug_build_frac"]):
        said = debug_build_sentence(summary)
        return f"{said[0].upper()}{said[1:]}.", ""
    return None


def _of_kernels(entries: AnalysisDocument, actions: Sequence[ActionEntry]) -> tuple[str, str]:
    """Return the answer of a run without a timeline."""
    summary = entries["summary"]
    if _unknown_frac(summary) > _MOSTLY:
        return _counters_missing(entries, summary)
    if summary["duration_ns"] is None:
        return _takes(summary), f"{_most_launches(summary)} {_first_advice(entries)}".strip()
    is_one = summary["n_kernels"] == 1 == len(entries["kernels"])
    takes = _of_one(entries["kernels"][0], summary) if is_one else _takes(summary)
    return takes, _what_saves(entries, actions)


def _of_one(kernel: KernelEntry, summary: SummaryEntry) -> str:
    """Return how long the only kernel takes, and what bounds it, in plain words."""
    launches = "" if summary["n_launches"] == 1 else f" in {formatting.launches(summary['n_launches'])}"
    name = formatting.printable(formatting.kernel_name(kernel))
    limiter = f": {limiter_in_plain_words(kernel)}" if kernel["limiter"] else ""
    verdict = load_rules().verdicts[kernel["verdict"]].title
    return f"{name} takes {formatting.duration(summary['duration_ns'])}{launches}; it is {verdict}{limiter}."


def _most_launches(summary: SummaryEntry) -> str:
    """Return by what most launches are bound, where no times are known; empty where none has a verdict."""
    counts = {name: part["n_launches"] for name, part in summary["by_verdict"].items() if name != Verdict.UNKNOWN.value}
    if not counts:
        return ""
    verdict = max(counts, key=lambda name: counts[name])
    whose = "It is" if summary["n_launches"] == 1 else f"{counts[verdict]} of them are"
    return f"{whose} {load_rules().verdicts[verdict].title}; without a duration, what can be saved is not known."


def _first_advice(entries: AnalysisDocument) -> str:
    """Return the first advice for the longest kernel that has one; empty without one."""
    advised = [kernel for kernel in entries["kernels"] if kernel["findings"]]
    if not advised:
        return ""
    longest = max(advised, key=lambda kernel: kernel["duration_ns"] or 0.0)
    return f"To do: {formatting.first_sentence(longest['findings'][0]['advice'])}"


def _takes(summary: SummaryEntry) -> str:
    launches = formatting.launches(summary["n_launches"])
    launches = f"{launches[0].upper()}{launches[1:]}"
    if summary["duration_ns"] is None:
        return (
            f"{launches}; the report does not say how long {'it takes' if summary['n_launches'] == 1 else 'they take'}."
        )
    verb = "takes" if summary["n_launches"] == 1 else "take"
    return f"{launches} {verb} {formatting.duration(summary['duration_ns'])} of GPU time{_mostly(summary)}."


def _mostly(summary: SummaryEntry) -> str:
    """Return what limits most of the time: ", 62 % of it limited by too little work in flight"; empty where nothing stands out."""
    shares = {name: part["share_frac"] or 0.0 for name, part in summary["by_verdict"].items()}
    most = max(shares, key=lambda name: shares[name], default=None)
    if most is None or most == Verdict.UNKNOWN.value or shares[most] < _MOSTLY:
        return ""
    how_much = "" if (share := formatting.percent(shares[most])) == "100 %" else f" {share} of it"
    return f",{how_much} limited by {verdicts_in_plain_words()[most]}"


def _what_saves(entries: AnalysisDocument, actions: Sequence[ActionEntry]) -> str:
    """Return what the first change saves; where nothing saves anything, how near the roof the run is, and what is left to do."""
    summary = entries["summary"]
    if actions:
        return _first_is(actions, summary)
    duration_ns, recoverable_ns = summary["duration_ns"], summary["recoverable_ns"]
    if not duration_ns or recoverable_ns is None:
        return "Nothing that ncuroof knows would save much of it."
    least_ns = max(duration_ns - recoverable_ns, 0.0)
    found = summary["outlook"]
    fusion = without_gain(found["near_dram_roof_frac"], found["too_short_frac"])
    if least_ns < _AT_THE_ROOF * duration_ns:
        needs = f"These bytes and this arithmetic need only {formatting.duration(least_ns)} of it on this GPU"
        return f"{needs}; {fusion}." if fusion else f"{needs}, but no counter in the report says what takes the rest."
    least = f"{formatting.duration(least_ns)} of it is the least that these bytes and this arithmetic need on this GPU"
    rest = f"; {fusion}" if fusion else ": move fewer bytes or compute less to save more"
    return f"The kernels are near the roof: {least}{rest}."


def _counters_missing(entries: AnalysisDocument, summary: SummaryEntry) -> tuple[str, str]:
    """Return that most of the time has no verdict, and how to get one."""
    unknown = formatting.percent(_unknown_frac(summary))
    of_time = "" if unknown == "100 %" else f" for {unknown} of the GPU time"
    lead = f"The report lacks the counters that say what limits the kernels{of_time}."
    how = _how_to_record(entries)
    return f"{lead} {how}".rstrip(), f"{_takes(summary)} {_first_advice(entries)}".strip()


def _how_to_record(entries: AnalysisDocument) -> str:
    unknown = [each for each in entries["kernels"] if each["verdict"] == Verdict.UNKNOWN.value and not each["failed"]]
    if not unknown:
        return ""
    kernel = max(unknown, key=lambda each: each["duration_ns"] or 0.0)
    if is_on_shared_slice(kernel):
        return f"{SHARED_SLICE[0].upper()}{SHARED_SLICE[1:]}."
    if raw_page_tells(kernel, entries["sources"]):
        return f"Print everything that was collected: ncu --import REPORT {RAW_PAGE}."
    options = to_know_more(kernel, entries["sources"]).removeprefix("collect ")
    return f"Record again with ncuroof profile, or with ncu {options}." if options else ""


def _unknown_frac(summary: SummaryEntry) -> float:
    """Return the share of the time without a verdict, of the launches where no time is known."""
    unknown = summary["by_verdict"].get(Verdict.UNKNOWN.value)
    if unknown is None:
        return 0.0
    share_frac: float | None = unknown["share_frac"]
    return unknown["n_launches"] / max(summary["n_launches"], 1) if share_frac is None else share_frac


def _of_step(entries: AnalysisDocument, actions: Sequence[ActionEntry]) -> tuple[str, str] | None:
    """Return how long a step takes, for how much of it the GPU waits, and why; None where no timeline tells."""
    summary = entries["summary"]
    time = told_time(summary.get("weighting"))
    if time is None or "selection" in summary:
        return None
    idle_ns = time["idle_frac"] * time["duration_ns"]
    share = formatting.percent(time["idle_frac"])
    busy, idle = formatting.duration(time["duration_ns"] - idle_ns), formatting.duration(idle_ns)
    which = whose_time(time, names_of_several(entries["sources"]))
    takes = f"{which[0].upper()}{which[1:]} takes {formatting.duration(time['duration_ns'])}."
    if time["idle_frac"] < SOME:
        return f"{takes} The GPU works for nearly all of it.", _first_is(actions, summary, is_of_step=True)
    longest = max(
        (part for part in time["parts"] if part["is_idle"]), key=lambda part: part["share_frac"], default=None
    )
    cause = ""
    if longest:
        word = "mostly" if longest["share_frac"] > _MOSTLY * time["idle_frac"] else "longest"
        cause = f", {word} {longest['title'].removeprefix('waiting ')}"
    lead = f"{takes} The GPU works for {busy} (kernels and copies) and waits for {idle} ({share}){cause}."
    if not time["n_steps"]:
        return lead, "That includes start-up and warm-up: ncuroof profile --step N measures a later step alone."
    if actions and actions[0]["finding"] is None:
        return lead, "Start there: no change to a kernel is expected to save as much."
    return lead, _first_is(actions, summary, is_of_step=True)


def _first_is(actions: Sequence[ActionEntry], summary: SummaryEntry, *, is_of_step: bool = False) -> str:
    """Return what the first change saves; after the time of a step, of which time, if not of that. Empty without one."""
    if not actions:
        return ""
    per_work = " of the time per unit of work" if actions[0]["needs_more_work"] else ""
    of_what = "" if step_ns(summary) or not is_of_step else f" of {whole(summary)}"
    return f"The first change below saves {saves(actions[0], whole_time_ns(summary))}{per_work}{of_what}."


def step_or_gpu_time(summary: SummaryEntry) -> str:
    """Return the time that savings are part of: "a step of 13.9 ms", "3.35 ms"; empty where it is not known."""
    whole_ns = whole_time_ns(summary)
    if whole_ns is None:
        return ""
    of_step = "selection" not in summary and step_ns(summary) is not None
    return f"a step of {formatting.duration(whole_ns)}" if of_step else formatting.duration(whole_ns)
