"""Kernels that the user says to compare."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ncuroof.comparison import Run, compare, parse_pair
from ncuroof.errors import SelectionError
from ncuroof.present.documents.comparison import comparison_document
from ncuroof.present.texts.comparison import to_text
from tests.comparison.runs import launch, run

SERIES = run(launch("naive", 400.0), launch("tiled", 100.0), launch("vectorised", 80.0), launch("other", 50.0))


def compared(before: Run, after: Run, *pairs: str) -> list[tuple[str, str, float | None]]:
    comparison = compare(before, after, [parse_pair(text) for text in pairs])
    return [(*delta.names, delta.change_frac) for delta in comparison.deltas]


def test_versions_in_one_run_are_compared_step_by_step() -> None:
    assert compared(SERIES, SERIES, "naive=tiled", "tiled=vectorised") == [
        ("naive", "tiled", pytest.approx(-0.75)),
        ("tiled", "vectorised", pytest.approx(-0.2)),
    ]


def test_sums_are_those_of_the_chosen_kernels() -> None:
    comparison = compare(SERIES, SERIES, [parse_pair("naive=tiled")])
    document = comparison_document(comparison)
    assert (document["before"]["duration_ns"], document["after"]["duration_ns"]) == (4e5, 1e5)
    assert (document["before"]["n_kernels"], document["summary"]["n_added"], document["summary"]["n_removed"]) == (
        1,
        0,
        0,
    )
    text = to_text(document)
    assert text.startswith("ncuroof · compare\nthe chosen kernel is 4× faster\n")
    assert "  naive → tiled\n" in text
    assert "    match: chosen with --pair\n" in text
    assert "other" not in text


def test_steps_of_a_series_have_no_sum_and_stay_in_their_order() -> None:
    document = comparison_document(compare(SERIES, SERIES, [parse_pair("tiled=vectorised"), parse_pair("naive=tiled")]))
    assert document["summary"]["duration_change_frac"] is None
    text = to_text(document)
    assert text.splitlines()[1] == "2 kernels faster, 0 slower, 0 unchanged, 0 added, 0 removed"
    assert text.index("tiled → vectorised") < text.index("naive → tiled")


def test_a_kernel_that_was_launched_more_often_is_compared_launch_for_launch() -> None:
    twice = run(launch("naive", 400.0), launch("tiled", 300.0), launch("tiled", 300.0))
    document = comparison_document(compare(twice, twice, [parse_pair("naive=tiled")]))
    assert document["summary"]["duration_change_frac"] == pytest.approx(-0.25)
    text = to_text(document)
    assert "the chosen kernel is 1.33× faster\n" in text
    assert "launch for launch" not in text


def test_a_function_of_exactly_the_given_name_is_preferred() -> None:
    both = run(launch("dot_naive", 400.0), launch("dot", 100.0))
    assert compared(both, both, "dot_naive=dot") == [("dot_naive", "dot", pytest.approx(-0.75))]


@pytest.mark.parametrize("text", ["", "=", "=tiled", "naive="])
def test_a_pair_without_a_side_is_refused(text: str) -> None:
    with pytest.raises(SelectionError, match="expected two kernels as OLD=NEW"):
        parse_pair(text)


def test_one_name_is_the_same_kernel_in_both_runs() -> None:
    faster = run(launch("naive", 400.0), launch("tiled", 50.0))
    assert compared(SERIES, faster, "tiled") == [("tiled", "tiled", pytest.approx(-0.5))]


def test_a_pattern_is_found_in_the_whole_name_and_in_the_functions() -> None:
    assert compared(SERIES, SERIES, "^naive$=^vec") == [("naive", "vectorised", pytest.approx(-0.8))]
    assert compared(SERIES, SERIES, r"naive\(float=tiled\(") == [("naive", "tiled", pytest.approx(-0.75))]


def test_shapes_are_matched_in_order_or_all_with_all() -> None:
    shapes = [launch("a", 100.0, grid=[1, 1, 1]), launch("a", 300.0, grid=[2, 1, 1])]
    other = [launch("b", 50.0, grid=[3, 1, 1]), launch("b", 150.0, grid=[4, 1, 1])]
    assert [change for *_, change in compared(run(*shapes), run(*other), "a=b")] == [-0.5, -0.5]
    assert compared(run(*shapes), run(launch("b", 200.0)), "a=b") == [("a + a", "b", pytest.approx(-0.5))]
    often = run(*shapes, shapes[0])  # 100 + 300 + 100 µs
    (delta,) = compare(often, run(launch("b", 200.0)), [parse_pair("a=b")]).deltas
    assert (delta.change_frac, delta.n_launches) == (pytest.approx(-0.6), (3, 1))


def test_values_of_the_whole_run_are_left_out() -> None:
    steps = replace(SERIES, step_ns=1e6, idle_frac=0.5, not_recorded_ns=1e5, failed=("x",), n_failed=1)
    comparison = compare(steps, steps, [parse_pair("naive=tiled")])
    assert (comparison.after.step_ns, comparison.after.idle_frac, comparison.after.not_recorded_ns) == (
        None,
        None,
        None,
    )
    assert (comparison.after.failed, comparison.after.n_failed) == ((), 0)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("nothing=tiled", "no kernel matches 'nothing'"),
        ("naive=nothing", "no kernel matches 'nothing'"),
        ("(=tiled", "expected a regular expression for the kernel"),
    ],
)
def test_a_pattern_that_matches_no_kernel_is_refused_with_the_existing_kernels(pair: str, said: str) -> None:
    with pytest.raises(SelectionError, match=said.replace("(", r"\(")) as refused:
        compared(SERIES, SERIES, pair)
    assert "naive" in refused.value.hint or "quote" in refused.value.hint
