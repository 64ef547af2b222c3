"""The largest potential savings over the run, and what they save together, as text ready to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ncuroof import formatting
from ncuroof.diagnosis import LATE_LAUNCHES, LEAST_TIMED_FRAC, load_rules
from ncuroof.present.schemas.analysis import ActionEntry, AnalysisDocument, SummaryEntry, WeightingEntry
from ncuroof.present.schemas.kernels import FindingEntry
from ncuroof.present.sentences.savings import about, at_most
from ncuroof.present.sentences.wall_time import wall_times

_LEAST_SPEEDUP, _MOST_SPEEDUP = 1.005, 100
"""Smaller speedup bounds round to none; larger ones are not reported either: they only say that the GPU is almost unused."""

PER_WORK = "if more blocks run at once"
"""Condition of savings that need more parallel work, such as a larger batch; a run of the same work gains nothing."""

_BEYOND_ROOFLINE = "this exceeds the time above the roofline because these changes also lower the roofline time"

_WORTH_TELLING, _LEAST_PART = 0.1, 0.01
"""Least share of the time for a sentence, and for a part of that sentence."""

_LEAST_SAVED = 0.005
"""Smallest share of the whole, saved at most, for a row of its own; the first row needs none of it to be the answer."""


@dataclass(frozen=True, slots=True)
class ActionLine:
    """A change that saves time: in one or more launches, or while the GPU idles."""

    number: Annotated[int, "in the list of all changes"]
    expected: Annotated[str, "what it is expected to save of `LargestSavings.whole`, as a time"]
    most: Annotated[str, "the most that it saves, as a time and a share"]
    title: Annotated[str, "of the finding, or why the GPU idles"]
    launches: Annotated[str, "number of launches, in words; empty for idle time"]
    finding: Annotated[str, "id of the finding, by which the page selects the launches; empty for idle time"]
    condition: Annotated[str, "condition of the savings, or empty"]
    advice: Annotated[str, "what to do"]
    expected_width: Annotated[str, "expected saving on the scale of the list, in thousandths of its whole"]
    most_width: Annotated[str, "the most that it saves, likewise"]


@dataclass(frozen=True, slots=True)
class LargestSavings:
    """The largest potential savings over the run."""

    actions: Annotated[Sequence[ActionLine], "the actions with the largest expected savings; empty where none is known"]
    whole: Annotated[str, "what the savings are part of"]
    together: Annotated[str, "what the actions save together, or empty"]
    beyond_roofline: Annotated[str, "why that exceeds the time above the roofline, or empty"]
    unjudged: Annotated[str, "how much of the time has no verdict, where that is most of it, or empty"]
    others: Annotated[str, "how many more actions there are, and what each saves at most, or empty"]
    without_gain: Annotated[str, "how much of the time only kernel fusion can reduce, or empty"]
    in_doubt: Annotated[str, "how much of the time no action counts, since results or input are in doubt, or empty"]

    @property
    def in_total(self) -> tuple[str, ...]:
        """What the actions save together, with its qualifications."""
        return tuple(
            filter(
                None,
                (
                    self.together,
                    self.unjudged,
                    self.beyond_roofline,
                    self.others,
                    self.without_gain,
                    self.in_doubt,
                ),
            )
        )


def outlook(document: AnalysisDocument) -> LargestSavings:
    """Return the largest potential savings over the run of a document `ncuroof.analysis/1`, which may lack kernels."""
    summary, found = document["summary"], document["summary"]["outlook"]
    return LargestSavings(
        actions=action_lines(document),
        whole=_of_which(summary),
        together=together(document),
        beyond_roofline=_BEYOND_ROOFLINE if found["is_beyond_roofline"] else "",
        unjudged=unjudged(summary) if found["is_mostly_unjudged"] else "",
        others=_others(in_kernels(document)[found["n_first"] :]),
        without_gain=without_gain(found["near_dram_roof_frac"], found["too_short_frac"]),
        in_doubt=in_doubt(found["in_doubt_frac"]),
    )


def in_kernels(document: AnalysisDocument) -> Sequence[ActionEntry]:
    """Return the actions in kernels, without those that are idle time of the GPU."""
    return [action for action in document["actions"] if action["finding"] is not None]


def action_lines(document: AnalysisDocument) -> tuple[ActionLine, ...]:
    """Return the first actions of a document as lines, in their order: those in kernels, and idle time that is worth a row."""
    first = {action["id"] for action in in_kernels(document)[: document["summary"]["outlook"]["n_first"]]}
    summary = document["summary"]
    shown = first | {action["id"] for action in worth_a_row(document) if action["finding"] is None}
    return tuple(
        _line(action, number, step_ns(summary), summary["duration_ns"])
        for number, action in enumerate(document["actions"], start=1)
        if action["id"] in shown
    )


def worth_a_row(entries: AnalysisDocument) -> list[ActionEntry]:
    """Return the actions that save enough of the whole for a row, in their order."""
    whole_ns = whole_time_ns(entries["summary"])
    known = [action for action in entries["actions"] if action["gain_ns"]]
    return [action for action in known if not whole_ns or action["gain_ns"] >= _LEAST_SAVED * whole_ns]


def whole_time_ns(summary: SummaryEntry) -> float | None:
    """Return the time that savings are part of: a step's, where steps were counted, else the GPU time; None if not known."""
    gpu_ns: float | None = summary["duration_ns"]
    whole_ns = None if "selection" in summary else step_ns(summary)
    return gpu_ns if whole_ns is None else whole_ns


