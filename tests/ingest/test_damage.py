"""Damaged reports: what is whole is read, the loss is reported, and nothing but a named error ever escapes."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ncuroof.analysis import Analysis
from ncuroof.errors import NcuroofError
from ncuroof.ingest import open_report
from ncuroof.reading import read
from tests.support import demo
from tests.support.chain import outcome
from tests.support.constructed_counters import kernel
from tests.support.report_writer import (
    METRICS_BY_CHIP,
    Device,
    Float32,
    Instances,
    Kernel,
    Rule,
    Session,
    Uint32,
    write_report,
)

CHIP = METRICS_BY_CHIP["GA100"]
NAMES = ["first", "second", "third"]


def _kernels(names: list[str]) -> list[Kernel]:
    return [Kernel(name, {**CHIP, "gpu__time_duration.sum": 4096.0}) for name in names]


SMALL = write_report(_kernels(NAMES))
MEDIUM = write_report([kernel(planted.kernel) for planted in demo.PLANTED[:5]], Session(command_line=demo.SIMULATED))
CORPUS_FILE_BYTES = 130_000
"""Damage is tried on the smaller reports of the corpus: it is the variety of versions that counts."""


def _read(path: Path, content: bytes) -> Analysis | NcuroofError:
    path.write_bytes(content)
    return outcome(path)


# ---- cut ---------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_report_cut_anywhere_keeps_its_whole_kernels(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.ncu-rep"
    found: dict[int, list[str]] = {}
    n_undamaged = 0
    for n_bytes in range(len(SMALL)):
        path.write_bytes(SMALL[:n_bytes])
        try:
            report = open_report(path)
        except NcuroofError:
            found[n_bytes] = []
        else:
            found[n_bytes] = report.workloads["function_name"].to_list()
            n_undamaged += report.damage is None
    assert all(names == NAMES[: len(names)] for names in found.values())
    n_found = [len(names) for names in found.values()]
    assert n_found == sorted(n_found)
    assert set(n_found) == {0, 1, 2}  # the third ends with the file
    # A cut between two blocks leaves a shorter, but undamaged report: the rest of the session follows the first kernel.
    assert 0 < n_undamaged < 12
    assert capfd.readouterr().err == ""


@pytest.mark.long
def test_a_truncated_report_is_analysed_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "cut.ncu-rep"
    for n_bytes in range(1, len(SMALL), 37):
        result = _read(path, SMALL[:n_bytes])
        if isinstance(result, Analysis) and result.reports[0].damage:
            assert result.kernels["is_damaged_report"].all()
    whole = _read(path, SMALL)
    assert isinstance(whole, Analysis)
    assert whole.reports[0].damage is None


@pytest.mark.parametrize("extra", [bytes(1), bytes(4), bytes(1000), b"\xff" * 1000, SMALL], ids=len)
def test_bytes_after_a_whole_report_are_remarked_and_left_out(tmp_path: Path, extra: bytes) -> None:
    result = _read(tmp_path / "longer.ncu-rep", SMALL + extra)
    assert isinstance(result, Analysis)
    assert result.kernels["short_name"].to_list() == NAMES
    assert result.reports[0].damage
    assert "everything after it is lost" in result.reports[0].damage


def test_zeros_in_place_of_the_last_block_lose_only_this_block(tmp_path: Path) -> None:
    n_last = len(SMALL) - len(write_report(_kernels(NAMES[:2])))
    result = _read(tmp_path / "zeroed.ncu-rep", SMALL[:-n_last] + bytes(n_last))
    assert isinstance(result, Analysis)
    assert result.kernels["short_name"].to_list() == NAMES[:2]


# ---- lengths and counts that lie ---------------------------------------------------------------------


def _length_offsets(report: bytes) -> Iterator[int]:
    """Yield the offset of each 32-bit length of a report, read by its layout (field 5 of a header: payload bytes)."""
    position = 4
    while position < len(report):
        yield position
        (size,) = struct.unpack_from("<I", report, position)
        header = report[position + 4 : position + 4 + size]
        position += 4 + size
        end = position + _payload_size(header)
        while position < end:
            yield position
            position += 4 + struct.unpack_from("<I", report, position)[0]


def _payload_size(header: bytes) -> int:
    """Return the varint behind the tag of field 5, which the writer puts behind the length-delimited fields 3 and 4."""
    position = 0
    while position < len(header):
        tag = header[position]
        value, shift, position = 0, 0, position + 1
        while True:
            byte = header[position]
            value |= (byte & 0x7F) << shift
            shift, position = shift + 7, position + 1
            if byte < 0x80:
                break
        if tag == 5 << 3:
            return value
        position += value if tag & 7 == 2 else 0
    return 0


@pytest.mark.long
@pytest.mark.parametrize("lie", [0, 1, 0x7FFFFFFF, 0xFFFFFFFF, "one less", "one more"])
def test_no_length_is_believed(tmp_path: Path, lie: int | str) -> None:
    offsets = list(_length_offsets(SMALL))
    assert len(offsets) > 10
    for offset in offsets:
        (true,) = struct.unpack_from("<I", SMALL, offset)
        length = lie if isinstance(lie, int) else true + (1 if lie == "one more" else -1)
        if length < 0:
            continue
        content = bytearray(SMALL)
        struct.pack_into("<I", content, offset, length)
        result = _read(tmp_path / "lie.ncu-rep", bytes(content))
        if isinstance(result, Analysis):
            assert result.kernels["short_name"].to_list() == NAMES[: result.kernels.height]
            assert result.kernels.height == 3 or result.reports[0].damage


@pytest.mark.parametrize("n_results", [0, 1, 3, 100, 0x7F])
def test_wrong_counts_are_damage_or_harmless(tmp_path: Path, n_results: int) -> None:
    # NumResults is field 2 of a block header: `10 02` says that the payload holds two results.
    content = write_report(
        [Kernel(name, {**CHIP, "gpu__time_duration.sum": 1.0}) for name in NAMES[:2]], kernels_per_block=2
    )
    assert content.count(b"\x08\x00\x10\x02") == 1
    result = _read(tmp_path / "count.ncu-rep", content.replace(b"\x08\x00\x10\x02", bytes([8, 0, 0x10, n_results])))
    if n_results > 2:
        assert isinstance(result, NcuroofError)
        assert f"should have {n_results} entries" in str(result)


@pytest.mark.long
def test_every_byte_of_the_small_report_may_be_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.ncu-rep"
    kinds: Counter[str] = Counter()
    for offset in range(len(SMALL)):
        content = bytearray(SMALL)
        content[offset] ^= 0xFF if offset % 2 else 0x80
        path.write_bytes(content)
        try:
            report = open_report(path)
        except NcuroofError as error:
            kinds[type(error).__name__] += 1
        else:
            kinds["damaged" if report.damage else "whole"] += 1
    assert min(kinds["damaged"], kinds["whole"], kinds["ReportFormatError"]) > 50, kinds
    assert capfd.readouterr().err == ""


# ---- flipped bits ------------------------------------------------------------------------------------


def _flipped(content: bytes, chance: random.Random) -> bytes:
    flipped = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 5, 20, 100])):
        offset = chance.randrange(4, len(flipped))
        bit = flipped[offset] ^ 1 << chance.randrange(8)
        flipped[offset] = chance.choice([0, 0xFF, 0x7F, 0x80, chance.randrange(256), bit])
    return bytes(flipped)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_flipped_bits_give_a_named_error_or_an_analysis(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], seed: int
) -> None:
    chance = random.Random(seed)
    results = [_read(tmp_path / "flipped.ncu-rep", _flipped(MEDIUM, chance)) for _ in range(20)]
    assert sum(isinstance(result, Analysis) for result in results) > 10
    assert capfd.readouterr().err == ""


@pytest.mark.long
def test_text_that_is_not_utf8_is_replaced(tmp_path: Path) -> None:
    # What flips do to a name: 0xFF is in no UTF-8. NVIDIA's module turns it into lone surrogates, which no file can hold.
    counters = {**CHIP, "device__attribute_display_name": "deviceQZ", "gpu__time_duration.sum": 1.0}
    broken = Kernel(
        "kernelQZ",
        {**counters, "sm__ops_path_tensor_QZ.sum": 1.0},
        nvtx=("rangeQZ",),
        sections=("SectionQZ",),
        rules=(Rule("RuleQZ", "rule", "SectionQZ", "titleQZ", "messageQZ"),),
    )
    session = Session(command_line="ncu QZ", devices=(Device(0, "deviceQZ"),), ncu_version="2025QZ")
    result = _read(tmp_path / "bytes.ncu-rep", write_report([broken], session).replace(b"QZ", b"\xff\xff"))
    assert isinstance(result, Analysis)
    document = result.to_dict()
    (found,) = document["kernels"]
    unknown = "\ufffd\ufffd"
    assert (found["name"], found["nvtx"]) == (f"kernel{unknown}()", [f"range{unknown}"])
    assert found["vendor"]["rules"][0]["message"] == f"message{unknown}"
    assert document["devices"][0]["name"] == f"device{unknown}"
    assert document["sources"][0]["sections"] == [f"Section{unknown}"]
    assert document["sources"][0]["ncu_version"].startswith(f"2025{unknown}")


@pytest.mark.corpus
@pytest.mark.parametrize("seed", range(2))
def test_reports_of_the_corpus_may_be_cut_or_flipped(
    tmp_path: Path, corpus: list[Path], capfd: pytest.CaptureFixture[str], seed: int
) -> None:
    chance = random.Random(seed)
    small = [path for path in corpus if path.stat().st_size < CORPUS_FILE_BYTES and "ncu-rep" in path.suffix]
    assert len(small) > 5
    for _ in range(20):
        content = chance.choice(small).read_bytes()
        _read(tmp_path / "cut.ncu-rep", content[: chance.randrange(1, len(content))])
        _read(tmp_path / "flipped.ncu-rep", _flipped(content, chance))
    assert capfd.readouterr().err == ""


# ---- whole files with absurd content -----------------------------------------------------------------

LAUNCH = {f"launch__{what}_dim_{axis}": 1 for what in ("grid", "block") for axis in "xyz"}
BREAKDOWN = "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
ABSURD_VALUES = [
    -1.0, 5e-324, 1e-40, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), -0.0, "text", "", "\0",
    2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, Uint32(2**32 - 1), Float32(3.4e38), Instances((1, 2, 3)),
]  # fmt: skip
COUNTERS = [
    "launch__grid_dim_x",
    "launch__stream_id",
    "launch__device_id",
    "launch__registers_per_thread",
    "device__attribute_compute_capability_major",
    "device__attribute_multiprocessor_count",
    "device__attribute_display_name",
    "gpu__time_duration.sum",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__ops_path_tensor_src_fp16.sum",
    BREAKDOWN,
]


@pytest.mark.long
@pytest.mark.parametrize("counter", COUNTERS)
def test_absurd_values_are_analysed(tmp_path: Path, counter: str) -> None:
    kernels = [
        Kernel(f"k{index}", {**CHIP, "gpu__time_duration.sum": 4096.0, **LAUNCH, counter: value})
        for index, value in enumerate(ABSURD_VALUES)
    ]
    result = _read(tmp_path / "absurd.ncu-rep", write_report(kernels))
    assert isinstance(result, Analysis)
    assert result.kernels.height == len(ABSURD_VALUES)


def test_values_that_no_counter_can_have_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "absurd.ncu-rep"
    values = [float("nan"), float("inf"), 1e300, 5e-324, 0.0, -0.0, 1.5]
    path.write_bytes(write_report([Kernel("k", {**CHIP, "gpu__time_duration.sum": value}) for value in values]))
    report = open_report(path)
    assert report.counters["gpu__time_duration.sum"].to_list() == [None, None, None, None, 0.0, 0.0, 1.5]
    assert report.workloads["n_not_finite"].to_list() == [1, 1, 1, 1, 0, 0, 0]


def test_peaks_and_zeros_beside_nan_values_were_not_measured(tmp_path: Path) -> None:
    path = tmp_path / "failed.ncu-rep"
    nan = dict.fromkeys(("gpu__time_duration.sum", "sm__cycles_active.avg"), float("nan"))
    constant = {"dram__bytes.sum.peak_sustained": 64.0, "smsp__inst_executed.sum": 0.0}
    path.write_bytes(
        write_report(
            [
                Kernel("failed", {**CHIP, **nan, **constant}),
                Kernel("k", {**CHIP, **nan, "smsp__inst_executed.sum": 9.0}),
            ]
        )
    )
    assert read(path).analyse().kernels["failed"].to_list() == [True, False]


@pytest.mark.long
def test_a_breakdown_cannot_put_its_own_columns_into_our_tables(tmp_path: Path) -> None:
    columns = ["id", "nvtx", "duration_ns", "workload", "source", "grid", "process_id", "limiter.memory", "number"]
    for value in ("text", 3.0):
        hostile = Kernel(
            "k", {**CHIP, "gpu__time_duration.sum": 7.0, BREAKDOWN: ",".join(columns), **dict.fromkeys(columns, value)}
        )
        result = _read(tmp_path / "columns.ncu-rep", write_report([hostile]))
        assert isinstance(result, Analysis)
        assert result.kernels["duration_ns"].to_list() == [7.0]


@pytest.mark.parametrize("process_id", [0, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
def test_any_process_and_device_number_is_analysed(tmp_path: Path, process_id: int) -> None:
    launched = replace(Kernel("k", CHIP), process_id=process_id)
    session = Session(processes=((process_id, "p"),), devices=(Device(process_id),))
    assert isinstance(_read(tmp_path / "process.ncu-rep", write_report([launched], session)), Analysis)


def test_kernels_without_name_counters_or_difference_are_analysed(tmp_path: Path) -> None:
    kernels = [Kernel("", {}, demangled=""), Kernel("k", {}), Kernel("k", {}), *([Kernel("k", CHIP)] * 20)]
    kernels += [Kernel("", CHIP, kind=kind) for kind in ("range", "cmdlist", "graph")]
    result = _read(tmp_path / "same.ncu-rep", write_report(kernels))
    assert isinstance(result, Analysis)
    assert result.kernels.height == len(kernels)


def test_a_rule_without_a_finite_speedup_has_no_speedup(tmp_path: Path) -> None:
    rules = tuple(
        Rule(f"r{i}", "r", "s", "t", "m", speedup=("global", value))
        for i, value in enumerate((float("nan"), float("inf"), 50.0))
    )
    path = tmp_path / "rules.ncu-rep"
    result = _read(path, write_report([Kernel("k", CHIP, rules=rules)]))
    assert isinstance(result, Analysis)
    assert [rule["speedup_frac"] for rule in result.to_dict()["kernels"][0]["vendor"]["rules"]] == [None, None, 0.5]
