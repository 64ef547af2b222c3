"""The largest potential savings over the run, and what they save together, as texts ready to show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from ncuroof.present import format as text
from ncuroof.present.sentences.wall_time import IdleLine, idle_line

_N_ACTIONS = 3
_TOLD_SPEEDUP = 100
"""A bound beyond it says no more than that almost nothing of the GPU is used."""

_ROUNDING = 1.001
_AT_THE_ROOF = 0.2
"""Less than this share above the roofline."""

LEAST_GAIN = 0.1
"""Of a kernel's time: with less to gain in the kernel itself, fusing it is what makes it faster."""

PER_WORK = "per unit of work, if more of it runs in parallel"
"""What a larger batch gives, which no run of the same work gets."""

_WORTH_TELLING, _LEAST_PART = 0.1, 0.01
_LATE_LAUNCHES = "host_wait"
"""Part of a step (profiles/temporal_breakdown.toml) in which the GPU has nothing to do, however short its kernels are."""


@dataclass(frozen=True, slots=True)
class ActionLine:
    """A thing to do in one or many launches."""

    gain: Annotated[str, "at most, of the profiled GPU time"]
    title: Annotated[str, "of the finding"]
    launches: Annotated[str, "how many"]
    finding: Annotated[str, "its name, by which the page finds the launches"]
    condition: Annotated[str, "under which it gives that, or empty"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What to do first over the run, and what that gives."""

    idle: Annotated[IdleLine | None, "idle time of the GPU, where removing it saves more than any of these"]
    actions: Annotated[Sequence[ActionLine], "the largest savings over the run; empty where no gain is known"]
    whole: Annotated[str, "what their gains are shares of"]
    together: Annotated[str, "what they save together, or empty"]
    beyond_roofline: Annotated[str, "why that exceeds the time above the roofline, or empty"]
    without_gain: Annotated[str, "how much of the time only kernel fusion can reduce, or empty"]

    @property
    def in_total(self) -> tuple[str, ...]:
        """What they give in total, and what else is to be known of that."""
        return tuple(filter(None, (self.together, self.beyond_roofline, self.without_gain)))


def outlook(document: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> Outlook:
    """Return what to do first.

    Args:
        document: `ncuroof.analysis/1`, of which kernels may be left out.
        groups: all groups of launches, as for `without_gain`.
    """
    actions, summary = document["actions"], document["summary"]
    weighting = summary.get("weighting")
    return Outlook(
        idle=idle_line(weighting, _of_wall_time(actions, weighting)),
        actions=first_actions(actions),
        whole=whole(weighting),
        together=together(actions, weighting),
        beyond_roofline=beyond_roofline(actions, summary["recoverable_ns"]),
        without_gain=without_gain(groups, summary["duration_ns"]),
    )


def first_actions(actions: Sequence[Mapping[str, Any]]) -> tuple[ActionLine, ...]:
    """Return the first things to do, the largest gain first; empty where no gain can be told."""
    return tuple(
        ActionLine(
            text.share(action["share_frac"]),
            action["title"],
            text.launches(action["n_launches"]),
            action["finding"],
            PER_WORK if action.get("needs_more_work") else "",
        )
        for action in actions[:_N_ACTIONS]
    )


def most_worth(findings: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the finding that the things to do over the run count for a kernel; the first where no gain is known."""
    return next((finding for finding in findings if finding.get("is_most_worth")), next(iter(findings), None))


def together(actions: Sequence[Mapping[str, Any]], weighting: Mapping[str, Any] | None = None) -> str:
    """Return what the first things to do give in total; empty where not known.

    Those that give it per unit of work, because more of it runs at once, make no run of the same work faster: they are left out
    where there are others.

    It is "together at most 15.3 %: speedup up to 1.18×", and true where nothing else is read.

    Shares of different launches add up, and what is left of the run's time is its new length (Amdahl, Validity of the single
    processor approach to achieving large scale computing capabilities, AFIPS 1967). Time in which no kernel runs, or one that
    was not recorded, stays as it is, and "the whole run" includes it. Where the GPU waits for launches, shorter kernels make it
    wait longer: the bound is far then, and the text says so.

    Args:
        actions: of the document, the largest gain first.
        weighting: of its summary, which may know for which share of the time kernels run, and for which share of that they were
            recorded.
    """
    first = actions[:_N_ACTIONS]
    as_it_is = [action for action in first if not action.get("needs_more_work")]
    shares = [action["share_frac"] for action in as_it_is or first]
    if not shares or None in shares or sum(shares) >= 1:
        return ""
    of_run_frac = _of_run_frac(weighting)
    speedup = 1 / (1 - sum(shares) * of_run_frac)
    told = f"{'together ' if len(shares) > 1 else ''}at most {text.share(sum(shares))}" if len(first) > 1 else ""
    if as_it_is and len(as_it_is) < len(first):
        told += " (not counting savings per unit of work)"
    if speedup >= _TOLD_SPEEDUP:
        return told
    of_run = "speedup of the whole run" if of_run_frac < 1 else "speedup"
    of_what, condition = (of_run, "") if as_it_is else ("speedup per unit of work", ", if more of it runs in parallel")
    faster = f"{of_what} up to {speedup:.3g}×{condition}{_unless_late(weighting)}"
    return f"{told}: {faster}" if told else faster


def _of_run_frac(weighting: Mapping[str, Any] | None) -> float:
    """Return the share of the time on the wall's clock that shares of the recorded GPU time are of."""
    return float((weighting or {}).get("computation_frac", 1.0)) * _covered_frac(weighting)


def _of_wall_time(actions: Sequence[Mapping[str, Any]], weighting: Mapping[str, Any] | None) -> float:
    """Return the most that one thing to do gives back of the time on the wall's clock."""
    return max((action["share_frac"] or 0.0 for action in actions), default=0.0) * _of_run_frac(weighting)


def _unless_late(weighting: Mapping[str, Any] | None) -> str:
    parts = (part for time in (weighting or {}).get("wall_times", ()) for part in time["parts"])
    is_late = any(part["name"] == _LATE_LAUNCHES and part["share_frac"] >= _WORTH_TELLING for part in parts)
    return ", less while the GPU waits for launches" if is_late else ""


def beyond_roofline(actions: Sequence[Mapping[str, Any]], recoverable_ns: float | None) -> str:
    """Return why the first things to do give more than lies above the roofline, in nanoseconds; empty where they do not."""
    gain_ns = sum(action["gain_ns"] for action in actions[:_N_ACTIONS])
    if recoverable_ns is None or gain_ns <= recoverable_ns * _ROUNDING:
        return ""
    return "this exceeds the time above the roofline because these changes also lower the roofline time"


def without_gain(groups: Sequence[Mapping[str, Any]], duration_ns: float | None) -> str:
    """Return how much of the time is in kernels of which no change to the kernel itself gives much back; empty where it is little.

    These are kernels near DRAM's roof and launches that are shorter than launching them: more than the little that the first things
    to do may give them comes of fusing alone, which no counter of a kernel tells.

    Args:
        groups: of launches, with verdict, limiter, whether a finding tells a gain, and time and time above the roofline in
            nanoseconds.
        duration_ns: GPU time of what was recorded.
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
    told = ", ".join(f"{text.share(frac)} {where}" for frac, where in parts if frac >= _LEAST_PART)
    return f"to save more, fuse kernels: {told}"


def judged_groups(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the groups of a whole document, with what bounds their kernels, and whether a finding tells a gain."""
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
        }
        for group, kernel in judged
    ]


def gpu_time(weighting: Mapping[str, Any] | None) -> str:
    """Return what shares of time are of, where the run is not named: GPU time, or the profiled part of it."""
    return "GPU time" if _covered_frac(weighting) == 1 else "profiled GPU time"


def whole(weighting: Mapping[str, Any] | None) -> str:
    """Return what the shares of things to do are of: the run's GPU time, or the profiled part of it."""
    return "the run's GPU time" if _covered_frac(weighting) == 1 else "profiled GPU time"


def _covered_frac(weighting: Mapping[str, Any] | None) -> float:
    covered_frac = (weighting or {}).get("covered_frac")
    return 1.0 if covered_frac is None else float(covered_frac)
