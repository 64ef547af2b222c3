"""A run to compare, from reports: what was counted of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import ncuroof
from ncuroof.comparison import compare, judge, parse_gate, run_obstacle, total_ns
from ncuroof.reading import Reports
from ncuroof.sidecars.counts import Counts, KernelCount
from tests.support.raw import raw_report

FIXTURES = Path(__file__).parents[2] / "fixtures" / "h100-80gb-hbm3"


@pytest.mark.long
def test_a_counted_run_tells_what_was_not_recorded() -> None:
    reports = ncuroof.read(FIXTURES / "train_transformer.roofline.ncu-repz")
    side = reports.analyse().run()
    # every kernel here was counted: what is in no group was not recorded
    counts = json.loads((FIXTURES / "train_transformer.roofline.counts.json").read_text(encoding="utf-8"))
    assert side.is_counted
    assert side.not_recorded_ns == pytest.approx(counts["duration_ns"] - total_ns(side))
    alone = replace(reports, counts=()).analyse().run()
    assert (alone.is_counted, alone.not_recorded_ns) == (False, None)


@pytest.mark.long
def test_counts_of_a_different_program_are_ignored() -> None:
    reports = ncuroof.read(FIXTURES / "train_transformer.roofline.ncu-repz")
    other = Counts((KernelCount("another_kernel", (1, 1, 1), (64, 1, 1), 5, 5e6),))
    mistaken = replace(reports, counts=(other,)).analyse().run()
    assert (mistaken.is_counted, mistaken.not_recorded_ns) == (False, None)
    alone = replace(reports, counts=()).analyse().run()
    (found,) = judge([parse_gate("time:+5%")], compare(alone, mistaken))
    assert found.has_passed
    # nor do two of them say that kernels came or left
    longer = replace(reports, counts=(Counts((KernelCount("another_kernel", (1, 1, 1), (64, 1, 1), 5, 5e9),)),))
    assert run_obstacle(compare(mistaken, longer.analyse().run())) is None


@pytest.mark.long
def test_a_run_tells_the_clock_of_the_launch_in_the_middle() -> None:
    clocks = [
        {"gpu__time_duration.sum": 1e6, "smsp__cycles_elapsed.avg.per_second": hz} for hz in (1.9e9, 1.5e9, 1.4e9)
    ]
    assert Reports(tuple(map(raw_report, clocks))).analyse().run().setup.sm_clock_hz == 1.5e9
    assert Reports((raw_report({"gpu__time_duration.sum": 1e6}),)).analyse().run().setup.sm_clock_hz is None


@pytest.mark.long
def test_a_run_tells_which_flops_were_counted() -> None:
    def instructions(letter: str) -> dict[str, float]:
        return {f"smsp__sass_thread_inst_executed_op_{letter}{op}_pred_on.sum": 0.0 for op in ("add", "mul", "fma")}

    time = {"gpu__time_duration.sum": 1e6}
    single, both = time | instructions("f"), time | instructions("f") | instructions("h")
    precisions = [
        Reports(tuple(map(raw_report, kernels))).analyse().run().setup.precisions
        for kernels in ([single], [both, both], [both, single], [time])
    ]
    assert precisions == [("fp32",), ("fp32 fp16",), ("fp32", "fp32 fp16"), ()]
