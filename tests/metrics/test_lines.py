"""What is reported of lines, from instructions whose counters are chosen by hand."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.ingest.raw_report import RAW_INSTRUCTIONS, RawReport
from ncuroof.metrics import load_catalogue, measure, selection
from tests.support.raw import raw_report

GLOBAL, LOCAL, SHARED, LOAD, STORE = 4.0, 8.0, 16.0, 2.0, 4.0
EXCESS = "derived__memory_l2_theoretical_sectors_global_excessive"


def report(*instructions: dict[str, object], n_kernels: int = 1) -> RawReport:
    """Return a report with these instructions: line, row (0), file (a.cu), and counters by name."""
    place = dict.fromkeys(RAW_INSTRUCTIONS) | {"row": 0, "file": "a.cu"}
    table = pl.DataFrame([{**place, **each} for each in instructions], infer_schema_length=None)
    table = table.cast({**RAW_INSTRUCTIONS, **dict.fromkeys(set(table.columns) - set(RAW_INSTRUCTIONS), pl.Float64())})
    return replace(raw_report(*[{"gpu__time_duration.sum": 1e5}] * n_kernels), instructions=table)


def lines(measure_name: str, *reports: RawReport) -> list[tuple[object, ...]]:
    found = measure(reports).lines.filter(pl.col("measure") == measure_name)
    return found.select("id", "line", "value", pl.col("frac").round(6)).rows()


def test_instructions_of_a_line_are_added_and_have_a_share_of_all() -> None:
    found = report(
        {"line": 7, "inst_executed": 10},
        {"line": 8, "inst_executed": 60},
        {"line": 7, "inst_executed": 20},
        {"line": None, "file": None, "inst_executed": 10},  # counts, though nobody knows where it comes from
    )
    assert lines("instructions", found) == [(0, 8, 60.0, 0.6), (0, 7, 30.0, 0.3)]


@pytest.mark.long
def test_instructions_of_a_pipe_are_known_by_their_opcodes() -> None:
    iadd3, imad, mufu, ldg = 0x10, 0x24, 0x108, 0x181
    found = report(
        {"line": 7, "opcode": iadd3, "inst_executed": 30, "smsp__pcsamp_sample_count": 5},
        {"line": 7, "opcode": ldg, "inst_executed": 500, "smsp__pcsamp_sample_count": 90},
        {"line": 8, "opcode": iadd3, "inst_executed": 10, "smsp__pcsamp_sample_count": 5},
        {"line": 8, "opcode": imad, "inst_executed": 60, "smsp__pcsamp_sample_count": 5},
        {"line": 9, "opcode": mufu, "inst_executed": 20, "smsp__pcsamp_sample_count": 95},
    )
    assert lines("alu_instructions", found) == [(0, 7, 30.0, 0.75), (0, 8, 10.0, 0.25)]
    assert lines("integer_multiply_adds", found) == [(0, 8, 60.0, 1.0)]
    assert lines("xu_instructions", found) == [(0, 9, 20.0, 1.0)]
    assert lines("xu_samples", found) == [(0, 9, 95.0, 1.0)]
    assert measure([found]).kernels["instructions.xu_sample_frac"].to_list() == [pytest.approx(95 / 200)]
    assert lines("alu_instructions", report({"line": 7, "inst_executed": 30})) == []  # code that is not known


def test_samples_of_stalled_warps_are_those_that_neither_issue_nor_could() -> None:
    samples, stalled = "smsp__pcsamp_sample_count", "smsp__pcsamp_warps_issue_stalled_"
    found = report(
        {"line": 7, samples: 90, f"{stalled}selected": 60, f"{stalled}not_selected": 20},  # issues most
        {"line": 8, samples: 40, f"{stalled}selected": 10},
        {"line": 9, "inst_executed": 10},
    )
    assert lines("stalled", found) == [(0, 8, 30.0, 0.75), (0, 7, 10.0, 0.25)]


def test_each_kernel_has_its_own_over_all_reports() -> None:
    one = report({"line": 1, "inst_executed": 4}, n_kernels=2)
    other = report({"line": 2, "row": 1, "inst_executed": 5}, {"line": 3, "inst_executed": 6}, n_kernels=2)
    assert lines("instructions", one, other) == [(0, 1, 4.0, 1.0), (2, 3, 6.0, 1.0), (3, 2, 5.0, 1.0)]


def test_a_line_that_was_inlined_in_several_places_is_one_with_the_callers_of_most() -> None:
    found = report(
        {"line": 3, "callers": "b.cu:10", "inst_executed": 3},
        {"line": 3, "callers": "b.cu:20", "inst_executed": 2},
        {"line": 3, "callers": "b.cu:20", "inst_executed": 2},
        {"line": 3, "inst_executed": 1},
    )
    table = measure([found]).lines.filter(pl.col("measure") == "instructions")
    assert table.select("line", "callers", "value").rows() == [(3, "b.cu:20", 8.0)]


def test_loads_and_stores_are_told_apart_by_how_they_access() -> None:
    load, store = {"memory_access_type": LOAD}, {"memory_access_type": STORE}
    found = report(
        {"line": 1, EXCESS: 30, **load}, {"line": 2, EXCESS: 10, **load}, {"line": 3, EXCESS: 60, **store}, {"line": 4}
    )
    assert lines("excess_load_sectors", found) == [(0, 1, 30.0, 0.75), (0, 2, 10.0, 0.25)]
    assert lines("excess_store_sectors", found) == [(0, 3, 60.0, 1.0)]
    assert lines("excess_sectors", found) == [(0, 3, 60.0, 0.6), (0, 1, 30.0, 0.3), (0, 2, 10.0, 0.1)]


def test_without_how_they_access_only_all_together_are_known() -> None:
    theoretical, ideal = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
    found = report({"line": 1, theoretical: 32, ideal: 4}, {"line": 2, theoretical: 4, ideal: 4})
    assert lines("excess_sectors", found) == [(0, 1, 28.0, 1.0)]
    assert lines("excess_load_sectors", found) == []


def test_atomics_are_accesses_that_neither_load_nor_store() -> None:
    found = report(
        {"line": 1, "inst_executed": 5, "memory_type": GLOBAL, "memory_access_type": None},
        {"line": 2, "inst_executed": 5, "memory_type": GLOBAL, "memory_access_type": LOAD},
        {"line": 3, "inst_executed": 5, "memory_type": SHARED, "memory_access_type": None},
        {"line": 4, "inst_executed": 5, "memory_type": None, "memory_access_type": None},
    )
    assert lines("global_atomics", found) == [(0, 1, 5.0, 1.0)]


def test_narrow_loads_are_those_of_one_two_and_four_bytes() -> None:
    load = {"inst_executed": 1, "memory_type": GLOBAL, "memory_access_type": LOAD}
    by_size = enumerate((2, 8, 32, 64, 128), start=1)  # as SASS has them: S8, U16, 32, 64, 128
    found = report(*({**load, "line": line, "memory_access_size_type": size} for line, size in by_size))
    assert [line for _, line, *_ in lines("narrow_loads", found)] == [1, 2, 3]


def test_where_nobody_asked_how_memory_is_accessed_a_load_is_no_atomic() -> None:
    load = {"line": 1, "inst_executed": 5, "memory_type": GLOBAL}
    asked = report({**load, "memory_access_type": LOAD})
    assert lines("global_atomics", asked, report(load)) == []


def test_lanes_are_counted_against_32_per_instruction() -> None:
    found = report(
        {"line": 1, "inst_executed": 10, "thread_inst_executed": 320, "thread_inst_executed_true": 320},
        {"line": 2, "inst_executed": 10, "thread_inst_executed": 20, "thread_inst_executed_true": 5},
    )
    assert lines("idle_lanes", found) == [(0, 2, 300.0, 1.0)]
    assert lines("predicated_lanes", found) == [(0, 2, 15.0, 1.0)]


def test_samples_name_what_a_line_waits_for_issue_and_selection_aside() -> None:
    stall = "smsp__pcsamp_warps_issue_stalled_"
    found = report(
        {"line": 1, "smsp__pcsamp_sample_count": 70, f"{stall}selected": 50, f"{stall}wait": 20, f"{stall}barrier": 0},
        {"line": 2, "smsp__pcsamp_sample_count": 30, f"{stall}selected": 0, f"{stall}wait": 0, f"{stall}barrier": 30},
    )
    table = measure([found]).lines
    assert table.filter(pl.col("measure") == "samples").select("line", "stall").rows() == [(1, "wait"), (2, "barrier")]
    assert lines("stalls.barrier", found) == [(0, 2, 30.0, 1.0)]


LONG, SHORT = (f"smsp__pcsamp_warps_issue_stalled_{kind}_scoreboard" for kind in ("long", "short"))


def awaits(measure_name: str, *reports: RawReport) -> dict[int, list[tuple[object, ...]] | None]:
    """Return what each line awaits: file, line, callers and share."""
    found = measure(reports).lines.filter(pl.col("measure") == measure_name).select("line", "awaits")
    known = ("file", "line", "callers", "frac")
    return {line: each and [tuple(place[key] for key in known) for place in each] for line, each in found.rows()}


def test_an_awaited_load_is_told_with_the_line_that_loads_its_address() -> None:
    found = report(
        {"line": 1, "number": 0},
        {"line": 2, "number": 1, "file": None},
        {"line": 3, "number": 2, "addressed_by": [0, 1]},
        {"line": 4, "number": 3, "addressed_by": [1]},
        {"line": 5, "number": 4},
        {"line": 9, "number": 5, LONG: 90, "awaited": [2, 3, 4]},
    )
    (awaited,) = measure([found]).lines.filter(pl.col("measure") == "stalls.long_scoreboard")["awaits"].to_list()
    assert [(each["line"], each["address_from"]) for each in awaited] == [
        (3, {"file": "a.cu", "line": 1}),
        (4, None),  # of a line that is not known
        (5, None),
    ]


def test_samples_without_an_issue_are_those_of_all_reasons() -> None:
    found = report(
        {"line": 1, LONG: 70, f"{LONG}_not_issued": 10, f"{SHORT}_not_issued": 20},
        {"line": 2, LONG: 30, f"{LONG}_not_issued": 70},
        {"line": 3, LONG: 30},
    )
    assert lines("not_issued", found) == [(0, 2, 70.0, 0.7), (0, 1, 30.0, 0.3)]


def test_a_line_awaits_the_lines_of_what_its_instructions_wait_for() -> None:
    found = report(
        {"line": 1, "number": 0},
        {"line": 2, "number": 1, "callers": "b.cu:5"},
        {"line": 9, "number": 2, LONG: 60, "awaited": [0]},
        {"line": 9, "number": 3, LONG: 30, "awaited": [0, 1]},  # 30 samples wait for both
        {"line": 9, "number": 4, LONG: 10},
        {"line": 8, "number": 5, SHORT: 50, "awaited": [5]},
    )
    assert awaits("stalls.long_scoreboard", found) == {9: [("a.cu", 1, None, 0.9), ("a.cu", 2, "b.cu:5", 0.3)]}
    assert awaits("stalls.short_scoreboard", found) == {8: [("a.cu", 8, None, 1.0)]}


def test_two_instructions_of_one_line_are_awaited_once() -> None:
    found = report(
        {"line": 1, "number": 0},
        {"line": 1, "number": 1},
        {"line": 2, "number": 2},
        {"line": 9, "number": 3, LONG: 100, "awaited": [0, 1, 2]},
    )
    assert awaits("stalls.long_scoreboard", found) == {9: [("a.cu", 1, None, 1.0), ("a.cu", 2, None, 1.0)]}


def test_of_all_samples_a_line_awaits_what_most_of_them_show() -> None:
    counted = {"smsp__pcsamp_sample_count": 100}
    found = report(
        {"line": 1, "number": 0},
        {"line": 2, "number": 1},
        {"line": 3, "number": 2, **counted, LONG: 70, SHORT: 30, "awaited": [0]},
        {"line": 4, "number": 3, **counted, LONG: 10, "smsp__pcsamp_warps_issue_stalled_wait": 90, "awaited": [1]},
    )
    assert awaits("samples", found) == {3: [("a.cu", 1, None, 1.0)], 4: None}


def test_kernels_await_their_own_lines_and_unknown_ones_are_not_told() -> None:
    one = report(
        {"line": 1, "number": 0, "file": None},
        {"line": 2, "number": 1, LONG: 50, "awaited": [0]},
        {"line": 7, "number": 0, "row": 1},
        {"line": 2, "number": 1, "row": 1, LONG: 50, "awaited": [0]},
        n_kernels=2,
    )
    found = measure([one, one]).lines.filter(pl.col("measure") == "stalls.long_scoreboard")
    awaited = [
        (kernel, each and [place["line"] for place in each]) for kernel, each in found.select("id", "awaits").rows()
    ]
    assert awaited == [(0, None), (1, [7]), (2, None), (3, [7])]


@pytest.mark.parametrize(("n_samples", "n_lines"), [(29, 0), (30, 1)])
def test_a_few_samples_tell_nothing(n_samples: int, n_lines: int) -> None:
    assert len(lines("samples", report({"line": 1, "smsp__pcsamp_sample_count": n_samples}))) == n_lines


def test_the_first_fifty_lines_are_kept() -> None:
    found = report(*({"line": line, "inst_executed": 100 - line} for line in range(1, 60)))
    assert [line for _, line, *_ in lines("instructions", found)] == list(range(1, 51))


def test_reports_without_instructions_have_no_lines() -> None:
    assert measure([raw_report({})]).lines.is_empty()


def test_what_is_told_of_lines_is_asked_for_when_reading() -> None:
    wanted = selection().by_instruction
    assert {"inst_executed", "memory_type", "smsp__pcsamp_warps_issue_stalled_wait", EXCESS} <= wanted


def test_findings_name_what_is_told_of_lines() -> None:
    known = load_catalogue().by_line
    named = {name for finding in load_rules().findings.values() for name in finding.lines}
    assert named <= set(known)
    assert {"samples", "excess_wavefronts", "stalls.long_scoreboard"} <= named
    stalls = [name for name in load_rules().findings if name.startswith("stall_")]
    assert all(load_rules().findings[name].lines for name in stalls)


def test_a_line_where_warps_wait_for_each_other_awaits_the_line_of_the_barrier() -> None:
    barrier = "smsp__pcsamp_warps_issue_stalled_barrier"
    found = report(
        {"line": 70, "number": 0},
        {"line": 60, "number": 1},
        {"line": 68, "number": 2, barrier: 80, LONG: 60, "barriers": [0], "awaited": [1]},
    )
    assert awaits("stalls.barrier", found) == {68: [("a.cu", 70, None, 1.0)]}
    assert awaits("stalls.long_scoreboard", found) == {68: [("a.cu", 60, None, 1.0)]}
