"""ncuroof's own reader gives what NVIDIA's module gives, for every report, and declines by name where it cannot."""

from __future__ import annotations

import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path

import polars as pl
import pytest
import zstandard

from ncuroof.cli import main
from ncuroof.errors import MissingExtraError, NcuroofError, ReaderDeclinedError
from ncuroof.ingest import CounterSelection, RawReport, ReaderName, open_report
from ncuroof.metrics.measurements import scale, selection
from tests.support import demo, report_writer
from tests.support.report_writer import (
    METRICS_BY_CHIP,
    Float32,
    Instances,
    Kernel,
    Rule,
    Uint32,
    write_report,
)
from tests.support.wire_encoder import double, integer, message, text

CHIP = METRICS_BY_CHIP["GA100"]
TIMED = {**CHIP, "gpu__time_duration.sum": 4096.0}
UNKNOWN = "sm__ops_path_tensor_of_tomorrow.zigzag"
"""A counter that is read, for its prefix, and whose unit nobody can know."""

LONGEST_S = 5.0
"""For a damaged report of some kilobytes, on a busy machine; it takes milliseconds."""


@contextmanager
def _fresh_process() -> Iterator[Executor]:
    """A process for NVIDIA's module, in whose words for units shows what it has read before, damaged files above all."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def reference() -> Iterator[Executor]:
    """The process that reads undamaged reports with NVIDIA's module."""
    with _fresh_process() as pool:
        yield pool


def _read(path: Path, reference: Executor, wanted: CounterSelection | None) -> tuple[RawReport, RawReport]:
    """Return what our reader gives, and what the module gives."""
    theirs = reference.submit(open_report, path, selection=wanted, reader="nvidia")
    return open_report(path, selection=wanted, reader="native"), theirs.result()


def _both(path: Path, reference: Executor, *, every_counter: bool = False) -> tuple[RawReport, RawReport]:
    return _read(path, reference, None if every_counter else selection())


def _written(path: Path, *kernels: Kernel) -> Path:
    path.write_bytes(write_report(kernels))
    return path


def _bits(counters: pl.DataFrame) -> dict[str, list[bytes | None]]:
    """Return every number as its eight bytes: 0.0 and -0.0 are two numbers."""
    return {
        name: [None if value is None else struct.pack("<d", value) for value in column]
        for name, column in counters.to_dict(as_series=False).items()
    }


def _compare(ours: RawReport, theirs: RawReport) -> Counter[str]:
    """Require that two readings of a report are equal, bit by bit, and return how many values of each kind there were.

    Units are compared as text where the module knows the chip; what it says without one is compared by its effect.
    """
    assert ours.counters.columns == theirs.counters.columns
    assert _bits(ours.counters) == _bits(theirs.counters)
    assert list(ours.units) == list(theirs.units)
    for table in ("workloads", "processes", "texts", "rules", "code", "instructions", "samples"):
        mine, reference = getattr(ours, table), getattr(theirs, table)
        assert mine.schema == reference.schema
        assert mine.to_dicts() == reference.to_dicts(), table
    compared_apart = {
        "workloads",
        "processes",
        "texts",
        "rules",
        "code",
        "instructions",
        "samples",
        "counters",
        "units",
        "remarks",
    }
    for name in {field.name for field in fields(RawReport)} - compared_apart:
        assert getattr(ours, name) == getattr(theirs, name), name
    return Counter(
        workloads=ours.workloads.height,
        numbers=sum(value is not None for column in ours.counters for value in column),
        units=len(ours.units),
        texts=sum(value is not None for column in ours.texts for value in column),
        rules=ours.rules.height,
        nvtx=sum(map(len, ours.workloads["nvtx"])),
        sections=len(ours.sections),
        charts=len(ours.charts),
    )


def _compare_units_by_effect(ours: RawReport, theirs: RawReport) -> None:
    """The module's words depend on the chip and on what it has read before; the scale must not."""
    for counter, unit in theirs.units.items():
        assert scale(ours.units[counter], metric=counter) == scale(unit, metric=counter), counter


# ---- everything that was recorded --------------------------------------------------------------------


@pytest.mark.corpus
def test_every_report_of_the_corpus_is_read_as_by_the_module(corpus: list[Path], reference: Executor) -> None:
    compared: Counter[str] = Counter()
    declined = []
    for path in corpus:
        try:
            ours, theirs = _both(path, reference)
        except ReaderDeclinedError as error:
            declined.append(str(error))
            continue
        compared += _compare(ours, theirs)
        assert dict(ours.units) == dict(theirs.units), path
        assert ours.remarks == ()
    print(f"compared: {dict(compared)}")
    assert declined == []
    assert compared["numbers"] > 100_000
    assert compared["rules"] > 3_000


