from __future__ import annotations

import csv
import io
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from ncuroof.ingest import CounterSelection, RawReport, open_report
from ncuroof.ingest.code import instructions
from tests.support.lined import COMPILED, LOADED_AT, SCALE, by_address
from tests.support.ncu import find_ncu, print_page
from tests.support.report_writer import Instances, Kernel, Uint32, write_report

DIVIDE = "_Z6dividePfi"
LDC, F2I = 0x182, 0x105
"""Opcodes of what nvdisasm shows of the compiled code: constants are loaded first, and an index is converted at 0x70."""
WANTED = CounterSelection(frozenset({"gpu__time_duration.sum"}), by_instruction=frozenset({"inst_executed", "samples"}))


def kernel(name: str = SCALE, *, duration: float = 1e5, **counters: Instances) -> Kernel:
    return Kernel(name, {"gpu__time_duration.sum": duration, **counters})


def read(path: Path, *kernels: Kernel, loaded: tuple[tuple[str, int], ...] = ((SCALE, LOADED_AT),)) -> RawReport:
    path.write_bytes(write_report(kernels, sources=((1, COMPILED),), functions=loaded))
    return open_report(path, selection=WANTED)


def rows(report: RawReport, *columns: str) -> list[tuple[object, ...]]:
    return report.instructions.select("row", "file", "line", *columns).rows()


def test_each_instruction_has_its_line_and_its_counters(tmp_path: Path) -> None:
    executed = by_address({0: 8, 0x10: 8, 0x70: 4, 0x200: 1})
    samples = Instances(tuple(map(Uint32, (3, 5))), correlation_ids=(LOADED_AT + 0x70, LOADED_AT + 0x10))
    report = read(tmp_path / "r.ncu-rep", kernel(inst_executed=executed, samples=samples))
    assert report.instructions.rows(named=True) == [
        {
            "row": 0,
            "number": number,
            "awaited": None,
            "barriers": None,
            "addressed_by": None,
            "n_loads": None,
            "waits_for_atomic": None,
            "waits_for_copies": None,
            "opcode": opcode,
            "file": file,
            "line": line,
            "text": None,
            "callers": callers,
            **counters,
        }
        for number, (opcode, file, line, callers, counters) in enumerate(
            (
                (LDC, "inlined.cu", 3, None, {"inst_executed": 8.0, "samples": None}),
                (LDC, "inlined.cu", 4, None, {"inst_executed": 8.0, "samples": 5.0}),
                (F2I, "inlined.h", 4, "inlined.h:8\ninlined.cu:4", {"inst_executed": 4.0, "samples": 3.0}),
                (None, None, None, None, {"inst_executed": 1.0, "samples": None}),  # behind the function's end
            )
        )
    ]


def test_waiting_instructions_name_the_instructions_that_they_wait_for(tmp_path: Path) -> None:
    """By the source: line 9 of inlined.h adds what `inner` loads in line 4 from an index that it has converted."""
    executed = by_address({16 * number: 1 for number in range(16)})
    waiting = by_address({0x80: 3, 0x90: 0, 0xB0: 5, 0xC0: 1})
    wanted = replace(WANTED, by_instruction=WANTED.by_instruction | {"stalled_long_scoreboard"})
    path = tmp_path / "r.ncu-rep"
    kernels = [kernel(inst_executed=executed, stalled_long_scoreboard=waiting)]
    path.write_bytes(write_report(kernels, sources=((1, COMPILED),), functions=((SCALE, LOADED_AT),)))
    found = open_report(path, selection=wanted).instructions.select("number", "awaited", "file", "line")
    assert found.filter(pl.col("awaited").is_not_null()).rows() == [(8, [7], "inlined.h", 4), (11, [9], "inlined.h", 9)]
    assert found.filter(pl.col("number").is_in([7, 9])).select("file", "line").rows() == [("inlined.h", 4)] * 2


