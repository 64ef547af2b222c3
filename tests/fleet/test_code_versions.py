"""The same kernel with other machine code: since when, with which compiler, and what its time did."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.fleet import FLEET_FAILURES
from ncuroof.fleet.questions import across_gpus, by_time, changes, code_versions, factors, overview
from ncuroof.present.documents.fleet import fleet_document
from ncuroof.present.texts.fleet import to_text
from tests.fleet.launches import fleet, launch

OLD, NEW = (
    {"code_sha256": "a" * 64, "compiler_version": "13.0.88"},
    {"code_sha256": "b" * 64, "compiler_version": "13.1.20"},
)
SAME_SOURCE = {"labels": {"commit": "x"}}


def test_different_code_is_shown_with_its_compiler() -> None:
    rows = fleet(launch("a", 0, 100.0, **OLD), launch("b", 9, 101.0, **NEW), launch("c", 10, 100.5, **NEW))
    (found,) = code_versions(rows).to_dicts()
    assert (found["before_value"], found["value"]) == ("aaaaaaaa", "bbbbbbbb")
    assert found["also_changed"] == ["the compiler 13.0.88 → 13.1.20"]
    assert not found["is_significant"]
    shown = fleet_document(
        "runs", overview(rows), by_time(rows), across_gpus(rows), [], code_versions(rows), none(), top=3
    )
    text = to_text(shown)
    assert "same kernel, other machine code (1)" in text
    assert "2025-01-10  no change beyond noise  the compiler 13.0.88 → 13.1.20" in text


def none() -> Any:
    return FLEET_FAILURES.to_frame()


def test_a_kernel_of_several_shapes_is_shown_once_by_its_largest_change() -> None:
    shapes = ([64, 1, 1], 100.0, 100.0), ([128, 1, 1], 200.0, 300.0)
    rows = fleet(
        *(launch("a", 0, us, grid=grid, **OLD) for grid, us, _ in shapes),
        *(launch("b", 1, us, grid=grid, **NEW) for grid, _, us in shapes),
    )
    (found,) = code_versions(rows).to_dicts()
    assert found["change_frac"] == pytest.approx(0.5)


def test_equal_code_and_unknown_code_are_not_a_change() -> None:
    assert code_versions(fleet(launch("a", 0, 100.0, **OLD), launch("b", 1, 150.0, **OLD))).is_empty()
    assert code_versions(fleet(launch("a", 0, 100.0, **OLD), launch("b", 1, 150.0))).is_empty()


def test_a_change_by_driver_says_whether_the_code_differs() -> None:
    def also(after: dict[str, Any]) -> list[str]:
        rows = fleet(
            launch("a", 0, 100.0, driver_version="550", **OLD), launch("b", 1, 150.0, driver_version="560", **after)
        )
        (found,) = changes(rows, "driver").steps.to_dicts()
        also_changed: list[str] = found["also_changed"]
        return also_changed

    assert also(NEW) == ["the compiler", "the machine code"]
    assert also(OLD) == []
    assert also({}) == []  # not known, as in a redacted report


def test_a_slowdown_that_was_repaired_is_not_newly_slower() -> None:
    commits = [("x", 100.0), ("y", 150.0)]
    slower = [launch(name, day, us, labels={"commit": name}) for day, (name, us) in enumerate(commits)]
    assert changes(fleet(*slower), "label:commit").newly_slower["value"].to_list() == ["y"]
    repaired = [*slower, launch("z", 5, 100.0, labels={"commit": "z"})]
    found = changes(fleet(*repaired), "label:commit")
    assert found.slower.height == 1
    assert found.newly_slower.is_empty()


def test_code_is_not_among_the_default_factors() -> None:
    rows = fleet(launch("a", 0, 100.0, **OLD, **SAME_SOURCE), launch("b", 1, 100.0, **NEW, **SAME_SOURCE))
    assert factors(rows) == ("report", "driver", "ncu")  # it has a list of its own