@pytest.mark.corpus
def test_every_counter_of_the_corpus_is_read_as_by_the_module(corpus: list[Path], reference: Executor) -> None:
    """Half of the reports hold counters that ncuroof never asks for and whose unit is not in the table: they are declined."""
    compared: Counter[str] = Counter()
    n_declined = 0
    for path in corpus:
        try:
            ours, theirs = _both(path, reference, every_counter=True)
        except ReaderDeclinedError:
            n_declined += 1
            continue
        compared += _compare(ours, theirs)
    print(f"compared: {dict(compared)}, declined: {n_declined}")
    assert compared["numbers"] > 150_000
    assert n_declined < len(corpus) * 0.6


def test_the_constructed_step_is_read_as_by_the_module(reference: Executor) -> None:
    ours, theirs = _both(demo.REPORT, reference)
    assert _compare(ours, theirs)["numbers"] > 5_000
    _compare_units_by_effect(ours, theirs)


@pytest.mark.parametrize("chip", METRICS_BY_CHIP)
def test_units_scale_as_the_modules_do_on_every_chip(tmp_path: Path, chip: str, reference: Executor) -> None:
    counters = {name: 1.0 for name in selection().names if not name.startswith("device__")}
    ours, theirs = _both(
        _written(tmp_path / "all.ncu-rep", Kernel("k", {**METRICS_BY_CHIP[chip], **counters})), reference
    )
    _compare(ours, theirs)
    for counter, unit in theirs.units.items():
        if _is_scaled(unit) and "." in counter and not counter.endswith(".pct"):
            assert scale(ours.units[counter], metric=counter) == scale(unit, metric=counter), counter


def _is_scaled(unit: str) -> bool:
    """Return whether ncuroof takes a unit of the module at all; for a counter that a chip has not, it can say anything."""
    try:
        return scale(unit, metric="") > 0
    except NcuroofError:
        return False


# ---- everything that can be written ------------------------------------------------------------------

SCALARS = [
    -1.0, 5e-324, 1e308, float("nan"), float("inf"), 0.0, -0.0, "text", "", "a\0b", 2**53 + 1, 2**64 - 1, 0, 300,
    Uint32(2**32 - 1), Float32(3.4e38), Float32(1.1), Instances((1, 2, 3)), Instances((1.0, 2), total=5),
    Instances(("a",)), Instances((3.0,), (1,)), Instances((1,) * 300, total=2.5), "x" * 300,
]  # fmt: skip


@pytest.mark.parametrize("counter", ["gpu__time_duration.sum", "launch__grid_size", "device__attribute_display_name"])
def test_every_kind_of_value_is_read_as_by_the_module(tmp_path: Path, counter: str, reference: Executor) -> None:
    kernels = [Kernel(f"k{index}", {**CHIP, counter: value}) for index, value in enumerate(SCALARS)]
    path = _written(tmp_path / "values.ncu-rep", *kernels, *reversed(kernels))
    for every_counter in (True, False):
        _compare(*_both(path, reference, every_counter=every_counter))


def test_names_rules_sections_and_ranges_are_read_as_by_the_module(tmp_path: Path, reference: Executor) -> None:
    rules = tuple(
        Rule(f"r{kind}", "rule", "s", "title", "message\u00d7", type=kind, speedup=speedup)
        for kind in ("none", "ok", "warning", "error", "optimization")
        for speedup in (None, ("unknown", 1.0), ("local", float("nan")), ("global", 50.0))
    )
    path = _written(
        tmp_path / "parts.ncu-rep",
        Kernel("fn", TIMED, mangled="m", demangled="", rules=rules, sections=("one", "x" * 200, "")),
        Kernel("", TIMED, mangled="m", demangled="d()", nvtx=("outer", "inner"), sections=("two", "one")),
        Kernel("c", TIMED, kind="cmdlist", rules=rules[:2], nvtx=("of another domain",), nvtx_domain="d"),
        Kernel("g", {**TIMED, "dram__bytes.sum.per_second": 1.0}, kind="graph", sections=("three",)),
        Kernel("r", CHIP, kind="range"),
        Kernel("z\0hidden", {}, demangled="z\0()"),
    )
    counted = _compare(*_both(path, reference, every_counter=True))
    assert counted["rules"] == 22
    assert counted["nvtx"] == 3
    assert counted["sections"] == 5


def _domain(number: int) -> bytes:
    return message(1, integer(1, number), text(2, f"domain {number}"))


def _pushed(domain: int, *names: str) -> bytes:
    return message(2, integer(1, domain), *(message(3, text(1, name)) for name in names))


def _thread(number: int, *stacks: bytes) -> bytes:
    return message(2, integer(1, number), *stacks)


