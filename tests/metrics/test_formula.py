from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncuroof.errors import ProfileError
from ncuroof.metrics.formula import Comparator, parse, parse_condition, sum_of, sum_of_known

FRAME = pl.DataFrame({"a__x.sum": [6.0, None, 0.0], "b__y": [3.0, 3.0, 0.0], "time": [2.0, 2.0, 2.0]})


def evaluate(text: str) -> list[float | None] | None:
    def counter(name: str) -> pl.Expr | None:
        return pl.col(name) if name in FRAME.columns else None

    expression = parse(text).expression(counter, frozenset({"time"}))
    return None if expression is None else FRAME.select(value=expression)["value"].to_list()


def test_products_bind_tighter_than_sums() -> None:
    # 6 + 2·3 = 12; 0 + 2·0 = 0
    assert evaluate("a__x.sum + 2 * b__y") == [12.0, None, 0.0]


def test_parentheses_and_subtraction() -> None:
    # (6 − 3) · 2 = 6
    assert evaluate("(a__x.sum - b__y) * {time}") == [6.0, None, 0.0]


def test_subtraction_is_left_associative() -> None:
    # 6 − 3 − 2 = 1, not 6 − (3 − 2) = 5
    assert evaluate("a__x.sum - b__y - {time}")[0] == 1.0


def test_division_by_zero_is_null() -> None:
    assert evaluate("{time} / b__y") == [2 / 3, 2 / 3, None]


def test_zero_stays_zero_and_null_stays_null() -> None:
    assert evaluate("1e3 * a__x.sum") == [6000.0, None, 0.0]


def test_absent_counter_makes_the_formula_absent() -> None:
    assert evaluate("a__x.sum + never__collected") is None
    assert evaluate("a__x.sum + {unknown.quantity}") is None


def test_max_skips_what_is_absent_or_null() -> None:
    assert evaluate("max(a__x.sum, never__collected, b__y)") == [6.0, 3.0, 0.0]


def test_max_of_nothing_is_absent() -> None:
    assert evaluate("max(never__collected, (gone__too + b__y) * 2)") is None


def test_an_absent_counter_inside_parentheses_spoils_its_argument_only() -> None:
    assert evaluate("max(2 * (never__collected + 1), b__y) + 1") == [4.0, 4.0, 1.0]
    assert evaluate("min(above_zero(gone__x - 1), 3 * (gone__y - b__y), {time})") == [2.0, 2.0, 2.0]


def test_sum_of_nulls_is_null_not_zero() -> None:
    assert evaluate("sum(a__x.sum, never__collected)") == [6.0, None, 0.0]


def test_ceil_and_bounds() -> None:
    assert evaluate("ceil(b__y / {time})") == [2.0, 2.0, 0.0]
    assert evaluate("above_zero({time} - b__y)") == [0.0, 0.0, 2.0]
    assert evaluate("at_most_one({time} - b__y)") == [min(1.0, each) for each in evaluate("{time} - b__y")]
    assert evaluate("at_most_one(gone__x)") is None


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("b__y > {time}", [True, True, False]),
        ("b__y >= 3", [True, True, False]),
        ("b__y < 3", [False, False, True]),
        ("b__y <= 0", [False, False, True]),
        ("a__x.sum >= 0", [True, False, True]),  # null is not known to be
        ("a__x.sum < 6", [False, False, True]),
        ("a__x.sum is known", [True, False, True]),
        ("a__x.sum / b__y is known", [True, False, False]),
        ("b__y > 2 and a__x.sum is known", [True, False, False]),
        ("a__x.sum is known and b__y > 2", [True, False, False]),
        ("a__x.sum - b__y > 2 * 1", [True, False, False]),
        ("a__x.sum is unknown", [False, True, False]),
        ("a__x.sum >= 1 or unknown", [True, True, False]),
        ("a__x.sum >= 0 and known", [True, False, True]),
        ("a__x.sum < 6 or unknown and b__y > 2", [False, True, False]),
        ("a__x.sum >= 0 and known and b__y > 2", [True, False, False]),
        ("never__collected is unknown", [True, True, True]),
        ("never__collected > a__x.sum or unknown", [True, True, True]),
    ],
)
def test_a_condition_that_does_not_hold_or_is_not_known_gives_null(condition: str, holds: list[bool]) -> None:
    assert evaluate(f"{{time}} + 1 if {condition}") == [3.0 if it else None for it in holds]


def test_a_condition_holds_for_all_of_its_sum_and_for_its_argument_alone() -> None:
    assert evaluate("1 + {time} if b__y > 2") == [3.0, 3.0, None]
    assert evaluate("1 + max({time}, 7 if b__y > 2)") == [8.0, 8.0, 3.0]
    assert evaluate("1 + sum(7 if b__y > 2 and a__x.sum is known, {time})") == [10.0, 3.0, 3.0]
    assert evaluate("2 * ({time} if b__y > 2)") == [4.0, 4.0, None]


