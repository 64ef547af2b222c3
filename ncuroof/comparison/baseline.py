"""Baselines: a run as a small file that can be committed, and compared with later runs without its report."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from ncuroof.comparison.finding_changes import FOUND, FOUND_TYPE
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.comparison.run import CODE_COLUMNS, COUNTED, Run, Setup, shown_name
from ncuroof.comparison.signatures import renamed, variant
from ncuroof.diagnosis import UnprofiledLaunches
from ncuroof.enums import Verdict
from ncuroof.errors import BaselineError, ReportAccessError, ReportNotFoundError
from ncuroof.json_files import read_document
from ncuroof.sidecars.traces.timeline import as_shape

SCHEMA = "ncuroof.baseline/1"

_TEXTS = ("name", "workload", "range", "short_name", "verdict", "limiter", "renamed", "variant")
_COUNTS = ("group", "n_launches", "n_recorded", "n_high", "n_medium")
_SIZES = ("grid", "block")
_NUMBERS = ("duration_ns", "mean_ns", "deviation_ns", "recoverable_ns", "roof_frac")
"""Numbers that every baseline has."""

_CODE = tuple(name for name in CODE_COLUMNS if name != "opcodes")
"""Columns of the machine code that are written. Counts by opcode would be longer than the rest of the file."""

_LEAST, _MOST = 1e-30, 1e30
"""Range of numbers above zero: reports never exceed it, and outside of it sums and ratios may overflow."""

_MOST_NS = 1e18
"""Thirty years."""

_MOST_LAUNCHES = 10**9
_ROUNDING = 1e-4
"""Relative error of a time that is accepted: numbers are written with six digits."""


def _optional_numbers() -> tuple[str, ...]:
    return (*load_comparison_rules().quantities(), COUNTED)


def baseline_json(run: Run) -> bytes:
    """Return a run as a baseline: what a comparison needs of its groups. The same run gives the same bytes."""
    columns: dict[str, list[Any]] = {}
    for name in (*_COUNTS, *_TEXTS, *_SIZES):
        columns[name] = run.groups[name].to_list()
    for name in (*_NUMBERS, *_optional_numbers()):
        columns[name] = [float(f"{value:.6g}") if _is_possible(value, name) else None for value in run.groups[name]]
    columns[FOUND] = [_finding_pairs(found) for found in run.groups[FOUND]]
    for name in _CODE:
        columns[name] = run.groups[name].to_list()
    setup = {field: getattr(run.setup, field) for field in Setup.__slots__}
    content = {
        "schema": SCHEMA,
        "label": run.label,
        "n_kernels": run.n_kernels,
        "n_failed": run.n_failed,
        "failed": run.failed,
        "step_ns": run.step_ns,
        "idle_frac": run.idle_frac,
        "is_counted": run.is_counted,
        "not_recorded_ns": run.not_recorded_ns,
        "not_recorded": [asdict(each) for each in run.unprofiled],
        "steps": run.steps,
        "n_steps": run.n_steps,
        "damage": run.damage,
        "recording": setup,
        "groups": columns,
    }
    return (json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode()


def read_baseline(path: str | os.PathLike[str]) -> Run:
    """Return the run of a baseline.

    Raises:
        BaselineError: the file is not a baseline, has a different schema, or is damaged.
        ReportNotFoundError: there is no such file.
        ReportAccessError: it cannot be read.
    """
    hint = "write one with: ncuroof compare REPORT REPORT --save-baseline FILE"
    try:
        return read_document(Path(path), _run, schema=SCHEMA, what="a baseline", error=BaselineError, hint=hint)
    except FileNotFoundError as error:
        raise ReportNotFoundError(f"{path}: no such baseline", hint=hint) from error
    except OSError as error:
        raise ReportAccessError(f"{path}: {error.strerror}", hint="check its permissions") from error


def _run(content: dict[str, Any]) -> Run:
    json.dumps(content, ensure_ascii=False, allow_nan=False).encode()  # refuses NaN, infinity and broken characters
    groups = _groups(dict(content["groups"]))
    n_kernels = _whole(content["n_kernels"], "n_kernels", most=_MOST_LAUNCHES)
    n_failed = _whole(content["n_failed"], "n_failed", most=n_kernels)
    failed = _texts(content.get("failed", [""] * n_failed), "failed")
    if len(failed) != n_failed:
        raise ValueError(f"expected {n_failed} names in failed, found {len(failed)}")
    return Run(
        label=str(content["label"]),
        setup=_setup(content["recording"]),
        groups=groups.with_columns(
            pl.lit([], pl.List(pl.UInt32)).alias("ids"),
            shown_name(),
            renamed(pl.col("name")).alias(
                "renamed"
            ),  # by the rules of this version, not of the one that wrote the file
            variant(pl.col("name")).alias("variant"),
        ),
        n_kernels=n_kernels,
        n_failed=n_failed,
        failed=failed,
        step_ns=_number(content, "step_ns"),
        idle_frac=_number(content, "idle_frac", most=1 + _ROUNDING),
        is_counted=_flag(content["is_counted"], "is_counted") if "is_counted" in content else _seems_counted(groups),
        not_recorded_ns=_number(content, "not_recorded_ns"),
        unprofiled=tuple(map(_unprofiled, content.get("not_recorded", []))),
        steps=_text(content.get("steps"), "steps"),
        n_steps=None if content.get("n_steps") is None else _whole(content["n_steps"], "n_steps", most=_MOST_LAUNCHES),
        damage=_texts(content.get("damage", []), "damage"),
    )


def _groups(columns: dict[str, Any]) -> pl.DataFrame:
    if single := [name for name, column in columns.items() if not isinstance(column, list)]:
        raise ValueError(f"expected a list in {single[0]}, found {columns[single[0]]!r}")
    known = {
        **{name: pl.UInt32() for name in _COUNTS} | {"n_launches": pl.Int64()},
        **{name: pl.String() for name in _TEXTS},
        **{name: pl.List(pl.Int64()) for name in _SIZES},
        **{name: pl.Float64() for name in _NUMBERS},
    }
    n_groups = len(columns["group"])
    if columns["group"] != list(range(n_groups)):
        raise ValueError(f"expected groups 0 to {n_groups - 1} in order, found {columns['group'][:8]}")
    quantities = {name: columns.get(name, [None] * n_groups) for name in _optional_numbers()}
    try:
        groups = pl.DataFrame(
            {name: columns[name] for name in known} | quantities,
            schema=known | dict.fromkeys(quantities, pl.Float64()),
        )
    except pl.exceptions.PolarsError as error:
        raise ValueError("columns of groups differ in length, or have values of the wrong type") from error
    code = {name: columns.get(name, [None] * n_groups) if name in _CODE else [None] * n_groups for name in CODE_COLUMNS}
    try:
        groups = groups.hstack(pl.DataFrame(code, schema=CODE_COLUMNS))
    except pl.exceptions.PolarsError as error:
        raise ValueError("columns of the machine code differ in length, or have values of the wrong type") from error
    _check(groups)
    return groups.with_columns(
        pl.Series(FOUND, _findings_of_pairs(columns.get(FOUND, [None] * n_groups)), dtype=FOUND_TYPE)
    )


def _finding_pairs(found: Sequence[Mapping[str, Any]] | None) -> list[list[Any]] | None:
    """Return findings as pairs of name and gain."""
    if found is None:
        return None
    rounded = [(each["finding"], each["gain_frac"]) for each in found]
    return [[name, float(f"{gain:.6g}") if _is_possible(gain, name) else None] for name, gain in rounded]


def _findings_of_pairs(column: Sequence[Any]) -> list[Any]:
    """Return findings as values of FOUND; None where the baseline does not state them."""
    found = []
    for pairs in column:
        if pairs is not None and not all(len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
            raise ValueError(f"expected pairs of a finding and its gain, found {pairs!r}")
        gains = {name: _number({"gain": gain}, "gain") for name, gain in pairs or ()}
        found.append(None if pairs is None else [{"finding": name, "gain_frac": gain} for name, gain in gains.items()])
    return found


def _check(groups: pl.DataFrame) -> None:
    """Raise a `ValueError` if groups hold values that no run can have."""
    one_or_more, zero_or_more = ("n_launches", "n_recorded"), ("n_high", "n_medium")
    is_right = {
        **{name: pl.col(name).is_between(1, _MOST_LAUNCHES).fill_null(value=False) for name in one_or_more},
        **{name: pl.col(name).is_not_null() for name in zero_or_more},
        **{
            name: ((pl.col(name) == 0) | pl.col(name).is_between(_LEAST, _largest_possible(name))).fill_null(value=True)
            for name in groups.columns
            if groups[name].dtype == pl.Float64
        },
        "sha256": pl.col("sha256").str.contains("^[0-9a-f]{64}$").fill_null(value=True),
        "n_instructions": pl.col("n_instructions").is_between(1, _MOST_LAUNCHES).fill_null(value=True),
        "verdict": pl.col("verdict").is_in([each.value for each in Verdict]).fill_null(value=False),
    }
    right = groups.select(holds.all().alias(name) for name, holds in is_right.items()).row(0, named=True)
    if wrong := [name for name, holds in right.items() if not holds]:
        raise ValueError(f"impossible values in {', '.join(wrong)}")


def _setup(content: dict[str, Any]) -> Setup:
    fields: dict[str, Any] = dict(content)
    for name in fields:
        if name == "sm_clock_hz":
            fields[name] = _number(content, name)
        else:
            fields[name] = (_flag if name == "is_simulated" else _texts)(content[name], name)
    return Setup(**fields)


def _unprofiled(entry: Mapping[str, Any]) -> UnprofiledLaunches:
    name, time_ns = _text(entry["name"], "name"), _number(dict(entry), "duration_ns")
    if name is None or time_ns is None:
        raise ValueError(f"expected a name and a time in not_recorded, found {entry!r}")
    n_launches = _whole(entry["n_launches"], "n_launches", most=_MOST_LAUNCHES)
    return UnprofiledLaunches(name, as_shape(entry["grid"]), as_shape(entry["block"]), n_launches, time_ns)


def _seems_counted(groups: pl.DataFrame) -> bool:
    """Return whether the run of an old baseline was counted: a launch stands for several, or a time is not ncu's."""
    recorded_ns = pl.col("mean_ns") * pl.col("n_recorded")
    is_other_time = (pl.col("duration_ns") - recorded_ns).abs() > _ROUNDING * recorded_ns
    return not groups.filter((pl.col("n_launches") != pl.col("n_recorded")) | is_other_time).is_empty()


def _largest_possible(name: str) -> float:
    return _MOST_NS if name.endswith("_ns") else _MOST


def _is_possible(value: float | None, name: str) -> bool:
    return value is not None and (value == 0 or _LEAST <= value <= _largest_possible(name))


def _number(content: dict[str, Any], name: str, *, most: float = math.inf) -> float | None:
    value = content.get(name)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is not None and not (is_number and _is_possible(value, name) and value <= most):
        raise ValueError(f"impossible value in {name}: {value!r}")
    return None if value is None else float(value)


def _whole(value: Any, name: str, *, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"expected a whole number up to {most} in {name}, found {value!r}")
    return value


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false in {name}, found {value!r}")
    return value


def _text(value: Any, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"expected a text in {name}, found {value!r}")
    return value


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"expected a list of texts in {name}, found {value!r}")
    return tuple(value)
