from __future__ import annotations

from pathlib import Path

import pytest

import ncuroof
from ncuroof.metrics import load_catalogue
from ncuroof.present import render
from ncuroof.present.sentences.source_lines import (
    cost,
    first_place,
    place,
    sampled_lines,
    waits_for,
    where,
    where_sentence,
)
from tests.support.lined import lined_report

CATALOGUE = load_catalogue()


def row(measure: str, line: int, frac: float, **others: object) -> dict[str, object]:
    return {
        "measure": measure, "file": "a.cu", "line": line, "text": None, "callers": None,
        "value": 100 * frac, "frac": frac, "stall": "wait", "awaits": None, **others,
    }  # fmt: skip


def test_a_finding_has_three_lines_with_a_tenth_of_its_cause_each() -> None:
    rows = [row("instructions", line, frac) for line, frac in ((1, 0.4), (2, 0.2), (3, 0.15), (4, 0.1))]
    found = where(rows, ("instructions",), CATALOGUE)
    assert found == {
        "measure": "instructions",
        "of": "the executed instructions",
        "lines": [
            {"file": "a.cu", "line": line, "text": None, "value": 100 * frac, "frac": frac, "callers": [], "awaits": []}
            for line, frac in ((1, 0.4), (2, 0.2), (3, 0.15))
        ],
    }
    assert where_sentence(found) == "a.cu:1 (40.0 %); a.cu:2 (20.0 %); a.cu:3 (15.0 %) of the executed instructions"
    assert first_place(found) == "a.cu:1"


def test_the_first_measure_that_is_known_tells() -> None:
    rows = [row("excess_sectors", 5, 1.0)]
    found = where(rows, ("excess_load_sectors", "excess_sectors"), CATALOGUE)
    assert found is not None
    assert found["measure"] == "excess_sectors"


def test_what_is_spread_over_many_lines_or_not_known_has_no_place() -> None:
    assert where([row("instructions", 1, 0.09)], ("instructions",), CATALOGUE) is None
    assert where([], ("instructions",), CATALOGUE) is None
    assert where([row("instructions", 1, 0.9)], (), CATALOGUE) is None
    assert where_sentence(None) == first_place(None) == ""


@pytest.mark.parametrize(
    ("file", "callers", "first"),
    [
        ("barrier.h", "pipeline:546\nmma.cuh:164\nmain.cu:155", "mma.cuh:164 (barrier.h:654)"),  # libcu++ calls itself
        ("copy.hpp", "gemm.h:1\ntile.inl:2", "copy.hpp:654"),  # headers alone
        ("barrier.h", None, "barrier.h:654"),
        ("mma.cuh", "main.cu:155", "mma.cuh:654"),
        ("Base/int.jl", "Base/range.jl:883\nCUDA/pointer.jl:9\nbb.jl:80", "bb.jl:80 (Base/int.jl:654)"),
        ("barrier.h", "Base/int.jl:87", "barrier.h:654"),
        ("Base/int.jl", "LLVM/base.jl:40", ""),  # nobody changes either
        ("LLVM/base.jl", None, ""),
        ("int.jl", None, "int.jl:654"),  # a file of the user's own that is called so
    ],
)
def test_a_line_of_a_library_is_told_by_the_call_of_it(file: str, callers: str | None, first: str) -> None:
    found = where([row("samples", 654, 1.0, file=file, callers=callers)], ("samples",), CATALOGUE)
    assert first_place(found) == first


def test_the_first_line_that_can_be_changed_is_told() -> None:
    rows = [row("samples", 87, 0.5, file="Base/int.jl"), row("samples", 80, 0.3, file="bb.jl")]
    found = where([*rows, row("samples", 81, 0.2, file="bb.jl")], ("samples",), CATALOGUE)
    assert first_place(found) == "bb.jl:80"
    assert where_sentence(found) == "Base/int.jl:87 (50.0 %); bb.jl:80 (30.0 %); bb.jl:81 (20.0 %) of the samples"


def test_an_inlined_line_is_told_with_the_files_that_called_it() -> None:
    found = where([row("samples", 3, 1.0, callers="a.cu:9\nk.cu:7\nk.cu:80")], ("samples",), CATALOGUE)
    assert found is not None
    (line,) = found["lines"]
    callers = [("a.cu", 9), ("k.cu", 7), ("k.cu", 80)]
    assert line["callers"] == [{"file": file, "line": number} for file, number in callers]
    assert place(line) == "a.cu:3, called at k.cu:7"
    assert first_place(found) == "a.cu:3"


def test_a_line_is_told_with_those_that_its_warps_wait_for() -> None:
    load = {"file": "a.cu", "line": 3, "callers": None, "frac": 1.0, "address_from": None}
    copy = {"file": "copy.h", "line": 12, "callers": "a.cu:4", "frac": 0.5, "address_from": None}
    found = where([row("samples", 7, 0.5, awaits=[load, copy])], ("samples",), CATALOGUE)
    assert where_sentence(found) == "a.cu:7 (50.0 %, waits for :3 and copy.h:12, called at a.cu:4) of the samples"
    assert first_place(found) == "a.cu:7 waits for :3"
    (line,) = sampled_lines([row("samples", 7, 0.5, awaits=[copy, load])])
    assert waits_for(line) == "copy.h:12, called at a.cu:4 and :3"


