"""What the sums over a run are weighted by, in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncuroof.present import format as text

_ONCE_PER_SHAPE = "--filter-mode per-launch-config"
_CHOSEN = re.compile(r"--kernel-name (?!regex:\^\(\?!\.\*\(\?:[\w|]+\)\)(?:\s|$))")
_NAME_BASE = "--kernel-name-base"
"""In ncu's command line: a launch per kernel and launch shape; of chosen kernels (not of all but collectives); by whole names."""

_N_NAMED = 3
"""Functions that were not recorded."""

_LEAST_UNEVEN_FRAC = 0.02
"""Of the counted time: less is told by the kernels themselves alone."""


def weighting_sentences(
    *, n_launches: int, covered_frac: float | None, uneven_frac: float | None = None, **_: object
) -> list[str]:
    """Return them: counted launches, and in how much of their time one stands for others; none where nothing was weighted.

    Args:
        n_launches: that were counted.
        covered_frac: share of their GPU time whose kernels were recorded; None where not known.
        uneven_frac: share of that time in kernels one launch of which stands for launches that take other times.
    """
    if covered_frac == 0:
        return []
    said = [
        f"weighted by a run without replays, which counted {n_launches} launches: sums, shares and gains are of that run, "
        "times of single launches are ncu's"
    ]
    if uneven_frac is not None and uneven_frac >= _LEAST_UNEVEN_FRAC:
        said.append(
            f"in {text.share(uneven_frac)} of that run's GPU time a launch stands for others that take longer or shorter: other "
            "sizes on the same grid, of which one is judged, and what lies above the roofline is told from it (--no-per-shape "
            "--kernel NAME records each)"
        )
    return said


def not_the_run_sentences(
    *,
    n_launches: int,
    covered_frac: float | None,
    n_unmatched: int,
    not_recorded: Sequence[Mapping[str, Any]] = (),
    command_lines: Iterable[str | None] = (),
    **_: object,
) -> list[str]:
    """Return why sums are not those of the counted run: the share of its time that was not recorded, and what it did not count.

    Args:
        n_launches: that were counted.
        covered_frac: share of their GPU time whose kernels were recorded; None where not known.
        n_unmatched: recorded launches of kernels that were not counted.
        not_recorded: functions of the launches that were not, with their time, the longest first.
        command_lines: of ncu, as the reports hold them.
    """
    if covered_frac == 0:
        return [
            f"a run without replays counted {n_launches} launches, and none of the kernels here was among them: was it of the "
            "same program? Each launch here stands for itself"
        ]
    said = []
    if covered_frac is not None and covered_frac < 1:
        said.append(
            f"kernels with {text.share(1 - covered_frac)} of the counted run's GPU time were not recorded and are in no sum"
            + _longest(not_recorded)
            + _how_to_record_them([line for line in command_lines if line])
        )
    if n_unmatched:
        one = n_unmatched == 1
        launches = (
            "launch was not in the counted run, and stands"
            if one
            else "launches were not in the counted run, and each stands"
        )
        said.append(f"{n_unmatched} recorded {launches} for itself")
    return said


def _longest(not_recorded: Sequence[Mapping[str, Any]]) -> str:
    names = [f"{text.printable(each['name'])} {text.duration(each['duration_ns'])}" for each in not_recorded[:_N_NAMED]]
    n_more = len(not_recorded) - len(names)
    return f": {', '.join(names)}" + (f" and {n_more} more" if n_more else "") if names else ""


def _how_to_record_them(command_lines: Sequence[str]) -> str:
    """Return what records them: of a template's kernels of one shape ncu took the first where it went by function, its default.

    `ncuroof profile` has it go by mangled names, each of which it records once; what is missing then was not there in one of the
    two runs. What was not asked for is not told of.
    """
    once = [line for line in command_lines if _ONCE_PER_SHAPE in line and not _CHOSEN.search(line)]
    if not once:
        return ""
    if not all(_NAME_BASE in line for line in once):
        return "; ncu took one for all kernels of a template: record again, ncuroof profile tells them apart"
    return " (ncuroof profile --no-per-shape records every launch)"


def recorded_once_sentence(command_lines: Iterable[str | None]) -> str:
    """Return what to say of reports that hold each kernel and shape once without counts; empty for others.

    By default ncu tells kernels apart by the function's name alone: of a template's instantiations with one shape there is one.

    Args:
        command_lines: of ncu, as the reports without counts hold them.
    """
    once = [line for line in command_lines if line and _ONCE_PER_SHAPE in line]
    if not once:
        return ""
    kernel = "kernel" if all(_NAME_BASE in line for line in once) else "function"
    return (
        f"recorded once per {kernel} and launch shape, and not counted: "
        "sums and shares are of what was recorded, and not of the run"
    )
