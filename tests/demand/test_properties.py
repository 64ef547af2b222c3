"""What holds of the savings of every finding's change: on all recorded launches, and on launches of arbitrary quantities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ncuroof.demand import SAVINGS, Fix, gain, load_model, with_savings
from ncuroof.demand.fix import Amount
from ncuroof.metrics.formula import Counter, Formula
from tests.demand.launches import FIXES, FIXTURES, QUANTITIES, demands, recorded

_ROUNDING = 1e-9
REPORTS = sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("*/*.ncu-repz"))[::3]
SMALL = "h200/copy_16-to-mended_fetch_32.roofline.ncu-repz"
FEW = {
    name: FIXES[name]
    for name in (
        "uncoalesced_global_access",
        "idle_tensor_cores",
        "small_grid",
        "low_occupancy",
        "alike_blocks",
        "fill",
        "l1_traffic",
    )
}
"""One change of each kind."""
MODEL = load_model()


def share(amount: Amount | None, known: frozenset[str]) -> pl.Expr:
    """Return the largest share of an amount, 0 where it is not known."""
    expression = None if amount is None else amount.most.expression(lambda _: None, known)
    return pl.lit(0.0) if expression is None else expression.clip(0, 1).fill_null(0.0)


def bounding(fix: Fix) -> Iterator[str]:
    """Yield the resources and totals that bound a change: of a side that it touches, neither the total nor what is uncertain."""
    touched = {side for name in (*fix.removes, *fix.frees) for side in MODEL.resources[name].sides}
    for name, resource in MODEL.resources.items():
        if resource.is_certain or not touched & {*resource.sides}:
            yield name
    yield from MODEL.sides.keys() - touched


def left(fix: Fix, known: frozenset[str], column: str, *, with_freed: bool) -> pl.Expr:
    """Return for how long the busiest of the resources that bound a change is needed after it."""
    needs = []
    for name in bounding(fix):
        need = pl.col(column.format(name)) * (1 - share(fix.removes.get(name), known))
        if with_freed:
            need = need * (1 - share(fix.frees.get(name), known)) * (1 - share(fix.work, known))
        if name in fix.adds:
            need = need.fill_null(0.0) + share(Amount(fix.adds[name], fix.adds[name]), known)
        needs.append(need)
    return pl.max_horizontal(needs).fill_null(0.0)


def scaled(fix: Fix, factor: float) -> Fix:
    """Return a change that removes a part of what another one does, and adds what that adds."""

    def part(amount: Amount) -> Amount:
        return Amount(of(amount.likely), of(amount.most))

    def of(formula: Formula) -> Formula:
        def term(counter: Counter, known: frozenset[str]) -> pl.Expr | None:
            expression = formula.term(counter, known)
            return None if expression is None else expression.clip(0, 1) * factor

        return replace(formula, text=f"{factor} * ({formula.text})", term=term)

    effects: dict[str, Any] = {name: part(amount) for name, amount in fix.effects().items() if amount is not None}
    return replace(
        fix,
        removes={name: part(amount) for name, amount in fix.removes.items()},
        frees={name: part(amount) for name, amount in fix.frees.items()},
        **effects,
    )


def hold(table: pl.DataFrame, conditions: Mapping[str, pl.Expr]) -> None:
    """Assert that conditions hold of each launch where they are known."""
    wrong = table.select(
        (~expression.fill_null(value=True)).sum().alias(name) for name, expression in conditions.items()
    )
    assert {name: n for name, n in wrong.row(0, named=True).items() if n} == {}


def with_bounds(table: pl.DataFrame, changes: Mapping[str, Fix]) -> pl.DataFrame:
    """Return the table with the bound of each change, in a column of its finding's name."""
    known = frozenset(table.columns)
    return table.with_columns(gain(fix, known).alias(name) for name, fix in changes.items())


def bounds_are_between_what_goes_and_what_stays(table: pl.DataFrame, changes: Mapping[str, Fix] = FIXES) -> None:
    known, conditions = frozenset(table.columns), {}
    for name, fix in changes.items():
        working = pl.lit(1.0) if fix.is_per_work else pl.col("time.working")
        if fix.launch is None:
            column = "demand_if_even.{}" if fix.idle is not None else "demand.{}"
            stays = left(fix, known, column, with_freed=True)
            conditions[f"{name}: too much"] = pl.col(name) <= (working - stays).clip(lower_bound=0) + _ROUNDING
        if fix.launch is None and fix.idle is None and not fix.is_per_work:
            before = pl.max_horizontal(f"demand.{each}" for each in bounding(fix)).fill_null(0.0)
            fall = before - left(fix, known, "demand.{}", with_freed=False)
            conditions[f"{name}: too little"] = pl.col(name) >= fall - _ROUNDING
        conditions[f"{name}: a share"] = pl.col(name).is_between(0, working if fix.launch is None else 1.0)
    hold(with_bounds(table, changes), conditions)


