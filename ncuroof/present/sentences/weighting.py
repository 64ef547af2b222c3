"""How sums over a run are weighted, and why they may differ from the run's, in sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ncuroof import formatting
from ncuroof.present.schemas.analysis import UnprofiledEntry, WeightingEntry

_ONCE_PER_SHAPE = "--filter-mode per-launch-config"
_CHOSEN = re.compile(r"--kernel-name (?!regex:\^\(\?!\.\*\(\?:[\w|]+\)\)(?:\s|$))")
_NAME_BASE = "--kernel-name-base"
_SKIP = "--launch-skip"
"""In ncu's command line: profile one launch per kernel and shape; only selected kernels; how names are compared; not the first.

A `--kernel-name` pattern of ncuroof that only excludes collectives does not count as a selection.
"""

_N_NAMED = 3
"""Most functions to name that were not profiled."""

_LEAST_UNCOUNTED_FRAC = 0.02
"""Least share of GPU time in launches that were not counted for totals not to be called those of the counting run."""

_LEAST_UNEVEN_FRAC = 0.02
"""Least share of the counting run's GPU time to be mentioned for the whole run; the caveat of a kernel appears in any case."""


def weighting_sentences(weighting: WeightingEntry | None) -> list[str]:
    """Return how sums are weighted: by which counting run, and how much of it is extrapolated; empty where nothing is weighted.

    Args:
        weighting: of the document's summary.
    """
    if weighting is None or weighting["covered_frac"] == 0:
        return []
    if weighting["is_summary"]:
        return _of_summary(weighting)
    weighted = f"weighted by launch counts from a run without ncu ({formatting.launches(weighting['n_launches'])})"
    said = [f"{weighted}: totals, shares and savings refer to that run, times of single launches are ncu's"]
    uncounted_frac, uneven_frac = weighting["uncounted_frac"], weighting["uneven_frac"]
    if uncounted_frac is not None and uncounted_frac >= _LEAST_UNCOUNTED_FRAC:
        said = [
            f"{weighted}, except for launches that were not counted: these take "
            f"{formatting.share(uncounted_frac)} of the GPU time, each represents only itself, and totals, "
            "shares and savings refer to both; times of single launches are ncu's"
        ]
    if uneven_frac is not None and uneven_frac >= _LEAST_UNEVEN_FRAC:
        said.append(
            f"{formatting.share(uneven_frac)} of that run's GPU time is extrapolated: there, one profiled launch represents "
            "launches that take longer or shorter (other sizes on the same grid), and their verdict and time above the "
            "roofline are its own (--no-per-shape --kernel NAME profiles each of them)"
        )
    return said


def _of_summary(weighting: WeightingEntry) -> list[str]:
    """Return what a summary's rows stand for; that their mean fits few launches, where these differ much."""
    launches = formatting.launches(weighting["n_launches"])
    said = [
        f"a summary printed by ncu: each row is the mean over a kernel's launches of one shape ({launches}), and totals and "
        "shares count all of them"
    ]
    uneven_frac = weighting["uneven_frac"]
    if uneven_frac is not None and uneven_frac >= _LEAST_UNEVEN_FRAC:
        said.append(
            f"{formatting.share(uneven_frac)} of the GPU time is of kernels whose launches take different times: the mean stands "
            "for few of them, and its verdict may be that of none (print each launch: without --print-summary)"
        )
    return said


def not_the_run_sentences(weighting: WeightingEntry | None, command_lines: Sequence[str | None] = ()) -> list[str]:
    """Return why sums differ from those of the run: what was not profiled of it, and what was profiled but not counted.

    Args:
        weighting: of the document's summary.
        command_lines: command lines of ncu, from the reports.
    """
    if weighting is None:
        return _recorded_once(command_lines)
    if weighting["is_summary"]:
        return []
    covered_frac, n_unmatched, foreign = weighting["covered_frac"], weighting["n_unmatched"], weighting["foreign"]
    if covered_frac == 0:
        return [
            f"the launch counts from a run without ncu ({formatting.launches(weighting['n_launches'])}) have none of these "
            "kernels: was it the same program? Each launch represents only itself"
        ]
    said = [*_of_another_program(foreign), *_of_the_first_step(weighting, command_lines)]
    if covered_frac is not None and covered_frac < 1:
        said.append(
            f"{formatting.share(1 - covered_frac)} of the counting run's GPU time was not profiled and is missing from all totals"
            + _longest(weighting["not_recorded"])
            + _how_to_record_them([line for line in command_lines if line])
        )
    if n_unmatched:
        launches = "launch was" if n_unmatched == 1 else "launches were"
        only = "represents only itself" if n_unmatched == 1 else "represent only themselves"
        said.append(f"{n_unmatched} profiled {launches} not in the counting run, and {only}")
    return said


def _of_another_program(foreign: Sequence[int]) -> list[str]:
    if not foreign:
        return []
    of_which = "the report's" if len(foreign) == 1 else f"{len(foreign)} reports'"
    return [
        f"most of {of_which} launches are not in the counting run: was it the same program? Its wall-clock time is left out"
    ]


def _of_the_first_step(weighting: WeightingEntry, command_lines: Sequence[str | None]) -> list[str]:
    """Return that the launches are a run's first ones, where each kernel and shape of a whole run was profiled once."""
    is_whole_run = any(time["n_steps"] is None for time in weighting["wall_times"])
    is_first = any(line and _ONCE_PER_SHAPE in line and _SKIP not in line for line in command_lines)
    if not (is_whole_run and is_first):
        return []
    return [
        "each profiled launch is the first of its kernel and shape in the run, in a training script mostly one of the first step "
        "(--step N profiles those of a later step)"
    ]


def _longest(not_recorded: Sequence[UnprofiledEntry]) -> str:
    names = [
        f"{formatting.printable(each['name'])} {formatting.duration(each['duration_ns'])}" for each in not_recorded
    ]
    return f": {formatting.first_of(names, _N_NAMED)}" if names else ""


def _how_to_record_them(command_lines: Sequence[str]) -> str:
    """Return how to profile what is missing; empty where the user selected kernels.

    By default ncu compares kernels by function name, and profiles only the first of a template's instantiations with one shape.
    `ncuroof profile` has it compare mangled names, and so profiles each instantiation once; what is still missing ran in only one
    of the two runs.
    """
    once = [line for line in command_lines if _ONCE_PER_SHAPE in line and not _CHOSEN.search(line)]
    if not once:
        return ""
    if not all(_NAME_BASE in line for line in once):
        return (
            "; ncu profiled one instantiation per template: record again with ncuroof profile, which distinguishes them"
        )
    return " (ncuroof profile --no-per-shape profiles every launch)"


def _recorded_once(command_lines: Sequence[str | None]) -> list[str]:
    """Return the warning for reports that contain each kernel and shape once, without launch counts; none for others.

    By default ncu compares kernels by function name, so that of a template's instantiations with one shape it profiles only one.
    """
    once = [line for line in command_lines if line and _ONCE_PER_SHAPE in line]
    if not once:
        return []
    kernel = "kernel" if all(_NAME_BASE in line for line in once) else "function"
    return [
        f"profiled once per {kernel} and launch shape, without launch counts: "
        "totals and shares are those of the profiled launches, not of the run"
    ]
