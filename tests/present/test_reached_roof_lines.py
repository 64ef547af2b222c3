"""The line on measured roofs in the summary, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

import ncuroof
from ncuroof.present.sentences.remarks import reached_roof_lines
from ncuroof.present.texts.run_summary import run_summary
from ncuroof.sidecars.calibration import ReachedRoof
from tests.roofline.test_calibration import H200
from tests.support import demo

REPORTS = ncuroof.read(demo.REPORT)


@pytest.mark.long
def test_the_nearest_come_first_each_at_the_launchs_clock() -> None:
    # 2·16384²·4096 FLOP in 2.94912 ms at 1.5 GHz, of 750 TFLOP/s at 1.65 GHz: 745.7 / 681.8; 2³⁰ byte in 245.824 µs of 4.4 TB/s
    line = "2 measured roofs; launches reach up to 109.4 % of BF16 tensor, 99.3 % of DRAM (roofs scaled to each launch's SM clock)"
    analysis = REPORTS.analyse([H200])
    assert list(reached_roof_lines(analysis)) == [line]
    assert run_summary(analysis).devices[-1] == line


@pytest.mark.long
def test_roofs_that_no_launch_uses_are_not_told() -> None:
    only = replace(H200, roofs=(ReachedRoof("compute", "tensor_fp8", 1.4e15, 0.03, 40, "product", 1.65e9),))
    assert list(reached_roof_lines(REPORTS.analyse([only]))) == [
        "1 measured roof; no launch comes close to any of them"
    ]


@pytest.mark.long
def test_without_a_calibration_nothing_is_said() -> None:
    assert list(reached_roof_lines(REPORTS.analyse())) == []