def test_a_condition_on_what_is_absent_makes_the_value_absent() -> None:
    for condition in ("never__collected > 1", "1 < never__collected and known", "{gone.too} is known"):
        assert evaluate(f"{{time}} if {condition}") is None
        assert evaluate(f"max(1, {{time}} if {condition})") == [1.0]


def test_a_formula_names_what_its_conditions_read() -> None:
    formula = parse("1 if a__x.sum > {time} and known__too is known")
    assert formula.counters == {"a__x.sum", "known__too"}
    assert formula.quantities == {"time"}


@pytest.mark.parametrize(
    "text",
    [
        *("1 if", "1 if 2", "1 if 2 >", "1 if 2 > 1 if 3 > 1", "1 and 2 > 1", "1 if 2 + 1", "1 < 2", "known"),
        *(
            "1 if 2 is",
            "1 if 2 > 1 or",
            "1 if 2 > 1 or 3 > 1",
            "1 if 2 is known or unknown",
            "1 if 2 > 1 and known known",
        ),
    ],
)
def test_malformed_condition_is_refused(text: str) -> None:
    with pytest.raises(ProfileError, match="formula"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{a} if {b} is {known}", "expected 'known' or 'unknown', found 'known'"),  # a quantity of that name is no word
        ("{a} if {b}", "expected a comparison, 'is known' or 'is unknown', found its end"),
        ("{a} if {b} > 1 or {c} > 1", "expected 'unknown', found 'c'"),
        ("{a} if ({b} > 1)", "expected '\\)', found '>'"),
    ],
)
def test_what_a_condition_lacks_is_named(text: str, found: str) -> None:
    with pytest.raises(ProfileError, match=found):
        parse(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("occupancy.waves >= 1", ("occupancy.waves", Comparator(">=", None), 1.0)),
        ("utilisation.known_lead <= -0.1", ("utilisation.known_lead", Comparator("<=", None), -0.1)),
        ("duration_ns<2e4 or unknown", ("duration_ns", Comparator("<", True), 2e4)),
        ("duration_ns > 0 and known", ("duration_ns", Comparator(">", False), 0.0)),
        ("duration_ns is unknown", ("duration_ns", Comparator(None, True), None)),
        ("duration_ns is known", ("duration_ns", Comparator(None, False), None)),
    ],
)
def test_a_condition_of_the_rules_compares_one_name_with_one_number(
    text: str, read: tuple[str, Comparator, float | None]
) -> None:
    assert parse_condition(text) == read


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "expected the name of a quantity, found its end"),
        ("{duration_ns} > 1", "expected the name of a quantity, found 'duration_ns'"),
        ("1 < duration_ns", "expected the name of a quantity, found '1'"),
        ("duration_ns", "expected a comparison, 'is known' or 'is unknown', found its end"),
        ("duration_ns => 1", "cannot read ' => 1'"),
        ("duration_ns not < 1", "expected a comparison, 'is known' or 'is unknown', found 'not'"),
        ("duration_ns > occupancy.waves", "expected a number, found 'occupancy.waves'"),
        ("duration_ns > 1 or occupancy.waves > 1", "expected 'unknown', found 'occupancy.waves'"),
        ("duration_ns > 1 and occupancy.waves > 1", "stray 'and'"),
        ("duration_ns is missing", "expected 'known' or 'unknown', found 'missing'"),
    ],
)
def test_what_is_wrong_with_a_condition_of_the_rules_is_named(text: str, found: str) -> None:
    with pytest.raises(ProfileError, match=rf"^condition {text!r}: {found}$"):
        parse_condition(text)


@pytest.mark.parametrize(
    "text", ["a__x.sum +", "max()", "(a__x.sum", "a__x.sum b__y", "2 **", "a__x;", "{time", "3abc"]
)
def test_malformed_formula_is_refused(text: str) -> None:
    with pytest.raises(ProfileError, match="formula"):
        parse(text)


def test_formula_names_what_it_reads() -> None:
    formula = parse("max(a__x.sum, 2 * b__y) / {time}")
    assert formula.counters == {"a__x.sum", "b__y"}
    assert formula.quantities == {"time"}


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=6))
def test_sum_of_numbers_is_their_sum(numbers: list[int]) -> None:
    expression = parse(" + ".join(map(str, numbers))).expression(lambda _: None, frozenset())
    assert expression is not None
    assert pl.select(expression).item() == sum(numbers)


def test_sums_go_from_left_to_right() -> None:
    terms = {"a": 1e16, "b": 1.0, "c": None, "d": 1.0, "e": -1e16}  # 1e16 + 1 is 1e16; 1 + 1 first would leave 2
    frame = pl.DataFrame([terms], schema=dict.fromkeys(terms, pl.Float64))
    found = frame.select(sum_of([pl.col(name) for name in terms]), b=sum_of_known([pl.col("c")]))
    assert found.row(0) == (0.0, None)
