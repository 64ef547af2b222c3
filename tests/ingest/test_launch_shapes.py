from __future__ import annotations

from pathlib import Path

import pytest

import ncuroof
from ncuroof.ingest import open_report
from ncuroof.ingest.raw_report import CounterSelection
from tests.support.report_writer import Kernel, write_report

SIZES_AND_SHAPES = CounterSelection(
    frozenset(f"launch__{what}_{part}" for what in ("grid", "block") for part in ("size", "dim_x", "dim_y", "dim_z"))
)
DURATION = {"gpu__time_duration.sum": 1.0}


def test_grid_and_block_come_from_the_result_if_no_counter_has_them(tmp_path: Path) -> None:
    path = tmp_path / "old.ncu-rep"
    kernels = [Kernel("a", DURATION, grid=(7, 2, 1), block=(32, 4, 1)), Kernel("b", DURATION, grid=(9, 1, 3))]
    path.write_bytes(write_report(kernels, kernels_per_block=2))
    first, second = ncuroof.read(path).analyse().to_dict()["kernels"]
    assert (first["grid"], first["block"]) == ([7, 2, 1], [32, 4, 1])
    assert second["grid"] == [9, 1, 3]


def test_a_grid_that_is_not_its_counted_size_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "oldest.ncu-rep"
    sizes = {"launch__grid_size": 2.0, "launch__block_size": 128.0}
    path.write_bytes(write_report([Kernel("a", DURATION | sizes, grid=(256, 1, 1), block=(128, 1, 1))]))
    (kernel,) = ncuroof.read(path).analyse().to_dict()["kernels"]
    assert (kernel["grid"], kernel["block"]) == (None, [128, 1, 1])


def test_a_report_that_lost_one_of_its_sizes_keeps_the_others(tmp_path: Path) -> None:
    # found by fuzzing: the name of one size was damaged, the others were read twice
    path = tmp_path / "lost.ncu-rep"
    path.write_bytes(
        write_report([Kernel("a", DURATION | {"launch__grid_dim_y": 2.0}, grid=(7, 2, 1), block=(32, 4, 1))])
    )
    report = open_report(path, reader="native")
    assert report.counters.select("launch__grid_dim_x", "launch__grid_dim_y").row(0) == (7, 2)


def test_ranges_have_no_shape(tmp_path: Path) -> None:
    path = tmp_path / "mixed.ncu-rep"
    path.write_bytes(write_report([Kernel("a", DURATION, grid=(7, 2, 1)), Kernel("r", DURATION, kind="range")]))
    assert [kernel["grid"] for kernel in ncuroof.read(path).analyse().to_dict()["kernels"]] == [None, None]


@pytest.mark.corpus
def test_shapes_of_old_reports_multiply_to_their_counted_sizes(corpus: list[Path]) -> None:
    n_compared = 0
    for path in corpus:
        report = open_report(path, selection=SIZES_AND_SHAPES)
        if "launch__grid_size" not in report.counters.columns:
            continue
        for row in report.counters.select("^launch__(grid|block)_(size|dim_.)$").iter_rows(named=True):
            for what in ("grid", "block"):
                if row[f"launch__{what}_dim_x"] is None:
                    continue  # profiling failed, or a report of 2020, whose grids are not in blocks
                x, y, z = (row[f"launch__{what}_dim_{axis}"] for axis in "xyz")
                assert x * y * z == row[f"launch__{what}_size"], path
                n_compared += 1
    assert n_compared > 1_000