def _started(domain: int, *names: str) -> bytes:
    return message(3, integer(1, domain), *(message(3, integer(1, 1), text(2, name)) for name in names))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ([_domain(1), _domain(0), _thread(5, _pushed(0, "c"), _pushed(1, "a", "b"))], ["a", "b", "c"]),
        ([_domain(0), _thread(6, _pushed(0, "another thread's"))], []),
        ([_domain(0), _thread(5, _pushed(3, "of no domain"), _pushed(0, "a")), _started(4, "of none")], ["a"]),
        (
            [_domain(0), _domain(1), _started(1, "s1"), _thread(5, _pushed(1, "p1")), _started(0, "s0")],
            ["p1", "s0", "s1"],
        ),
        ([_domain(0), _domain(0), _thread(5, _pushed(0, "a")), _thread(5, _pushed(0, "b"))], ["a", "a"]),
        ([_domain(0), _thread(5, _pushed(0, "a"), _pushed(0, "b")), _started(0, "s"), _started(0, "t")], ["a", "s"]),
        ([_thread(5, _pushed(0, "a"))], []),
        ([], []),
    ],
)
def test_ranges_of_any_order_are_read_as_by_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: list[bytes], expected: list[str], reference: Executor
) -> None:
    monkeypatch.setattr(report_writer, "_nvtx", lambda number, kernel: message(number, *state))
    ours, theirs = _both(_written(tmp_path / "nvtx.ncu-rep", Kernel("k", CHIP, thread_id=5)), reference)
    _compare(ours, theirs)
    assert ours.workloads["nvtx"].to_list() == [expected]


def test_the_last_value_of_a_counter_stored_twice_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: Executor
) -> None:
    # As in reports of 2025.1 whose duration was measured again.
    def twice(number: int, metrics: object, names: object) -> list[bytes]:
        identifier = names.id_field_by_name.get("gpu__time_duration.sum") or names.add("gpu__time_duration.sum")
        return [message(number, identifier, message(2, double(3, value)), integer(4, 0)) for value in (1.0, 2.0)]

    monkeypatch.setattr(report_writer, "_metrics", twice)
    ours, theirs = _both(_written(tmp_path / "twice.ncu-rep", Kernel("a"), Kernel("b")), reference)
    _compare(ours, theirs)
    assert ours.counters["gpu__time_duration.sum"].to_list() == [2.0, 2.0]


@pytest.mark.parametrize("n_names", [100, 130, 20_000])
def test_any_number_of_names_is_read_as_by_the_module(tmp_path: Path, n_names: int, reference: Executor) -> None:
    """Identifiers take one, two or three bytes."""
    others = {f"other__{number}": 1.0 for number in range(n_names)}
    path = _written(
        tmp_path / "names.ncu-rep",
        Kernel("a", {**TIMED, **others, "sm__inst_executed.sum": 7.0}),
        Kernel("b", {**others, **TIMED, "launch__grid_size": 3}),
        Kernel("c", {**TIMED, "sm__inst_executed.sum": 9}),
    )
    ours, theirs = _both(path, reference)
    _compare(ours, theirs)
    assert ours.counters["sm__inst_executed.sum"].to_list() == [7.0, None, 9.0]


def test_any_number_of_layouts_is_read_as_by_the_module(tmp_path: Path, reference: Executor) -> None:
    """Nearly every kernel stores another set of counters: more layouts than are held at a time."""
    wanted = sorted(name for name in selection().names if name.endswith((".sum", ".per_second")))[:40]
    kernels = [
        Kernel(f"k{index}", {**CHIP, f"other__{index % 300}": 1, **dict.fromkeys(wanted[index % 37 :], index + 0.5)})
        for index in range(700)
    ]
    path = tmp_path / "layouts.ncu-rep"
    path.write_bytes(write_report(kernels, kernels_per_block=50))
    ours, theirs = _both(path, reference)
    assert _compare(ours, theirs)["numbers"] > 10_000


def test_a_compressed_report_is_read_as_the_plain_one(tmp_path: Path, reference: Executor) -> None:
    path = tmp_path / "step.ncu-repz"
    path.write_bytes(zstandard.compress(demo.REPORT.read_bytes()))
    ours, theirs = _both(path, reference)
    _compare(ours, theirs)


def test_a_newer_file_is_read_as_far_as_possible_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "newer.ncu-rep"
    path.write_bytes(write_report([Kernel("k", TIMED)], file_version=8))
    report = open_report(path, reader="native")
    assert report.damage is None
    (remark,) = report.remarks
    assert "file version 8 is newer than 7" in remark


# ---- damage ------------------------------------------------------------------------------------------

SMALL = write_report([Kernel(name, {**TIMED, "launch__grid_size": 3}) for name in ("first", "second", "third")])