def waiting(path: Path, code: bytes, selection: CounterSelection) -> list[tuple[object, ...]]:
    """Return line, loads under way and samples of the instructions that are read of a kernel whose warps wait at two of them."""
    counters = {
        "inst_executed": by_address({16 * number: 1 for number in range(16)}),
        "stalled_long_scoreboard": by_address({0x80: 3, 0x90: 0, 0xB0: 5}),
    }
    path.write_bytes(write_report([kernel(**counters)], sources=((1, code),), functions=((SCALE, LOADED_AT),)))
    found = open_report(path, selection=selection).instructions
    return (
        found.filter(pl.col("stalled_long_scoreboard") > 0).select("line", "n_loads", "stalled_long_scoreboard").rows()
    )


def test_waiting_instructions_show_loads_in_flight_with_and_without_lines(tmp_path: Path) -> None:
    """0x80 waits for a conversion; 0xB0 for the load of `x[(int)a]`, when `x[j]` was waited for, at 0xA0."""
    path, code = tmp_path / "r.ncu-rep", COMPILED
    wanted = replace(WANTED, waits=frozenset({"stalled_long_scoreboard"}))
    assert waiting(path, code, wanted) == [(4, None, 3.0), (9, 1, 5.0)]
    without_lines = code.replace(b".debug_line", b".debug_none")
    assert waiting(path, without_lines, wanted) == [(None, None, 3.0), (None, 1, 5.0)]
    assert open_report(path, selection=wanted).instructions.height == 2  # others are not needed
    alone = replace(wanted, by_instruction=frozenset())
    assert waiting(path, code, alone) == [(None, None, 3.0), (None, 1, 5.0)]  # nobody asked for lines


def test_few_samples_do_not_name_what_they_wait_for(tmp_path: Path) -> None:
    samples = {16 * number: 1000 if number == 11 else 9 for number in range(12)}
    path = tmp_path / "r.ncu-rep"
    counted = kernel(stalled_long_scoreboard=by_address(samples))
    path.write_bytes(write_report([counted], sources=((1, COMPILED),), functions=((SCALE, LOADED_AT),)))
    wanted = replace(WANTED, by_instruction=frozenset({"stalled_long_scoreboard"}))
    found = open_report(path, selection=wanted).instructions
    assert found.filter(pl.col("awaited").is_not_null())["number"].to_list() == [11]  # 0.8 % wait at each of the others


def test_only_counted_instructions_are_named_as_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "r.ncu-rep"
    kernels = [kernel(stalled_long_scoreboard=by_address({0xB0: 5}))]
    path.write_bytes(write_report(kernels, sources=((1, COMPILED),), functions=((SCALE, LOADED_AT),)))
    wanted = replace(WANTED, by_instruction=frozenset({"stalled_long_scoreboard"}))
    assert open_report(path, selection=wanted).instructions["awaited"].to_list() == [[]]


def test_the_function_below_an_address_is_the_one_that_holds_it(tmp_path: Path) -> None:
    divide_at = LOADED_AT + 0x1000
    executed = by_address({0x10: 1, 0x1010: 2, -0x10: 3})
    found = read(
        tmp_path / "r.ncu-rep", kernel(inst_executed=executed), loaded=((DIVIDE, divide_at), (SCALE, LOADED_AT))
    )
    assert rows(found, "inst_executed") == [
        (0, None, None, 3.0),  # before the first
        (0, "inlined.cu", 4, 1.0),
        (0, "inlined.cu", 12, 2.0),
    ]


def test_without_names_the_only_address_is_the_kernels(tmp_path: Path) -> None:
    counters = {
        "inst_executed": by_address({0x10: 1}),
        "launch__function_pcs": Instances((LOADED_AT,), correlation_ids=(0,)),
    }
    assert rows(read(tmp_path / "r.ncu-rep", kernel(**counters), loaded=())) == [(0, "inlined.cu", 4)]
    several = Instances((LOADED_AT, LOADED_AT + 0x1000), correlation_ids=(0, 1))
    unknown = read(tmp_path / "s.ncu-rep", kernel(**{**counters, "launch__function_pcs": several}), loaded=())
    assert unknown.instructions.is_empty()


