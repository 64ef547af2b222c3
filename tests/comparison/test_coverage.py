"""Runs that cover a whole program or some of its steps: only what both cover is compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ncuroof.comparison import Run, compare, judge, parse_gate, run_change, run_obstacle
from ncuroof.present.documents.comparison import comparison_document
from ncuroof.present.sentences.comparison import moved
from ncuroof.present.texts.comparison import to_text
from tests.comparison.runs import launch, run


def covering(steps: str | None, n_steps: int | None = None, *, us: float = 100.0, n_launches: int = 1) -> Run:
    """Return a run of one kernel with launches of so long."""
    side = run(launch("a", us, n_represented=float(n_launches), weight=float(n_launches), counted_average_ns=1e3 * us))
    return replace(side, is_counted=True, not_recorded_ns=0.0, steps=steps, n_steps=n_steps)


WHOLE, ONE = covering("", n_launches=12), covering("10", 1)


def test_a_whole_run_is_not_compared_with_a_step_of_it() -> None:
    comparison = compare(WHOLE, ONE)
    assert (
        run_obstacle(comparison)
        == "the runs cover different parts of the program: the whole run before, --step 10 after"
    )
    assert run_change(comparison) == (None, None)
    (gate,) = judge([parse_gate("time:+5%")], comparison)
    assert not gate.has_passed
    document = comparison_document(comparison)
    assert moved(document) == []  # 12 launches against one are those of 12 steps
    text = to_text(document)
    assert "faster" not in text.splitlines()[1]
    assert "launch for launch, over the kernels that both runs launched: no change" in text
    back = run_obstacle(compare(ONE, WHOLE)) or ""
    assert back.endswith("--step 10 before, the whole run after")


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (covering("", n_launches=12), covering("", n_launches=18), 0.5),
        # 2 x 100 µs of two steps, 3 x 100 µs of three: a step takes as long
        (covering("4-5", 2, n_launches=2), covering("4-6", 3, n_launches=3), 0.0),
        (covering("4-5", 2, n_launches=2), covering("4-6", 3, us=150.0, n_launches=3), 0.5),
        (covering("10", 1), covering("20", 1, us=120.0), 0.2),
        (covering(None), covering("20", 1, us=120.0), 0.2),  # a baseline of an earlier version
        (covering("4-5", 2), covering("4-6", None), None),
        (covering("4-5", 2), covering("", None), None),
    ],
)
def test_steps_are_compared_one_by_one_where_their_number_is_known(
    before: Run, after: Run, change: float | None
) -> None:
    found = run_change(compare(before, after))[0]
    assert found is None if change is None else found == pytest.approx(change)


def test_unprofiled_time_is_compared_per_step() -> None:
    # 10 ms of two steps and 15 ms of three were not profiled: 5 ms of each step
    before = replace(covering("4-5", 2, n_launches=2), not_recorded_ns=10e6)
    assert run_obstacle(compare(before, replace(covering("4-6", 3, n_launches=3), not_recorded_ns=15e6))) is None
    assert (
        run_obstacle(compare(before, replace(covering("4-6", 3, n_launches=3), not_recorded_ns=10e6)))
        == "kernels that were counted but not profiled took 5 ms per step before, 3.33 ms after"
    )


def test_a_note_says_that_times_are_per_step() -> None:
    comparison = compare(covering("4-5", 2, n_launches=2), covering("4-6", 3, us=150.0, n_launches=3))
    lines = to_text(comparison_document(comparison)).splitlines()
    assert lines[1] == "the kernels of a step together are 1.5× slower in the counting runs, without ncu"
    assert "note: the profiled steps differ: 4-5 before, 4-6 after, so times of the runs are per step" in lines
    (gate,) = judge([parse_gate("time:+5%")], comparison)
    assert gate.reasons[0].startswith("GPU time of the counting runs changed by +50.0 % per step (noise:")
    same = to_text(comparison_document(compare(covering("10", 1), covering("20", 1))))
    assert "note: the profiled steps differ: 10 before, 20 after\n" in same
    assert "note:" not in to_text(comparison_document(compare(ONE, ONE)))


def test_kernels_of_other_steps_are_not_called_gone_without_a_word() -> None:
    before = replace(WHOLE, groups=run(launch("a"), launch("initialise", 50.0, grid=[1, 1, 1])).groups)
    text = to_text(comparison_document(compare(before, ONE)))
    assert "note: kernels shown as removed may run in steps that the run after does not cover" in text
    assert "in steps that" not in to_text(comparison_document(compare(before, replace(ONE, steps=""))))