def removing_more_saves_no_less(table: pl.DataFrame) -> None:
    known = frozenset(table.columns)
    parts = table.with_columns(
        gain(scaled(fix, factor), known).alias(f"{name} {factor}")
        for name, fix in FIXES.items()
        for factor in (0.0, 0.5)
    )
    none = {f"{name}: nothing": pl.col(f"{name} 0.0").abs() <= _ROUNDING for name in FIXES}
    half = {f"{name}: half": pl.col(f"{name} 0.5") <= pl.col(name) + _ROUNDING for name in FIXES}
    known_alike = {f"{name}: known": pl.col(f"{name} 0.0").is_null() == pl.col(name).is_null() for name in FIXES}
    hold(with_bounds(parts, FIXES), none | half | known_alike)


def what_is_expected_lies_within(table: pl.DataFrame, changes: Mapping[str, Fix] = FIXES) -> None:
    known = frozenset(table.columns)
    most, expected, low, high = (pl.col(name) for name in SAVINGS)
    is_timed = pl.col("duration_ns").is_not_null()
    queries = [with_savings(table.lazy(), fix, known) for fix in changes.values()]
    for name, found in zip(changes, pl.collect_all(queries), strict=True):
        hold(
            found,
            {
                f"{name}: order": (low <= expected + _ROUNDING)
                & (expected <= high + _ROUNDING)
                & (high <= most + _ROUNDING),
                f"{name}: shares": pl.all_horizontal(pl.col(each).is_between(0, 1) for each in SAVINGS),
                f"{name}: known": ~is_timed | (expected.is_null() == most.is_null()),
                f"{name}: both ends": (low.is_null() == expected.is_null()) & (high.is_null() == expected.is_null()),
            },
        )


def nothing_is_expected_of_nothing(table: pl.DataFrame) -> None:
    known = frozenset(table.columns)
    queries = [with_savings(table.lazy(), scaled(fix, 0.0), known) for fix in FIXES.values()]
    for found in pl.collect_all(queries):
        assert found.select(pl.max_horizontal(*SAVINGS).max()).item() in {None, 0.0}


def rows_stand_for_themselves(table: pl.DataFrame) -> None:
    known = frozenset(table.columns)
    bounds = [gain(fix, known).alias(name) for name, fix in FIXES.items()]
    assert table.reverse().select(bounds).reverse().equals(table.select(bounds))


def test_savings_of_few_changes_of_few_recorded_launches() -> None:
    assert n_told(FEW, SMALL) >= 4
    bounds_are_between_what_goes_and_what_stays(recorded(SMALL), FEW)
    what_is_expected_lies_within(recorded(SMALL), FEW)


def n_told(changes: Mapping[str, Fix], *reports: str) -> int:
    """Return of how many changes the saving is known for any launch: unknown ones hold every property."""
    told = with_bounds(recorded(*reports), changes).select(list(changes)).count().row(0)
    return sum(n > 0 for n in told)


ON_ALL = (
    bounds_are_between_what_goes_and_what_stays, removing_more_saves_no_less, what_is_expected_lies_within,
    nothing_is_expected_of_nothing, rows_stand_for_themselves,
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("holds", ON_ALL)
def test_savings_of_recorded_launches(holds: Callable[[pl.DataFrame], None]) -> None:
    assert n_told(FIXES, *REPORTS) >= 0.8 * len(FIXES)
    holds(recorded(*REPORTS))


_SHARES = some.one_of(some.none(), some.sampled_from([0.0, 0.5, 1.0]), some.floats(0, 1.1))
_COUNTS = some.one_of(some.none(), some.sampled_from([0.0, 1.0, 32.0]), some.floats(0, 1e7))
_IS_COUNT = ("bytes", "n_", "waves", "ratio", "speedup", "per_instruction", "_ns", "per_sector")


def _values(name: str) -> some.SearchStrategy[float | None]:
    return _COUNTS if any(part in name for part in _IS_COUNT) else _SHARES


LAUNCHES = some.lists(some.fixed_dictionaries({name: _values(name) for name in QUANTITIES}), min_size=2, max_size=20)


@settings(max_examples=4, deadline=None)
@given(LAUNCHES)
def test_savings_of_few_changes_of_any_launches(launches: list[dict[str, float | None]]) -> None:
    bounds_are_between_what_goes_and_what_stays(demands(*launches), FEW)
    what_is_expected_lies_within(demands(*launches), FEW)


@pytest.mark.long
@settings(max_examples=4, deadline=None)
@given(LAUNCHES)
@pytest.mark.parametrize("holds", ON_ALL)
def test_savings_of_any_launches(
    holds: Callable[[pl.DataFrame], None], launches: list[dict[str, float | None]]
) -> None:
    holds(demands(*launches))
