"""Kernels of one short name are told apart by their full names, in all that is said of two runs or more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ncuroof.comparison import compare, judge, parse_gate, with_distinct_labels
from ncuroof.comparison.comparison import run_obstacle
from ncuroof.comparison.history import history
from ncuroof.present.documents.comparison import comparison_document
from ncuroof.present.page.changes import changes
from ncuroof.present.texts.comparison import history_text, to_markdown, to_text
from tests.comparison.runs import launch, run

NAME = "launch_global"


def instantiation(argument: str, us: float, gflop: float) -> dict[str, object]:
    name = f"void amrex::{NAME}<(int)256, {argument}>(T2)"
    return launch(NAME, us, **{"work.fp32.flop": 1e9 * gflop}) | {"name": name}


BEFORE = run(*(instantiation(f"App::{name}", 100.0, gflop) for name, gflop in (("Force", 1), ("Move", 2), ("Gone", 4))))
AFTER = run(*(instantiation(f"App::{name}", 300.0, gflop) for name, gflop in (("Force", 1), ("Move", 2), ("New", 8))))


def test_instantiations_of_a_template_are_told_apart() -> None:
    comparison = compare(BEFORE, AFTER)
    document = comparison_document(comparison, judge([parse_gate("kernel(launch).time:+5%")], comparison))
    lines = [line.strip() for line in to_text(document).splitlines()]
    assert {f"{NAME} · Force", f"{NAME} · Move"} <= set(lines)
    assert f"added: {NAME} · New, one launch, 300 µs" in lines
    assert f"removed: {NAME} · Gone, one launch, 100 µs" in lines
    assert f"| `{NAME} · Force` |" in to_markdown(document)
    (gate,) = document["gates"]
    assert [reason.split(" changed")[0] for reason in gate["reasons"]] == [f"{NAME} · Force", f"{NAME} · Move"]
    assert {line.name for line in changes(document).lines} == {
        f"{NAME} · {name}" for name in ("Force", "Move", "New", "Gone")
    }


def test_one_of_a_name_needs_no_more_words() -> None:
    comparison = compare(run(instantiation("App::Force", 100.0, 1)), run(instantiation("App::Force", 300.0, 1)))
    assert [delta.names for delta in comparison.deltas] == [(NAME, NAME)]


def test_failed_launches_are_named() -> None:
    failed = {"failed": True}
    after = run(
        instantiation("App::Force", 100.0, 1) | failed,
        *(instantiation(f"App::{name}", 100.0, 2) for name in ("Move", "Gone")),
    )
    comparison = compare(BEFORE, after)
    assert run_obstacle(comparison) == f"{NAME} · Force failed to profile after"
    for gate in ("kernel(launch).time:+5%", "kernel(Force).duration_ns<1e9"):
        (found,) = judge([parse_gate(gate)], comparison)
        assert (found.has_passed, found.reasons) == (False, (f"{NAME} · Force failed to profile",))
    alone = compare(*[run(launch("a"), instantiation("App::Force", 100.0, 1) | failed)] * 2)
    (found,) = judge([parse_gate("kernel(.*).duration_ns<1e9")], alone)
    assert found.reasons == (f"{NAME} failed to profile",)


def test_a_different_instantiation_in_the_same_place_is_named() -> None:
    comparison = compare(run(instantiation("App::Force", 100.0, 1)), run(instantiation("App::Forces", 300.0, 1)))
    assert [delta.names for delta in comparison.deltas] == [(f"{NAME} · Force", f"{NAME} · Forces")]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("gemm(float *, int)", "void gemm<(int)64>(int, T1 *)"), ("gemm", "gemm · 64")),  # no parameters, no `void`
        (("gemm(float *, int)", "gemm(double *, int)"), ("gemm · float", "gemm · double")),
        (("n::<unnamed>::gemm<float>(T1)", "gemm<float>(T1)"), ("gemm · n::gemm", "gemm · gemm")),
    ],
)
def test_by_which_words_names_differ(names: tuple[str, str], expected: tuple[str, str]) -> None:
    found = compare(*(run(launch("gemm") | {"name": name}) for name in names))
    assert tuple(side.groups["short_name"][0] for side in (found.before, found.after)) == expected


@pytest.mark.parametrize("short", [NAME, "n" * 80])
def test_names_stay_short_and_keep_what_tells_them_apart(short: str) -> None:
    launches = [launch(short) | {"name": f"void f<{'x' * 50}{kind}, Agent{kind}<{kind}>>(T1)"} for kind in "ab"]
    comparison = compare(run(*launches), run(*launches))
    names = comparison.before.groups["short_name"].to_list()
    assert len(set(names)) == 2
    assert all(name.startswith(short[:16]) and len(name) <= 60 for name in names)


def test_trends_are_told_apart_in_little_room() -> None:
    text = history_text(history([BEFORE, AFTER]))
    assert [line.split("  ")[0] for line in text.splitlines() if NAME in line] == [
        f"{NAME} · {name}" for name in ("Force", "Move", "Gone", "New")
    ]


@pytest.mark.parametrize(
    ("runs", "labels"),
    [
        ((("a.ncu-rep", "old/a.ncu-rep"), ("b.ncu-rep", "new/b.ncu-rep")), ["a.ncu-rep", "b.ncu-rep"]),
        ((("a.ncu-rep", "old/a.ncu-rep"), ("a.ncu-rep", "new/a.ncu-rep")), ["old/a.ncu-rep", "new/a.ncu-rep"]),
        ((("a.ncu-rep", "1/x/a.ncu-rep"), ("a.ncu-rep", "2/x/a.ncu-rep")), ["1/x/a.ncu-rep", "2/x/a.ncu-rep"]),
        ((("a.ncu-rep", "base.json"), ("a.ncu-rep", "a.ncu-rep")), ["a.ncu-rep (base.json)", "a.ncu-rep"]),
        ((("a.ncu-rep", "a.ncu-rep"), ("a.ncu-rep", "a.ncu-rep")), ["a.ncu-rep", "a.ncu-rep"]),  # the same file
        ((("a.ncu-rep", None), ("a.ncu-rep", "a.ncu-rep")), ["a.ncu-rep", "a.ncu-rep"]),
    ],
)
def test_files_of_one_name_are_called_by_as_much_of_their_paths_as_they_differ_by(
    runs: tuple[tuple[str, str | None], ...], labels: list[str]
) -> None:
    given = [(replace(BEFORE, label=label), None if path is None else Path(path)) for label, path in runs]
    assert [each.label for each in with_distinct_labels(given)] == labels
