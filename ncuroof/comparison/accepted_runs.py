"""Average the last accepted runs into one run to compare with, so that one lucky day does not set the standard.

Each accepted run is a baseline in a folder. The time of a kernel is its mean over these runs; the noise is their deviation. The
launches of a single run cannot show this noise: clocks, temperature and placement differ from day to day. A new run deviates from
the mean of n runs by s · √(1 + 1/n), where s is the standard deviation of the n (prediction interval, by Student's distribution).

A kernel that changed for good begins a new level, and its times before the change are left out. A new level begins where the
machine code differs, or where two runs in a row agree on a different time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import polars as pl

from ncuroof.comparison.baseline import read_baseline
from ncuroof.comparison.matched_groups import MatchedGroups, Row, work_ratio
from ncuroof.comparison.noise import chance_of_match, is_beyond
from ncuroof.comparison.obstacles import comparable
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.comparison.run import COUNTED, SAME_LAUNCH, Run
from ncuroof.errors import BaselineError

_FILE = re.compile(r"(\d{4,9})\.json")
_AVERAGED = ("mean_ns", "duration_ns", "recoverable_ns", "roof_frac", "sm_clock_hz", COUNTED)
_N_TO_CONFIRM = 2
"""Runs at a different level that make a change; a single one may be chance."""


def accepted_files(folder: Path) -> list[Path]:
    """Return the baselines in a folder, the oldest first; an empty list if the folder does not exist.

    Raises:
        BaselineError: the path is not a folder, or the folder cannot be read.
    """
    try:
        found = [path for path in folder.iterdir() if _FILE.fullmatch(path.name)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BaselineError(
            f"{folder}: expected a folder with accepted runs: {error.strerror}", hint="name another folder"
        ) from error
    return sorted(found, key=_number)


def next_file(folder: Path) -> Path:
    """Return the path of the run to accept next; files are numbered in the order of the runs."""
    files = accepted_files(folder)
    return folder / f"{(_number(files[-1]) if files else 0) + 1:04}.json"


def _number(path: Path) -> int:
    return int(path.name.partition(".")[0])


def read_accepted(folder: Path, n_last: int) -> list[Run]:
    """Return the last accepted runs, the oldest first.

    Raises:
        BaselineError: a file is damaged.
        ReportAccessError: a file cannot be read.
    """
    return [read_baseline(path) for path in accepted_files(folder)[-n_last:]]


def averaged_run(runs: Sequence[Run]) -> Run:
    """Return the newest accepted run with the mean times of all accepted runs, and the deviation of these times.

    Runs whose times are not comparable with the times of the newest run are left out.

    Args:
        runs: at least one, the oldest first.
    """
    newest, *others = reversed(runs)
    alike = [run for run in others if not run.damage and comparable(run.setup, newest.setup).is_time_comparable]
    by_key = [{_key(row): row for row in run.groups.iter_rows(named=True)} for run in alike]
    rows = [
        _averaged_over_level(row, [rows[_key(row)] for rows in by_key if _key(row) in rows])
        for row in newest.groups.iter_rows(named=True)
    ]
    names = [name for name in (*_AVERAGED, "deviation_ns", "n_recorded") if name in newest.groups.columns]
    columns = [pl.Series(name, [row[name] for row in rows], dtype=newest.groups.schema[name]) for name in names]
    label = newest.label if not alike else f"{len(alike) + 1} accepted runs, the last of them {newest.label}"
    return replace(newest, label=label, groups=newest.groups.with_columns(columns))


def _key(row: Row) -> tuple[object, ...]:
    """Return what identifies a kernel in every run: what is launched, and how often."""
    return (
        *(tuple(value) if isinstance(value, list) else value for value in map(row.get, SAME_LAUNCH)),
        row["n_launches"],
    )


def _averaged_over_level(newest: Row, earlier: Sequence[Row]) -> Row:
    """Return a kernel with its mean times over the runs of its level, and their deviation if there are enough runs."""
    level = _present_level([row for row in (newest, *earlier) if row["mean_ns"]])
    if len(level) < 2:
        return {**newest, **(level[0] if level else {})}
    averaged = {name: _mean([row.get(name) for row in level]) for name in _AVERAGED}
    n = len(level)
    if n < load_comparison_rules().noise.n_launches_to_estimate:
        return {**newest, **averaged}
    deviation = stdev(row["mean_ns"] for row in level) * math.sqrt(n + 1)  # over √n: s · √(1 + 1/n)
    return {**newest, **averaged, "deviation_ns": deviation, "n_recorded": n}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def _present_level(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the runs of a kernel that are at its present level, the newest first.

    The newest run alone is a level only if its code is new. Otherwise its time may be chance, and the level is the newest one that
    at least two runs agree on.
    """
    if len(rows) < _N_TO_CONFIRM or _has_different_code(rows[0], rows[1]):
        return rows[:1]
    levels = (_leading_agreement(rows[start:]) for start in range(len(rows)))
    return next((level for level in levels if len(level) >= _N_TO_CONFIRM), rows)


def _leading_agreement(rows: Sequence[Row]) -> list[Row]:
    """Return the first row and the rows that agree with it, up to two in a row that do not, or up to different code."""
    found, n_apart = [rows[0]], 0
    for row in rows[1:]:
        if n_apart == _N_TO_CONFIRM or _has_different_code(rows[0], row):
            break
        is_alike = _agrees(row, found)
        n_apart = 0 if is_alike else n_apart + 1
        found += [row] if is_alike else []
    return found


def _has_different_code(row: Row, other: Row) -> bool:
    return bool(row["sha256"] and other["sha256"] and row["sha256"] != other["sha256"])


def _agrees(row: Row, found: Sequence[Row]) -> bool:
    """Return whether a launch does the work of the found rows in the same time, within noise and what is too small to matter."""
    rules = load_comparison_rules()
    sides = MatchedGroups.of([row]), MatchedGroups.of([found[0]])
    work, chance = work_ratio(*sides), chance_of_match(*sides)
    if work is not None and abs(math.log(work[1])) > math.log(rules.work.one_group_ratio):
        return False
    change = row["mean_ns"] / fmean(each["mean_ns"] for each in found) - 1
    return not is_beyond(change, max(rules.noise.matters_frac, chance.noise_frac() if chance is not None else 0.0))
