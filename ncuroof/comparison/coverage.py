"""Which part of a program the runs cover: all of it, or some of its steps; times of other parts are no change."""

from __future__ import annotations

from ncuroof.comparison.run import Run


def are_of_other_steps(before: Run, after: Run) -> bool:
    """Return whether the runs are known to cover other steps, or one of them the whole program."""
    return None not in (before.steps, after.steps) and before.steps != after.steps


def coverage_obstacle(before: Run, after: Run) -> str | None:
    """Return that the runs cover other parts of the program, and not of both is it known how many steps these are; else None."""
    if not are_of_other_steps(before, after) or (before.n_steps and after.n_steps):
        return None
    return f"the runs cover different parts of the program: {_covered(before)} before, {_covered(after)} after"


def n_units(before: Run, after: Run) -> tuple[int, int]:
    """Return by what to divide times of the runs to compare them: their steps, where these are of another number, else 1."""
    steps = before.n_steps, after.n_steps
    if steps[0] and steps[1] and steps[0] != steps[1]:
        return steps[0], steps[1]
    return 1, 1


def steps_remark(before: Run, after: Run) -> str:
    """Return that other steps were profiled, where their times are compared all the same; "" for the same."""
    if not are_of_other_steps(before, after) or coverage_obstacle(before, after):
        return ""
    per_step = "" if n_units(before, after) == (1, 1) else ", so times of the runs are per step"
    return f"the profiled steps differ: {before.steps} before, {after.steps} after{per_step}"


def _covered(run: Run) -> str:
    return f"--step {run.steps}" if run.steps else "the whole run"
