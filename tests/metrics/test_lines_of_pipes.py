"""Instructions of a pipe, by the machine code, against the counter of that pipe, in our recordings and in reports by others."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ncuroof.ingest import open_report
from ncuroof.metrics import measure, selection

FOLDER = Path(__file__).parents[2] / "fixtures/h100-80gb-hbm3"
_PIPE, _CYCLES, _SMS = (
    "sm__inst_executed_pipe_{}.avg.pct_of_peak_sustained_active",
    "sm__cycles_active.avg",
    "device__attribute_multiprocessor_count",
)
_PER_CYCLE = {"alu": 2, "xu": 0.5}
"""Warp instructions that an SM issues to a pipe per cycle at most: 64 lanes and 16."""


def require_as_counted(path: Path, pipes: list[str]) -> None:
    """Require that the executions by opcode of each kernel with lines are those that the pipes counted."""
    report = open_report(path, selection=selection().and_names({_CYCLES, _SMS, *map(_PIPE.format, _PER_CYCLE)}))
    lines = measure([report]).lines
    for pipe in pipes:
        of_pipe = lines.filter(pl.col("measure") == f"{pipe}_instructions").group_by("id")
        totals = dict(of_pipe.agg((pl.col("value") / pl.col("frac")).first()).rows())
        assert totals
        for row, total in totals.items():
            counted = report.counters.row(row, named=True)
            peak = _PER_CYCLE[pipe] * counted[_CYCLES] * counted[_SMS]
            assert total == pytest.approx(counted[_PIPE.format(pipe)] / 100 * peak, rel=0.005)


@pytest.mark.parametrize(
    ("name", "pipes"),
    [
        ("divergent", ["alu"]),  # as many VIADD, which are not the ALU's, as ISETP, which are
        ("special_functions", ["alu", "xu"]),
        ("integer_chain", ["alu"]),
    ],
)
def test_instructions_by_opcode_are_those_that_the_pipe_counted_on_an_h100(name: str, pipes: list[str]) -> None:
    require_as_counted(FOLDER / f"{name}.full.ncu-repz", pipes)


@pytest.mark.parametrize(
    ("name", "pipes"),
    [
        ("profiles__profile12@3dae12a.ncu-rep", ["xu"]),  # 8.6
        ("report-s8.ncu-rep", ["alu", "xu"]),  # 8.0
        ("full_profile@4dbc67d.ncu-rep", ["alu", "xu"]),  # 8.6
        ("profiling__profiles__warpTiling.ncu-rep", ["alu"]),  # 8.9
        ("silu__triton__silu-2025-04-18-v8.ncu-rep", ["xu"]),  # 9.0
    ],
)
def test_instructions_by_opcode_are_those_that_the_pipe_counted(
    corpus: list[Path], name: str, pipes: list[str]
) -> None:
    require_as_counted(next(each for each in corpus if each.as_posix().endswith(name)), pipes)