def _width(saved_ns: float | None, whole_ns: float | None) -> str:
    return f"{1000 * min((saved_ns or 0.0) / whole_ns, 1.0):.1f}" if whole_ns else "0"


def _line(action: ActionEntry, number: int, whole_ns: float | None, duration_ns: float | None) -> ActionLine:
    n_launches = action["n_launches"]
    share_frac = action["gain_ns"] / whole_ns if whole_ns else action["share_frac"]
    return ActionLine(
        number=number,
        expected=about(action),
        most=f"at most {at_most(action)}, {formatting.share(share_frac)}",
        title=action["title"],
        launches="" if n_launches is None else formatting.launches(n_launches),
        finding=action["finding"] or "",
        condition=PER_WORK if action["needs_more_work"] else "",
        advice=formatting.first_sentence(action["advice"] or ""),
        expected_width=_width(action["expected_ns"], whole_ns or duration_ns),
        most_width=_width(action["gain_ns"], whole_ns or duration_ns),
    )


def _of_which(summary: SummaryEntry) -> str:
    """Return what the actions are part of: "a step, 13.9 ms", or the run's GPU time."""
    of_step_ns = step_ns(summary)
    if of_step_ns is not None and "selection" not in summary:
        return f"a step, {formatting.duration(of_step_ns)}"
    known = summary["duration_ns"]
    return whole(summary) + (f", {formatting.duration(known)}" if known else "")


def step_ns(summary: SummaryEntry) -> float | None:
    """Return the wall time of a step, where the actions are those of a step (`Weighting.steps_ns`); else None."""
    weighting = summary.get("weighting")
    times = wall_times(weighting)
    if len(times) != 1 or not times[0]["n_steps"]:
        return None
    timed_frac = weighting["timed_frac"] if weighting else None
    return times[0]["duration_ns"] if timed_frac is None or timed_frac >= LEAST_TIMED_FRAC else None


def counted_finding(findings: Sequence[FindingEntry]) -> FindingEntry | None:
    """Return the finding under which the run's actions count a kernel; None where they do not count it."""
    return next((finding for finding in findings if finding["is_most_worth"]), None)


def most_worth(findings: Sequence[FindingEntry]) -> FindingEntry | None:
    """Return the finding under which the run's actions count a kernel, else its first finding; None without findings."""
    return counted_finding(findings) or next(iter(findings), None)


def of_what(finding: FindingEntry) -> str:
    """Return what a finding's gain is a share of: "of its time", or where it needs more work, under which condition.

    A document of another version may hold findings that the rules no longer have.
    """
    rule = load_rules().findings.get(finding["id"])
    return f"per unit of work, {PER_WORK}" if rule is not None and rule.needs_more_work else "of its time"


