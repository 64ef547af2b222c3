"""The largest potential savings over the run, and what they save together, as text ready to show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from ncuroof.diagnosis import LEAST_TIMED_FRAC, Rules
from ncuroof.present import format as text
from ncuroof.present.sentences.distinct_labels import names_of_several
from ncuroof.present.sentences.wall_time import IdleLine, idle_line

_N_ACTIONS, _LEAST_SHARE = 3, 0.001
"""Most actions to show, and the least share of the time of those behind the first one (a choice)."""

_LEAST_SPEEDUP, _MOST_SPEEDUP = 1.005, 100
"""Smaller speedup bounds round to none; larger ones are not reported either: they only say that the GPU is almost unused."""

_ROUNDING = 1.001
"""Factor by which gains may exceed the time above the roofline before that needs an explanation."""

_AT_THE_ROOF = 0.2
"""A kernel with a smaller share of its time above the roofline counts as at the roof."""

LEAST_GAIN = 0.1
"""Share of a kernel's time: with less to gain in the kernel itself, only fusion makes it much faster."""

PER_WORK = "if more blocks run at once"
"""Condition of savings that need more parallel work, such as a larger batch; a run of the same work gains nothing."""

_WORTH_TELLING, _LEAST_PART = 0.1, 0.01
"""Least share of the time for a sentence, and for a part of that sentence."""

_LATE_LAUNCHES = "host_wait"
"""Part of a step (profiles/temporal_breakdown.toml) in which the GPU waits for launches; shorter kernels do not reduce it."""