def texts(path: Path, files: tuple[tuple[str, str], ...]) -> list[str | None]:
    """Return what the first two lines of `scale` are reported to be, of a report that carries these files."""
    counted = kernel(inst_executed=by_address({0: 1, 0x10: 1}))
    path.write_bytes(write_report([counted], sources=((1, COMPILED),), functions=((SCALE, LOADED_AT),), files=files))
    return open_report(path, selection=WANTED).instructions["text"].to_list()


def test_a_line_has_its_text_if_the_report_contains_the_file(tmp_path: Path) -> None:
    path = tmp_path / "r.ncu-rep"
    text = "1\n2\n  third\tline \n" + "x" * 500
    assert texts(path, (("C:\\code\\inlined.cu", text), ("/other.h", ""))) == ["third\tline", "x" * 200]
    assert texts(path, (("/a/inlined.cu", "1\n2\nthird"),)) == ["third", None]  # the file has changed since
    assert texts(path, (("/a/inlined.cu", text), ("/b/inlined.cu", text + "!"))) == [None, None]  # which of them?
    assert texts(path, (("/a/inlined.cu", text), ("/b/inlined.cu", text)))[0] == "third\tline"


def test_code_without_a_line_table_has_no_instructions(tmp_path: Path) -> None:
    path = tmp_path / "r.ncu-rep"
    counted = kernel(inst_executed=by_address({0: 1}))
    path.write_bytes(write_report([counted], sources=((1, COMPILED.replace(b".debug_line", b".debug_none")),)))
    assert open_report(path, selection=WANTED).instructions.is_empty()


def test_only_requested_instructions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(
        write_report([kernel(other=by_address({0: 1}))], sources=((1, COMPILED),), functions=((SCALE, LOADED_AT),))
    )
    assert open_report(path, selection=WANTED).instructions.is_empty()
    assert open_report(path).instructions.is_empty()


def test_the_longest_kernels_come_first_until_there_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "_MOST_INSTRUCTIONS", 3)
    counted = by_address({0: 1, 0x10: 1})
    kernels = [
        replace(kernel(duration=time, inst_executed=counted), demangled=f"k{number}()")
        for number, time in enumerate((1e3, 9e3, 5e3, 2e3))
    ]
    found = read(tmp_path / "r.ncu-rep", *kernels)
    assert found.instructions["row"].unique(maintain_order=True).to_list() == [1, 2]
    monkeypatch.setattr(instructions, "_MOST_KERNELS", 1)
    fewer = read(tmp_path / "s.ncu-rep", *kernels)
    assert fewer.instructions["row"].unique(maintain_order=True).to_list() == [1]


def test_one_launch_of_each_kernel_and_shape_comes_before_others_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = [("a()", 8, 9e3), ("a()", 8, 8e3), ("b()", 8, 1e3), ("a()", 4, 2e3)]
    kernels = []
    for name, grid, time in launches:
        each = kernel(duration=time, inst_executed=by_address({0: 1}))
        kernels.append(replace(each, demangled=name, metrics={**each.metrics, "launch__grid_dim_x": float(grid)}))
    monkeypatch.setattr(instructions, "_MOST_KERNELS", 3)
    wanted = replace(WANTED, names=WANTED.names | {"launch__grid_dim_x"})
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(write_report(kernels, sources=((1, COMPILED),), functions=((SCALE, LOADED_AT),)))
    assert open_report(path, selection=wanted).instructions["row"].to_list() == [0, 3, 2]


def test_values_that_no_counter_has_are_left_out(tmp_path: Path) -> None:
    values = Instances(
        (1.0, float("nan"), float("inf"), -1.0), correlation_ids=tuple(LOADED_AT + 16 * k for k in range(4))
    )
    found = read(tmp_path / "r.ncu-rep", kernel(inst_executed=values))
    assert rows(found, "inst_executed") == [(0, "inlined.cu", 3, 1.0)]


