"""What to do first over a run: findings of all launches and idle time of the GPU in one list, by expected savings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from ncuroof.demand import load_model
from ncuroof.diagnosis.rules import load_rules
from ncuroof.diagnosis.wall_time import COMPUTATION, PartOfTime, WallTime
from ncuroof.diagnosis.weights import Weighting
from ncuroof.tables import ACTIONS, conform

LATE_LAUNCHES = "host_wait"
"""Part of a step (profiles/temporal_breakdown.toml) in which the GPU waits for launches."""

_LATE_FRAC = 0.1
"""Least share of a step in which the GPU waits for launches for shorter kernels to make it wait longer (a choice)."""

_LEAST_IDLE_FRAC = 0.01
"""Parts of a step below this share are no action (a choice)."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do, with what it saves of a step, or of the run where no steps were counted.

    Attributes:
        rank: 1 for the first.
        id: the finding, or the part of the step in which the GPU idles (profiles/temporal_breakdown.toml).
        finding: the finding; None for idle time.
        title: one line.
        advice: what to do; that for the launch which takes longest, for a finding None here.
        launches: launches that it is for, by id, those first that save most; empty for idle time.
        n_launches: how many launches these represent; None for idle time.
        gain_ns: the most that it saves.
        expected_ns: what it is expected to save.
        expected_low_ns, expected_high_ns: between what eight of ten such changes save.
        share_frac: the most that it saves as a share of the run's GPU time; None for idle time.
        needs_more_work: what is saved is per unit of work.
    """

    rank: int
    id: str
    finding: str | None
    title: str
    advice: str | None
    launches: tuple[int, ...]
    n_launches: int | None
    gain_ns: float
    expected_ns: float
    expected_low_ns: float
    expected_high_ns: float
    share_frac: float | None
    needs_more_work: bool


def rank_actions(findings: pl.DataFrame, duration_ns: float | None, weights: pl.DataFrame) -> pl.DataFrame:
    """Return ACTIONS: what to do in kernels over the whole run, the largest expected saving first.

    Savings of the same launch overlap, so only its `is_most_worth` finding counts; those of different launches add up. So do the
    ends of the intervals: launches of one finding err in the same direction.

    Args:
        findings: FINDINGS.
        duration_ns: GPU time of the run.
        weights: WEIGHTS, applied to sums and launch counts.
    """
    times = ("gain_ns", "expected_ns", "expected_low_ns", "expected_high_ns")
    return (
        findings.filter("is_most_worth")
        .join(weights, on="id", how="left", maintain_order="left")
        .with_columns(pl.col(times) * pl.col("weight"))
        .sort("expected_ns", descending=True, nulls_last=True, maintain_order=True)
        .group_by("finding", maintain_order=True)
        .agg(
            pl.col("n_represented").sum().round().cast(pl.Int64).alias("n_launches"),
            pl.col("id").alias("launches"),
            pl.col(times).sum(),
        )
        .with_columns((pl.col("gain_ns") / (duration_ns or None)).alias("share_frac"))
        .sort("expected_ns", descending=True, maintain_order=True)
        .pipe(conform, ACTIONS)
    )


def of_step(actions: pl.DataFrame, weighting: Weighting | None) -> list[Action]:
    """Return what to do over a step, or over the run where no steps were counted, the largest expected saving first.

    Times of kernels are divided by the number of steps. Where the GPU waits for launches, a shorter kernel may only make it wait
    longer: the expected saving is that of the share of this time in which kernels run, and there may be none.

    Args:
        actions: ACTIONS.
        weighting: how launches were weighted; None if each represents only itself.
    """
    step = None if weighting is None or weighting.steps_ns is None else weighting.wall_times[0]
    found = [*_in_kernels(actions, step), *(() if step is None else _in_idle_time(step))]
    found.sort(key=lambda action: -action.expected_ns)
    return [replace(action, rank=place) for place, action in enumerate(found, start=1)]


def _in_kernels(actions: pl.DataFrame, step: WallTime | None) -> list[Action]:
    rules = load_rules().findings
    n_steps = 1 if step is None or step.n_steps is None else step.n_steps
    exposed, is_sure = _exposed_frac(step)
    return [
        Action(
            rank=0,
            id=row["finding"],
            finding=row["finding"],
            title=rules[row["finding"]].title,
            advice=None,
            launches=tuple(row["launches"]),
            n_launches=row["n_launches"],
            gain_ns=row["gain_ns"] / n_steps,
            expected_ns=row["expected_ns"] / n_steps * exposed,
            expected_low_ns=row["expected_low_ns"] / n_steps if is_sure else 0.0,
            expected_high_ns=row["expected_high_ns"] / n_steps,
            share_frac=row["share_frac"],
            needs_more_work=rules[row["finding"]].needs_more_work,
        )
        for row in actions.iter_rows(named=True)
    ]


def _exposed_frac(step: WallTime | None) -> tuple[float, bool]:
    """Return the share of the kernels' time whose end the step waits for, and whether that is all of it."""
    shares = {} if step is None else {part.name: part.share_frac for part in step.parts}
    late, running = shares.get(LATE_LAUNCHES, 0.0), shares.get(COMPUTATION, 0.0)
    if late < _LATE_FRAC or not running:
        return 1.0, True
    return running / (running + late), False


def _in_idle_time(step: WallTime) -> list[Action]:
    """Return the parts of idle time; under the profiler they take longer than without it, all in proportion."""
    idle_frac = sum(part.share_frac for part in step.parts if part.is_idle)
    scale = step.idle_frac * step.duration_ns / idle_frac if idle_frac else 0.0
    return [
        _idle_action(part, part.share_frac * scale)
        for part in step.parts
        if part.is_idle and part.share_frac >= _LEAST_IDLE_FRAC
    ]


def _idle_action(part: PartOfTime, idle_ns: float) -> Action:
    expectation = load_model().expectation
    expected, low, high = (idle_ns * expectation[name] for name in ("idle_gpu", "idle_gpu_low", "idle_gpu_high"))
    return Action(
        rank=0,
        id=part.name,
        finding=None,
        title=f"The GPU idles: {part.title}",
        advice=part.advice,
        launches=(),
        n_launches=None,
        gain_ns=idle_ns,
        expected_ns=expected,
        expected_low_ns=low,
        expected_high_ns=high,
        share_frac=None,
        needs_more_work=False,
    )