def together(document: AnalysisDocument, *, is_listed: bool = True) -> str:
    """Return what the first actions save in total, as "together at most 15.3 %: speedup up to 1.18×"; empty where not known.

    The text must be true when read on its own: savings that need more parallel work are named, and "the whole run" includes time
    in which no kernel runs, or one that was not profiled. Where the GPU waits for launches, shorter kernels make it wait longer:
    the bound is then far from reachable, and the text says so.

    Args:
        document: `ncuroof.analysis/1`, which may lack kernels.
        is_listed: the text stands below a list of the first actions, of which there may be more.
    """
    summary, found = document["summary"], document["summary"]["outlook"]
    joint_frac, speedup, first = found["joint_frac"], found["joint_speedup"], in_kernels(document)[: found["n_first"]]
    if joint_frac is None or joint_frac >= 1:
        return ""
    n_as_it_is = sum(not action["needs_more_work"] for action in first)
    whose = f"these {len(first)} " if is_listed and len(in_kernels(document)) > len(first) else ""
    all_of = f"{whose}together " if (n_as_it_is or len(first)) > 1 else ""
    of_time = f" of {gpu_time(summary)}" if wall_times(summary.get("weighting")) else ""
    total = f"{all_of}at most {formatting.share(joint_frac)}{of_time}" if len(first) > 1 else ""
    if 0 < n_as_it_is < len(first):
        total += " (without what needs more blocks at once)"
    if speedup is None or not _LEAST_SPEEDUP <= speedup < _MOST_SPEEDUP:
        return total
    of_run = "speedup of the whole run" if found["of_run_frac"] < 1 else "speedup"
    of_run = "speedup of the selection" if "selection" in summary else of_run
    of_what, condition = (of_run, "") if n_as_it_is else ("speedup per unit of work", f", {PER_WORK}")
    faster = f"{of_what} up to {speedup:.3g}×{condition}{_unless_late(summary.get('weighting'))}"
    return f"{total}: {faster}" if total else faster


def _others(actions: Sequence[ActionEntry]) -> str:
    """Return how many actions there are beyond the first, and what each saves at most; empty for none."""
    if not actions or actions[0]["share_frac"] is None:
        return ""
    most = formatting.at_most(actions[0]["share_frac"])
    return f"one more saves {most}" if len(actions) == 1 else f"{len(actions)} more save {most} each"


def _unless_late(weighting: WeightingEntry | None) -> str:
    parts = (part for time in wall_times(weighting) for part in time["parts"])
    is_late = any(part["name"] == LATE_LAUNCHES and part["share_frac"] >= _WORTH_TELLING for part in parts)
    return ", less while the GPU waits for launches" if is_late else ""


def without_gain(near_dram_roof_frac: float | None, too_short_frac: float | None) -> str:
    """Return how much of the time is in kernels that only fusion can make much faster; empty where that is little or not known.

    What fusing them saves cannot be seen in the counters of a single kernel.
    """
    parts = (
        (near_dram_roof_frac or 0.0, "of the time is already near the DRAM roof"),
        (too_short_frac or 0.0, "is in launches too short to optimise alone"),
    )
    if sum(frac for frac, _ in parts) < _WORTH_TELLING:
        return ""
    shares = ", ".join(f"{formatting.share(frac)} {where}" for frac, where in parts if frac >= _LEAST_PART)
    does_more = " or give each launch more work" if parts[1][0] >= _LEAST_PART else ""
    return f"to save more, fuse kernels{does_more}: {shares}"


def in_doubt(in_doubt_frac: float | None) -> str:
    """Return how much of the time is in kernels that no action counts; empty where that is less than a percent, or not known."""
    if in_doubt_frac is None or in_doubt_frac < _LEAST_PART:
        return ""
    return f"not counted: {formatting.share(in_doubt_frac)} of the time, in kernels whose results or input are in doubt"


def unjudged(summary: SummaryEntry) -> str:
    """Return how much of the time of a document's `summary` has no verdict, and that no speedup is therefore stated."""
    part = formatting.share(summary["by_verdict"]["unknown"]["share_frac"])
    return f"no speedup is stated: {part} of the time has no verdict, and what else can be saved in it is not known"


def gpu_time(summary: SummaryEntry) -> str:
    """Return what shares of time refer to, without naming the run: "GPU time", or which part of it where they cover less."""
    return _part(summary) or "GPU time"


def whole(summary: SummaryEntry) -> str:
    """Return what the shares of actions refer to: "the run's GPU time", or which part of it where they cover less."""
    return _part(summary) or "the run's GPU time"


def is_whole(summary: SummaryEntry) -> bool:
    """Return whether a document's summary covers the whole GPU time of the run."""
    return not _part(summary)


def _part(summary: SummaryEntry) -> str:
    """Return the part of a run's GPU time that a document's summary covers; empty where that is all of it."""
    if "selection" in summary:
        return "selected GPU time"
    return "" if summary.get("weighting", {}).get("covered_frac") in {None, 1} else "profiled GPU time"