@pytest.mark.corpus
def test_lines_are_those_that_nvidias_module_names(corpus: list[Path]) -> None:
    """Where several rows of a table have one address, the module names the first: the call of what is inlined there, say."""
    ncu_report = pytest.importorskip("ncu_report")
    n_equal = n_last = 0
    for path in corpus:
        found = open_report(path, selection=CounterSelection(frozenset(), by_instruction=frozenset({"inst_executed"})))
        if found.instructions.is_empty() or path.suffix != ".ncu-rep":
            continue
        actions = [action for each in ncu_report.load_report(str(path)) for action in each]
        for row in found.instructions["row"].unique(maintain_order=True):
            places = found.instructions.filter(pl.col("row") == row).select("file", "line").rows()
            action = actions[row]
            addresses = sorted(_addresses(action.metric_by_name("inst_executed")))
            for (file, line), address in zip(places, addresses, strict=True):
                theirs = action.source_info(address)
                named = None if theirs is None else (Path(theirs.file_name()).name, theirs.line())
                package, _, name = (file or "").rpartition("/")
                if named == ((name, line) if file is not None else None):
                    n_equal += 1
                    assert theirs is None or _is_in(package, Path(theirs.file_name())), (path, hex(address), file)
                else:
                    n_last += 1
                    assert named is not None, (path, hex(address))
                    assert file is not None, (path, hex(address))
    print(f"{n_equal} instructions as the module says, {n_last} by the last of several rows")
    assert 0 < n_last < 0.2 * n_equal


def _is_in(package: str, path: Path) -> bool:
    """Return whether a path is of one of Julia's own packages, of Base (no folder), or, for no package, of neither."""
    of_julia = path.suffix == ".jl" and (path.parent == Path() or ".julia" in path.parts)
    inside = path.parent == Path() if package == "Base" else package in path.parts
    return of_julia and inside if package else not of_julia


@pytest.mark.corpus
@pytest.mark.oracle
@pytest.mark.parametrize(
    "name", ["variant2.ncu-rep", "profiling__profiles__warpTiling.ncu-rep", "gemm_v1_alter.ncu-rep"]
)
def test_lines_are_among_those_under_which_ncu_lists_an_instruction(corpus: list[Path], name: str) -> None:
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("NVIDIA's ncu is not installed; NCUROOF_NCU names it")
    path = next(each for each in corpus if each.name == name)
    found = open_report(path, selection=CounterSelection(frozenset(), by_instruction=frozenset({"inst_executed"})))
    listed = _listed(print_page(ncu, path, "--page", "source", "--print-source", "cuda,sass").decode())
    ncu_report = pytest.importorskip("ncu_report")
    actions = [action for each in ncu_report.load_report(str(path)) for action in each]
    n_listed = 0
    for row in found.instructions["row"].unique(maintain_order=True):
        places = found.instructions.filter(pl.col("row") == row).select("file", "line").rows()
        for place, address in zip(
            places, sorted(_addresses(actions[row].metric_by_name("inst_executed"))), strict=True
        ):
            if address in listed:
                n_listed += 1
                assert place in listed[address], (row, hex(address))
    assert n_listed > 100


def _addresses(metric: object) -> list[int]:
    ids = metric.correlation_ids()  # type: ignore[attr-defined]
    return [ids.as_uint64(index) for index in range(metric.num_instances())]  # type: ignore[attr-defined]


def _listed(text: str) -> dict[int, set[tuple[str, int]]]:
    """Return under which lines ncu lists each address."""
    lines_by_address = defaultdict(set)
    file, line = "", 0
    for cells in csv.reader(io.StringIO(text)):
        if cells and cells[0] == "File Path":
            file = Path(cells[1]).name
        elif len(cells) > 2 and cells[0] != "Line No":
            line = int(cells[0] or line)
            if cells[2].startswith("0x"):
                lines_by_address[int(cells[2], 16)].add((file, line))
    return lines_by_address
