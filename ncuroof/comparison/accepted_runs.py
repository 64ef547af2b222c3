"""The last accepted runs as one run to compare with: a single day that was fast by chance is then no standard.

Each accepted run is a baseline in a folder. Of a kernel, the time before is the mean over these runs, and how much they deviate is
the noise: clocks, temperature and placement differ from day to day, which the launches of one run cannot show. A further run
deviates from the mean of n by s · √(1 + 1/n), where s is the standard deviation of the n (prediction interval, by Student's
distribution).

A kernel that changed for good begins a new level, which its older times do not belong to: where the machine code is another, or
where two runs agree that its time is.
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
"""So many runs at another level are a change, and one is chance."""


def accepted_files(folder: Path) -> list[Path]:
    """Return the baselines in a folder, the oldest first; none where there is no folder.

    Raises:
        BaselineError: it is no folder, or cannot be read.
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
    """Return the path of the run to accept next: numbers go up, so that the order of the files is that of the runs."""
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


def together(runs: Sequence[Run]) -> Run:
    """Return accepted runs as one: the newest, with the mean times of all and how much these deviate from run to run.

    Runs whose times cannot be compared with those of the newest are left out.

    Args:
        runs: at least one, the oldest first.
    """
    newest, *others = reversed(runs)
    alike = [run for run in others if not run.damage and comparable(run.setup, newest.setup).is_time_comparable]
    by_key = [{_key(row): row for row in run.groups.iter_rows(named=True)} for run in alike]
    rows = [_of_level(row, [rows[_key(row)] for rows in by_key if _key(row) in rows]) for row in _rows(newest)]
    names = [name for name in (*_AVERAGED, "deviation_ns", "n_recorded") if name in newest.groups.columns]
    columns = [pl.Series(name, [row[name] for row in rows], dtype=newest.groups.schema[name]) for name in names]
    label = newest.label if not alike else f"{len(alike) + 1} accepted runs, the last of them {newest.label}"
    return replace(newest, label=label, groups=newest.groups.with_columns(columns))


def _rows(run: Run) -> list[Row]:
    return list(run.groups.iter_rows(named=True))


def _key(row: Row) -> tuple[object, ...]:
    """Return what a kernel has in common with itself in another run: what is launched, and how often."""
    return (
        *(tuple(value) if isinstance(value, list) else value for value in map(row.get, SAME_LAUNCH)),
        row["n_launches"],
    )


def _of_level(newest: Row, earlier: Sequence[Row]) -> Row:
    """Return a kernel over the runs of its level: mean times, and their deviation where there are enough of them."""
    level = _level([row for row in (newest, *earlier) if row["mean_ns"]])
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


def _level(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the runs of a kernel that are at its present level, the newest first.

    The newest alone is one only if its code is new: otherwise it may be a lucky day, and the level is that of two runs before it.
    """
    if len(rows) < _N_TO_CONFIRM or _is_other_code(rows[0], rows[1]):
        return rows[:1]
    levels = (_agreeing(rows[start:]) for start in range(len(rows)))
    return next((level for level in levels if len(level) >= _N_TO_CONFIRM), rows)


def _agreeing(rows: Sequence[Row]) -> list[Row]:
    """Return the first of some rows and those that agree with it, up to two in a row that do not, or to another code."""
    found, n_apart = [rows[0]], 0
    for row in rows[1:]:
        if n_apart == _N_TO_CONFIRM or _is_other_code(rows[0], row):
            break
        is_alike = _agrees(row, found)
        n_apart = 0 if is_alike else n_apart + 1
        found += [row] if is_alike else []
    return found


def _is_other_code(row: Row, other: Row) -> bool:
    return bool(row["sha256"] and other["sha256"] and row["sha256"] != other["sha256"])


def _agrees(row: Row, found: Sequence[Row]) -> bool:
    """Return whether the time of a kernel is that of others, but for chance and what does not matter, at the same work."""
    rules = load_comparison_rules()
    sides = MatchedGroups.of([row]), MatchedGroups.of([found[0]])
    work, chance = work_ratio(*sides), chance_of_match(*sides)
    if work is not None and abs(math.log(work[1])) > math.log(rules.work.one_group_ratio):
        return False
    change = row["mean_ns"] / fmean(each["mean_ns"] for each in found) - 1
    return not is_beyond(change, max(rules.noise.matters_frac, chance.noise_frac() if chance is not None else 0.0))