@pytest.mark.long
def test_a_report_cut_anywhere_keeps_its_whole_kernels(tmp_path: Path) -> None:
    path = tmp_path / "cut.ncu-rep"
    n_found = []
    start = time.process_time()
    for n_bytes in range(len(SMALL)):
        path.write_bytes(SMALL[:n_bytes])
        try:
            n_found.append(open_report(path, reader="native").workloads.height)
        except NcuroofError:
            n_found.append(0)
    assert n_found == sorted(n_found)
    assert set(n_found) == {0, 1, 2}
    assert (time.process_time() - start) / len(SMALL) < LONGEST_S


def _n_read(path: Path, reader: ReaderName) -> int:
    try:
        return open_report(path, reader=reader).workloads.height
    except NcuroofError:
        return 0


@pytest.mark.long
def test_a_report_with_a_wrong_byte_is_read_as_far_as_by_the_module(tmp_path: Path) -> None:
    path = tmp_path / "wrong.ncu-rep"
    differences: Counter[int] = Counter()
    with _fresh_process() as damaged:
        for offset in range(0, len(SMALL), 3):
            content = bytearray(SMALL)
            content[offset] ^= 0xFF if offset % 2 else 0x80
            path.write_bytes(content)
            theirs = damaged.submit(_n_read, path, "nvidia")
            differences[_n_read(path, "native") - theirs.result()] += 1
    # The module loses a result for what is wrong in parts that we skip; we lose one for a stray end of a group in it, where the
    # module stops reading the result and keeps what came before.
    n_fewer = sum(n for difference, n in differences.items() if difference < 0)
    n_more = sum(n for difference, n in differences.items() if difference > 0)
    assert n_fewer <= differences.total() / 100, differences
    assert n_more > n_fewer


def test_only_the_malformed_result_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "one.ncu-rep"
    # Field 6 of the second result, its name, is longer than the result.
    path.write_bytes(SMALL.replace(b"\x32\x06second", b"\x32\x7fsecond"))
    report = open_report(path, reader="native")
    assert report.workloads["function_name"].to_list() == ["first", "third"]
    assert report.damage == "1 of 3 results are malformed and lost"


def test_deep_nesting_is_a_named_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = b""
    for _ in range(10_000):
        deep = message(1, deep)
    monkeypatch.setattr(report_writer, "encode_rule", lambda number, rule: message(number, message(3, deep)))
    rule = Rule("r", "r", "s", "t", "m")
    path = _written(tmp_path / "deep.ncu-rep", Kernel("flat", TIMED), Kernel("deep", TIMED, rules=(rule,)))
    start = time.process_time()
    try:
        names = open_report(path, reader="native").workloads["function_name"].to_list()
    except NcuroofError:
        names = []
    assert names in (["flat"], ["flat", "deep"])  # what is deep is skipped unread, or its result is lost
    assert time.process_time() - start < LONGEST_S


# ---- what is declined, and who reads it then ---------------------------------------------------------


def test_a_counter_of_unknown_unit_is_left_to_the_module(tmp_path: Path) -> None:
    path = _written(tmp_path / "new.ncu-rep", Kernel("k", {**TIMED, UNKNOWN: 1.0}))
    with pytest.raises(ReaderDeclinedError, match=f"unknown unit of {UNKNOWN}") as caught:
        open_report(path, selection=selection(), reader="native")
    assert "--reader nvidia" in str(caught.value.hint)
    report = open_report(path, selection=selection())
    assert report.counters[UNKNOWN].to_list() == [1.0]
    assert report.remarks == (f"read with NVIDIA's module: unknown unit of {UNKNOWN}",)


def test_without_the_module_reports_are_read_or_declined_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", None)  # as if it were not installed
    path = _written(tmp_path / "known.ncu-rep", Kernel("k", TIMED))
    assert open_report(path, selection=selection()).workloads.height == 1
    with pytest.raises(MissingExtraError, match="cannot be imported"):
        open_report(path, reader="nvidia")
    _written(path, Kernel("k", {**TIMED, UNKNOWN: 1.0}))
    with pytest.raises(ReaderDeclinedError) as caught:
        open_report(path, selection=selection())
    assert "pip install 'ncuroof[nvidia]'" in str(caught.value.hint)


@pytest.mark.long
@pytest.mark.parametrize("reader", ["auto", "native", "nvidia"])
def test_the_command_line_chooses_the_reader(tmp_path: Path, capsys: pytest.CaptureFixture[str], reader: str) -> None:
    path = _written(tmp_path / "new.ncu-rep", Kernel("k", {**TIMED, UNKNOWN: 1.0}))
    with pytest.raises(SystemExit) if reader == "native" else nullcontext():
        main(["report", str(path), "-o", "-", "-v", "--reader", reader])
    said = capsys.readouterr().err
    assert ("reader declines" in said) == (reader == "native")
    assert ("read with NVIDIA's module" in said) == (reader == "auto")