@dataclass(frozen=True, slots=True)
class ActionLine:
    """A change that saves time in one or more launches."""

    gain: Annotated[str, "upper bound, as a share of `Outlook.whole`"]
    title: Annotated[str, "of the finding"]
    launches: Annotated[str, "number of launches, in words"]
    finding: Annotated[str, "id of the finding, by which the page selects the launches"]
    condition: Annotated[str, "condition of the savings, or empty"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """The largest potential savings over the run."""

    idle: Annotated[IdleLine | None, "idle time of the GPU, where removing it saves more than any action"]
    actions: Annotated[Sequence[ActionLine], "the actions with the largest savings; empty where no gain is known"]
    whole: Annotated[str, "what the gains are shares of"]
    together: Annotated[str, "what the actions save together, or empty"]
    beyond_roofline: Annotated[str, "why that exceeds the time above the roofline, or empty"]
    without_gain: Annotated[str, "how much of the time only kernel fusion can reduce, or empty"]
    in_doubt: Annotated[str, "how much of the time no action counts, since results or input are in doubt, or empty"]

    @property
    def in_total(self) -> tuple[str, ...]:
        """What the actions save together, with its qualifications."""
        return tuple(filter(None, (self.together, self.beyond_roofline, self.without_gain, self.in_doubt)))


def outlook(document: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> Outlook:
    """Return the largest potential savings over the run.

    Args:
        document: `ncuroof.analysis/1`; it may lack kernels.
        groups: all groups of launches, as for `without_gain` and `in_doubt`.
    """
    actions, summary = document["actions"], document["summary"]
    weighting = summary.get("weighting")
    return Outlook(
        idle=idle_line(weighting, _of_wall_time(actions, weighting), names_of_several(document["sources"])),
        actions=first_actions(actions),
        whole=whole(weighting),
        together=together(actions, weighting),
        beyond_roofline=beyond_roofline(actions, summary["recoverable_ns"]),
        without_gain=without_gain(groups, summary["duration_ns"]),
        in_doubt=in_doubt(groups, summary["duration_ns"]),
    )


def first_actions(actions: Sequence[Mapping[str, Any]]) -> tuple[ActionLine, ...]:
    """Return the actions with the largest gains, the largest first; empty where no gain is known."""
    return tuple(
        ActionLine(
            text.share(action["share_frac"]),
            action["title"],
            text.launches(action["n_launches"]),
            action["finding"],
            PER_WORK if action.get("needs_more_work") else "",
        )
        for action in worth_showing(actions)
    )


def worth_showing(actions: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the first actions, without those that save next to nothing beside the first one."""
    return [
        action
        for place, action in enumerate(actions[:_N_ACTIONS])
        if place == 0 or action["share_frac"] is None or action["share_frac"] >= _LEAST_SHARE
    ]


def most_worth(findings: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the finding under which the run's actions count a kernel, else its first finding; None without findings."""
    return next((finding for finding in findings if finding.get("is_most_worth")), next(iter(findings), None))


def together(actions: Sequence[Mapping[str, Any]], weighting: Mapping[str, Any] | None = None) -> str:
    """Return what the first actions save in total, as "together at most 15.3 %: speedup up to 1.18×"; empty where not known.

    Savings per unit of work (which need larger batches) do not make a run of the same work faster: they are not counted where
    there are others. The text must be true when read on its own.

    Each launch counts under one action only, so the shares add up, and what remains of the run's time is its new duration (Amdahl,
    Validity of the single processor approach to achieving large scale computing capabilities, AFIPS 1967). Time in which no
    kernel runs, or one that was not profiled, stays the same; "the whole run" includes it. Where the GPU waits for launches,
    shorter kernels make it wait longer: the bound is then far from reachable, and the text says so. Where counting runs hold for
    only some of the GPU time, the whole is not known, and no speedup is given.

    Args:
        actions: of the document, the largest gain first.
        weighting: of the document's summary; it may give the share of the time in which kernels run, and the share of that which
            was profiled.
    """
    first = worth_showing(actions)
    as_it_is = [action for action in first if not action.get("needs_more_work")]
    shares = [action["share_frac"] for action in as_it_is or first]
    if not shares or None in shares or sum(shares) >= 1:
        return ""
    of_run_frac = _of_run_frac(weighting) if _is_of_one_whole(weighting) else 0.0
    speedup = 1 / (1 - sum(shares) * of_run_frac)
    total = f"{'together ' if len(shares) > 1 else ''}at most {text.share(sum(shares))}" if len(first) > 1 else ""
    if as_it_is and len(as_it_is) < len(first):
        total += " (without what needs more blocks at once)"
    if not _LEAST_SPEEDUP <= speedup < _MOST_SPEEDUP:
        return total
    of_run = "speedup of the whole run" if of_run_frac < 1 else "speedup"
    of_what, condition = (of_run, "") if as_it_is else ("speedup per unit of work", ", if more blocks run at once")
    faster = f"{of_what} up to {speedup:.3g}×{condition}{_unless_late(weighting)}"
    return f"{total}: {faster}" if total else faster


def _of_run_frac(weighting: Mapping[str, Any] | None) -> float:
    """Return profiled GPU time as a share of wall-clock time; 1 for what is not known."""
    return float((weighting or {}).get("computation_frac", 1.0)) * _covered_frac(weighting)


def _is_of_one_whole(weighting: Mapping[str, Any] | None) -> bool:
    """Return whether the GPU time and the wall-clock time are those of the same runs."""
    known = weighting or {}
    is_timed = not known.get("wall_times") or _share(known, "timed_frac", 1.0) >= LEAST_TIMED_FRAC
    is_counted = _covered_frac(weighting) == 1 or _share(known, "uncounted_frac", 0.0) <= 1 - LEAST_TIMED_FRAC
    return is_timed and is_counted


def _share(weighting: Mapping[str, Any], key: str, unknown: float) -> float:
    frac = weighting.get(key)
    return unknown if frac is None else float(frac)


def _of_wall_time(actions: Sequence[Mapping[str, Any]], weighting: Mapping[str, Any] | None) -> float:
    """Return the largest saving of a single action, as a share of wall-clock time."""
    return max((action["share_frac"] or 0.0 for action in actions), default=0.0) * _of_run_frac(weighting)


def _unless_late(weighting: Mapping[str, Any] | None) -> str:
    parts = (part for time in (weighting or {}).get("wall_times", ()) for part in time["parts"])
    is_late = any(part["name"] == _LATE_LAUNCHES and part["share_frac"] >= _WORTH_TELLING for part in parts)
    return ", less while the GPU waits for launches" if is_late else ""


def beyond_roofline(actions: Sequence[Mapping[str, Any]], recoverable_ns: float | None) -> str:
    """Return why the first actions save more than the time above the roofline, given in nanoseconds; empty where they do not."""
    gain_ns = sum(action["gain_ns"] for action in worth_showing(actions))
    if recoverable_ns is None or gain_ns <= recoverable_ns * _ROUNDING:
        return ""
    return "this exceeds the time above the roofline because these changes also lower the roofline time"


def without_gain(groups: Sequence[Mapping[str, Any]], duration_ns: float | None) -> str:
    """Return how much of the time is in kernels that only fusion can make much faster; empty where that is little.

    These are kernels near the DRAM roof, and launches too short to optimise alone, without a finding of notable gain. What fusing
    them saves cannot be seen in the counters of a single kernel.

    Args:
        groups: of launches, with verdict, limiter, `has_gain`, and in nanoseconds their time and time above the roofline.
        duration_ns: GPU time of the run, as in the summary; None where not known.
    """
    at_roof_ns = sum(
        group["duration_ns"] or 0.0
        for group in groups
        if (group["verdict"], group["limiter"]) == ("memory", "dram") and not group["has_gain"]
        if group["recoverable_ns"] is not None
        and group["recoverable_ns"] < _AT_THE_ROOF * (group["duration_ns"] or 0.0)
    )
    short_ns = sum(
        group["duration_ns"] or 0.0 for group in groups if group["verdict"] == "overhead" and not group["has_gain"]
    )
    if not duration_ns or at_roof_ns + short_ns < _WORTH_TELLING * duration_ns:
        return ""
    places = (
        (at_roof_ns, "of the time is already near the DRAM roof"),
        (short_ns, "is in launches too short to optimise alone"),
    )
    parts = [(part_ns / duration_ns, where) for part_ns, where in places]
    shares = ", ".join(f"{text.share(frac)} {where}" for frac, where in parts if frac >= _LEAST_PART)
    return f"to save more, fuse kernels: {shares}"


def in_doubt(groups: Sequence[Mapping[str, Any]], duration_ns: float | None) -> str:
    """Return how much of the time is in kernels that no action counts; empty where that is less than a percent.

    Args:
        groups: of launches, with `is_in_doubt` and their time in nanoseconds.
        duration_ns: GPU time of the run, as in the summary; None where not known.
    """
    doubtful_ns = sum(group["duration_ns"] or 0.0 for group in groups if group["is_in_doubt"])
    if not duration_ns or doubtful_ns < _LEAST_PART * duration_ns:
        return ""
    return f"not counted: {text.share(doubtful_ns / duration_ns)} of the time, in kernels whose results or input are in doubt"


def doubts(rules: Rules) -> list[str]:
    """Return the findings that, where they have no gain, question what a kernel computes or the input that it was profiled with."""
    return [finding.id for finding in rules.findings.values() if finding.stands_first]


def judged_groups(document: Mapping[str, Any], rules: Rules) -> list[dict[str, Any]]:
    """Return the groups of a complete document with verdict, limiter, `has_gain` and `is_in_doubt`.

    `has_gain`: a finding saves at least LEAST_GAIN. `is_in_doubt`: no action counts the group.
    """
    in_question = doubts(rules)
    kernel_by_id = {kernel["id"]: kernel for kernel in document["kernels"]}
    judged = ((group, kernel_by_id[group["id"]]) for group in document["groups"])
    return [
        {
            **group,
            "verdict": kernel["verdict"],
            "limiter": kernel["limiter"],
            "has_gain": any(
                (finding["gain_ns"] or 0.0) >= LEAST_GAIN * (kernel["duration_ns"] or math.inf)
                for finding in kernel["findings"]
            ),
            "is_in_doubt": any(
                finding["id"] in in_question and finding["gain_ns"] is None for finding in kernel["findings"]
            ),
        }
        for group, kernel in judged
    ]


def gpu_time(weighting: Mapping[str, Any] | None) -> str:
    """Return what shares of time refer to, without naming the run: "GPU time", or "profiled GPU time" where that is less."""
    return "GPU time" if is_whole(weighting) else "profiled GPU time"


def whole(weighting: Mapping[str, Any] | None) -> str:
    """Return what the shares of actions refer to: "the run's GPU time", or "profiled GPU time" where that is less."""
    return "the run's GPU time" if is_whole(weighting) else "profiled GPU time"


def is_whole(weighting: Mapping[str, Any] | None) -> bool:
    """Return whether the profiled kernels make up the whole GPU time of the run."""
    return _covered_frac(weighting) == 1


def _covered_frac(weighting: Mapping[str, Any] | None) -> float:
    return _share(weighting or {}, "covered_frac", 1.0)
