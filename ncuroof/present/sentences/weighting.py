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
        f"weighted by a counting run without ncu ({text.launches(n_launches)}): totals, shares and savings refer to that run, "
        "times of single launches are ncu's"
    ]
    if uneven_frac is not None and uneven_frac >= _LEAST_UNEVEN_FRAC:
        said.append(
            f"{text.share(uneven_frac)} of that run's GPU time is extrapolated: there, one profiled launch represents launches "
            "that take longer or shorter (other sizes on the same grid), and their verdict and time above the roofline are its own "
            "(--no-per-shape --kernel NAME profiles each of them)"
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
            f"the counting run without ncu ({text.launches(n_launches)}) has none of these kernels: was it the same program? Each "
            "launch represents only itself"
        ]
    said = []
    if covered_frac is not None and covered_frac < 1:
        said.append(
            f"{text.share(1 - covered_frac)} of the counting run's GPU time was not profiled and is missing from all totals"
            + _longest(not_recorded)
            + _how_to_record_them([line for line in command_lines if line])
        )
    if n_unmatched:
        launches = "launch was" if n_unmatched == 1 else "launches were"
        only = "represents only itself" if n_unmatched == 1 else "represent only themselves"
        said.append(f"{n_unmatched} profiled {launches} not in the counting run, and {only}")
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
        return (
            "; ncu profiled one instantiation per template: record again with ncuroof profile, which distinguishes them"
        )
    return " (ncuroof profile --no-per-shape profiles every launch)"


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
        f"profiled once per {kernel} and launch shape, without launch counts: "
        "totals and shares are those of the profiled launches, not of the run"
    )
