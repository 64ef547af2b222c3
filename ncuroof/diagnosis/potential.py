"""What the run can gain: what the first actions save together, and the time that no action reduces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ncuroof.diagnosis.rules import load_rules
from ncuroof.diagnosis.summary import Summary
from ncuroof.diagnosis.weights import LEAST_TIMED_FRAC, Weighting
from ncuroof.enums import Verdict

_MOST_FIRST, _LEAST_SHARE = 3, 0.001
"""Most actions to do first, and the least share of the time of those behind the first one (a choice)."""

_ROUNDING = 1.001
"""Factor by which gains may exceed the time above the roofline before that needs an explanation."""

_MOST_UNJUDGED = 0.5
"""Largest share of the time without a verdict for which a speedup is stated (a choice): what that time can save is not known."""

_AT_THE_ROOF = 0.2
"""A kernel with a smaller share of its time above the roofline counts as at the roof."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the run can gain. Shares are of its GPU time, and None where that is not known.

    Attributes:
        n_first: actions to do first: the first ones in ACTIONS, without those that save next to nothing beside the first one.
        joint_frac: what those of them that leave the work as it is save together, or all of them where each needs more work.
        joint_speedup: how much faster the run is then, or the same work within a larger run; None where nothing would be left, or
            GPU time and wall-clock time are not those of the same runs, or most of the time has no verdict, or all need more work
            and more of the time is in launches too short to optimise alone, which gain from it as well.
        is_mostly_unjudged: whether most of the time has no verdict.
        of_run_frac: profiled GPU time as a share of wall-clock time; 1 for what is not known.
        is_beyond_roofline: whether the first actions save more than the time above the roofline: they lower the roofline time too.
        near_dram_roof_frac: time in kernels near the DRAM roof without a notable gain: only fusion makes them much faster.
        too_short_frac: time in launches too short to optimise alone, likewise.
        in_doubt_frac: time in kernels that no action counts, since their results or input are in doubt.
    """

    n_first: int
    joint_frac: float | None
    joint_speedup: float | None
    is_mostly_unjudged: bool
    of_run_frac: float
    is_beyond_roofline: bool
    near_dram_roof_frac: float | None
    too_short_frac: float | None
    in_doubt_frac: float | None


def outlook(
    actions: pl.DataFrame,
    groups: pl.DataFrame,
    verdicts: pl.DataFrame,
    summary: Summary,
    weighting: Weighting | None = None,
) -> Outlook:
    """Return what the run can gain.

    Each launch counts under one action only, so shares of actions add up, and what remains of the run's time is its new duration
    (Amdahl, Validity of the single processor approach to achieving large scale computing capabilities, AFIPS 1967). Time in which
    no kernel runs, or one that was not profiled, stays the same. Actions that need more work per launch, such as a larger batch,
    do not make a run of the same work faster: they are not counted where there are others.

    Args:
        actions: ACTIONS.
        groups: GROUPS.
        verdicts: VERDICTS.
        summary: sums over the run.
        weighting: how launches were weighted; None if each represents only itself.
    """
    first = _first(actions.to_dicts())
    joint_frac, of_run_frac = _joint_frac(first), _of_run_frac(weighting)
    gain_ns, recoverable_ns = sum(action["gain_ns"] for action in first), summary.recoverable_ns
    judged = groups.join(verdicts.select("id", "verdict", "limiter"), on="id", how="left")
    is_at_dram_roof = (
        (pl.col("verdict") == Verdict.MEMORY.value)
        & (pl.col("limiter") == "dram")
        & (pl.col("recoverable_ns") < _AT_THE_ROOF * pl.col("duration_ns"))
    )
    is_too_short = pl.col("verdict") == Verdict.OVERHEAD.value
    parts = (is_at_dram_roof & ~pl.col("has_gain"), is_too_short & ~pl.col("has_gain"), pl.col("is_in_doubt"))
    near_roof, too_short, in_doubt = (
        float(judged.filter(part)["duration_ns"].sum()) / summary.duration_ns if summary.duration_ns else None
        for part in parts
    )
    # Launches that are too short gain from more work at once as well, by how much is not known.
    is_more_too_short = _need_more_work(first) and (too_short or 0.0) > (joint_frac or 0.0)
    unjudged = summary.by_verdict.get(Verdict.UNKNOWN.value)
    is_mostly_unjudged = unjudged is not None and (unjudged.share_frac or 0.0) > _MOST_UNJUDGED
    is_bound = _is_of_one_whole(weighting) and not is_more_too_short and not is_mostly_unjudged
    return Outlook(
        n_first=len(first),
        joint_frac=joint_frac,
        joint_speedup=None
        if joint_frac is None or joint_frac >= 1 or not is_bound
        else 1 / (1 - joint_frac * of_run_frac),
        is_mostly_unjudged=is_mostly_unjudged,
        of_run_frac=of_run_frac,
        is_beyond_roofline=recoverable_ns is not None and gain_ns > recoverable_ns * _ROUNDING,
        near_dram_roof_frac=near_roof,
        too_short_frac=too_short,
        in_doubt_frac=in_doubt,
    )


def _first(actions: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return [
        action
        for place, action in enumerate(actions[:_MOST_FIRST])
        if place == 0 or action["share_frac"] is None or action["share_frac"] >= _LEAST_SHARE
    ]


def _need_more_work(first: Sequence[Mapping[str, Any]]) -> bool:
    findings = load_rules().findings
    return all(findings[action["finding"]].needs_more_work for action in first)


def _joint_frac(first: Sequence[Mapping[str, Any]]) -> float | None:
    findings = load_rules().findings
    as_it_is = [action for action in first if not findings[action["finding"]].needs_more_work]
    shares = [action["share_frac"] for action in as_it_is or first]
    return sum(shares) if shares and None not in shares else None


def _of_run_frac(weighting: Weighting | None) -> float:
    return 1.0 if weighting is None else weighting.computation_frac * _covered_frac(weighting)


def _is_of_one_whole(weighting: Weighting | None) -> bool:
    """Return whether the GPU time and the wall-clock time are those of the same runs."""
    if weighting is None:
        return True
    timed_frac = 1.0 if weighting.timed_frac is None else weighting.timed_frac
    is_timed = not weighting.wall_times or timed_frac >= LEAST_TIMED_FRAC
    is_counted = _covered_frac(weighting) == 1 or (weighting.uncounted_frac or 0.0) <= 1 - LEAST_TIMED_FRAC
    return is_timed and is_counted


def _covered_frac(weighting: Weighting) -> float:
    return 1.0 if weighting.covered_frac is None else weighting.covered_frac