def test_a_line_that_waits_for_itself_names_no_other() -> None:
    load = {"file": "a.cu", "line": 7, "callers": None, "frac": 1.0, "address_from": None}
    found = where([row("samples", 7, 0.5, awaits=[load])], ("samples",), CATALOGUE)
    assert where_sentence(found) == "a.cu:7 (50.0 %, waits for the same line) of the samples"
    assert first_place(found) == "a.cu:7"


def test_of_many_files_that_call_each_other_the_nearest_and_the_outermost_are_told() -> None:
    callers = [{"file": f"{name}.h", "line": 1} for name in "bcdef"]
    assert place({"file": "a.h", "line": 1, "callers": callers}) == "a.h:1, called at b.h:1, c.h:1, …, f.h:1"


def test_names_of_files_cannot_steer_a_terminal() -> None:
    assert "\x1b" not in place({"file": "a\x1b[2J.cu", "line": 1, "callers": []})


def test_samples_are_told_with_what_is_waited_for() -> None:
    (line,) = sampled_lines([row("samples", 3, 0.5), row("instructions", 4, 0.5)])
    assert (line["line"], line["frac"], line["stall"]) == (3, 0.5, "wait")


def test_lines_are_ranked_by_samples_without_an_issue_where_these_were_taken() -> None:
    """A line at which warps wait while others issue costs no time, however many samples it has."""
    rows = [row("samples", 1, 0.6), row("samples", 2, 0.3), row("samples", 3, 0.1)]
    lines = sampled_lines([*rows, row("not_issued", 2, 0.9), row("not_issued", 1, 0.1)])
    assert [(line["line"], line["frac"], line["not_issued_frac"]) for line in lines] == [
        (2, 0.3, 0.9), (1, 0.6, 0.1), (3, 0.1, 0.0),
    ]  # fmt: skip
    assert [cost(line) for line in lines] == [0.9, 0.1, 0.0]
    assert [(line["line"], line["not_issued_frac"], cost(line)) for line in sampled_lines(rows)] == [
        (1, None, 0.6), (2, None, 0.3), (3, None, 0.1),
    ]  # fmt: skip


def test_an_awaited_line_is_told_with_the_line_that_loads_its_address() -> None:
    def waiting(awaited: int, address_from: int) -> dict[str, object]:
        load = {"file": "a.cu", "line": awaited, "callers": None, "frac": 1.0}
        return row("samples", 9, 0.5, awaits=[load | {"address_from": {"file": "a.cu", "line": address_from}}])

    found = where([waiting(5, 3)], ("samples",), CATALOGUE)
    assert where_sentence(found) == "a.cu:9 (50.0 %, waits for :5 (at an address that :3 loads)) of the samples"
    assert first_place(found) == "a.cu:9 waits for :5 through :3"
    found = where([waiting(5, 5)], ("samples",), CATALOGUE)
    assert first_place(found) == "a.cu:9 waits for :5"
    assert "waits for :5 (at an address that it loads itself, one iteration before)" in where_sentence(found)
    assert "waits for :5 (at an address that the same line loads)" in where_sentence(
        where([waiting(5, 9)], ("samples",), CATALOGUE)
    )


def test_the_ten_lines_with_most_samples_are_told() -> None:
    lines = sampled_lines([row("samples", line, 0.05) for line in range(1, 15)])
    assert [line["line"] for line in lines] == list(range(1, 11))


@pytest.mark.long
def test_a_report_tells_where_its_findings_are(tmp_path: Path) -> None:
    """A latency-bound kernel that waits at one line for what another loads: the document, the summary and the page name both."""
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(lined_report())
    analysis = ncuroof.read(path).analyse()
    (kernel,) = analysis.to_dict()["kernels"]
    assert [(line["line"], line["text"], line["callers"], line["frac"], line["stall"]) for line in kernel["lines"]] == [
        (9, "return b + x[j];", [{"file": "inlined.cu", "line": 4}], 0.6, "long_scoreboard"),
        (4, "x[threadIdx.x] = outer(x[n], x, n) * 2;", [], 0.4, "long_scoreboard"),
    ]
    called = [{"file": "inlined.h", "line": 8}, {"file": "inlined.cu", "line": 4}]
    load = {"file": "inlined.h", "line": 4, "callers": called, "frac": 1.0, "address_from": None}
    assert [line["awaits"] for line in kernel["lines"]] == [[load], []]
    (stall,) = [finding for finding in kernel["findings"] if finding["id"] == "serial_loads"]  # one is under way
    assert stall["where"]["of"] == "the samples of this stall"
    assert [(each["line"], round(each["frac"], 3), each["awaits"]) for each in stall["where"]["lines"]] == [
        (9, 0.983, [load])
    ]
    assert r"· inlined.cu:4 \(inlined.h:9 waits for :4\)" in render(analysis, "md").decode()
