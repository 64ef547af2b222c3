"""Values of a counter's single instances, as a text: what both readers make of them, in launches that repeat too."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ncuroof.ingest import open_report
from ncuroof.ingest.raw_report import CounterSelection, instances_text
from ncuroof.ingest.readers import ReaderName
from tests.support.report_writer import METRICS_BY_CHIP, Instances, Kernel, Uint32, write_report

TIME, OPCODES = "gpu__time_duration.sum", "sass__inst_executed_per_opcode_with_modifier_all"
SELECTION = CounterSelection(names=frozenset({TIME}), instances={OPCODES: ("HMMA", "IMMA")})
COUNTS = {"FFMA": 500, "HMMA.16816.F32": 4096, "LDG.E.128": 7, "IMMA.16832.S8.S8": 2, "HMMA.1688.F16": 10**12}
TEXT = "HMMA.16816.F32 4096 HMMA.1688.F16 1000000000000 IMMA.16832.S8.S8 2"


def launch(time: float, opcodes: Instances | None) -> Kernel:
    counted = {} if opcodes is None else {OPCODES: opcodes}
    return Kernel("k", {**METRICS_BY_CHIP["GA100"], TIME: time, **counted})


def counted(counts: dict[str, int]) -> Instances:
    return Instances(tuple(counts.values()), correlation_ids=tuple(counts), total=float(sum(counts.values())))


def texts(path: Path, kernels: list[Kernel], reader: ReaderName = "native") -> list[str | None]:
    path.write_bytes(write_report(kernels))
    report = open_report(path, selection=SELECTION, reader=reader)
    assert report.counters[TIME].to_list() == [kernel.metrics[TIME] for kernel in kernels]
    assert OPCODES not in report.counters.columns
    return report.texts[OPCODES].to_list() if OPCODES in report.texts.columns else [None] * len(kernels)


@pytest.mark.parametrize("reader", ["native", "nvidia"])
def test_wanted_instances_become_a_text_ordered_by_name(tmp_path: Path, reader: ReaderName) -> None:
    kernels = [launch(1.0, counted(COUNTS)), launch(2.0, None), launch(3.0, counted({"FFMA": 3}))]
    assert texts(tmp_path / "run.ncu-rep", kernels, reader) == [TEXT, None, ""]


@pytest.mark.parametrize("reader", ["native", "nvidia"])
def test_without_a_value_for_the_whole_the_instances_are_there(tmp_path: Path, reader: ReaderName) -> None:
    only = Instances((12,), correlation_ids=("IMMA.16832.S8.S8",))
    assert texts(tmp_path / "run.ncu-rep", [launch(1.0, only)], reader) == ["IMMA.16832.S8.S8 12"]


def test_launches_that_repeat_have_the_counts_of_their_own(tmp_path: Path) -> None:
    # As many bytes in each launch: from the fourth on they are known by the imprint of the third, which passes instances over.
    kernels = [launch(float(number), counted({"HMMA.16816.F32": 200 + number, "FFMA": 3})) for number in range(8)]
    expected: list[str | None] = [f"HMMA.16816.F32 {200 + number}" for number in range(8)]
    assert texts(tmp_path / "run.ncu-rep", kernels) == expected
    assert texts(tmp_path / "run.ncu-rep", [*kernels[:5], launch(9.0, None), *kernels[5:]])[5] is None


def test_instances_without_a_valid_name_are_left_out(tmp_path: Path) -> None:
    odd = Instances((5, 6, 7, Uint32(8)), correlation_ids=("HMMA.16816.F32", 77, "HMMA two words", "IMMA.8816.S8.S8"))
    assert texts(tmp_path / "run.ncu-rep", [launch(1.0, odd)]) == ["HMMA.16816.F32 5 IMMA.8816.S8.S8 8"]
    assert texts(tmp_path / "run.ncu-rep", [launch(1.0, Instances((5.0, 6.0), total=11.0))]) == [""]


def test_malformed_instances_are_not_known(tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    content = write_report([launch(1.0, counted({"HMMA.16816.F32": 4096}))])
    name = content.index(b"HMMA.16816.F32")
    path.write_bytes(content[: name - 1] + b"\x7f" + content[name:])  # the name's length goes beyond the instance
    report = open_report(path, selection=SELECTION, reader="native")
    assert report.counters[TIME].to_list() == [1.0]
    assert OPCODES not in report.texts.columns


def test_a_text_holds_what_can_be_counts() -> None:
    values = [("a", 1.0), ("b", math.nan), ("c", -1.0), ("d", 1e300), ("", 2.0), ("a", 2.0), ("e", 0.0)]
    assert instances_text(values) == "a 3 e 0"
