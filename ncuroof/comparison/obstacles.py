"""Whether the times of two runs can be compared, given how they were recorded and which part of the program they cover.

A run covers the whole program or some of its steps. Times of different parts cannot be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from ncuroof.comparison.run import Run, Setup


def are_of_other_steps(before: Run, after: Run) -> bool:
    """Return whether the runs are known to cover different steps, or only one of them the whole program."""
    return None not in (before.steps, after.steps) and before.steps != after.steps


def coverage_obstacle(before: Run, after: Run) -> str | None:
    """Return that the runs cover different parts of the program, if times per step are no way out; else None."""
    if not are_of_other_steps(before, after) or (before.n_steps and after.n_steps):
        return None
    return f"the runs cover different parts of the program: {_covered(before)} before, {_covered(after)} after"


def n_units(before: Run, after: Run) -> tuple[int, int]:
    """Return the divisor of each run's times: its number of steps if the two differ, else 1."""
    steps = before.n_steps, after.n_steps
    if steps[0] and steps[1] and steps[0] != steps[1]:
        return steps[0], steps[1]
    return 1, 1


def steps_remark(before: Run, after: Run) -> str:
    """Return that different steps were profiled, if their times are compared nevertheless; "" for the same steps."""
    if not are_of_other_steps(before, after) or coverage_obstacle(before, after):
        return ""
    per_step = "" if n_units(before, after) == (1, 1) else ", so times of the runs are per step"
    return f"the profiled steps differ: {before.steps} before, {after.steps} after{per_step}"


def _covered(run: Run) -> str:
    return f"--step {run.steps}" if run.steps else "the whole run"


@dataclass(frozen=True, slots=True)
class Comparable:
    """Whether the times of two runs can be compared.

    Attributes:
        is_time_comparable: whether a change of time comes from the program; amounts (FLOPs, bytes) are always compared.
        reasons: why times are not comparable; empty if they are.
        remarks: further differences that may matter.
    """

    is_time_comparable: bool
    reasons: tuple[str, ...]
    remarks: tuple[str, ...]


def comparable(before: Setup, after: Setup) -> Comparable:
    """Return whether times can be compared. What a report does not state counts as equal."""
    reasons = _differences(
        ("the GPU", before.gpus, after.gpus),
        ("clock control", before.clock_controls, after.clock_controls),
        ("cache control", before.cache_controls, after.cache_controls),
    )
    several = max(before.gpus, after.gpus, key=len)
    if len(several) > 1 and not reasons:
        reasons.append(f"a run has launches on different GPUs: {', '.join(several)}")
    remarks = _differences(
        ("the driver", before.drivers, after.drivers),
        ("Nsight Compute", before.ncu_versions, after.ncu_versions),
        ("the build", before.builds, after.builds),
        ("FLOPs are not compared: the set of counted precisions", before.precisions, after.precisions),
    )
    if before.sections and after.sections and before.sections != after.sections:
        remarks.append("the runs collected different sections: what only one of them has cannot explain a change")
    return Comparable(not reasons, tuple(reasons), tuple(remarks))


def _differences(*parts: tuple[str, tuple[str, ...], tuple[str, ...]]) -> list[str]:
    """Return which settings differ, of those that both runs state."""
    return [
        f"{what} differs: {', '.join(old)} before, {', '.join(new)} after"
        for what, old, new in parts
        if old and new and old != new
    ]
