"""Launches of one short name are told apart by their full names, then by their blocks, then by their grids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import ncuroof
from ncuroof.formatting import compact_extent
from ncuroof.present.sentences.report_names import distinguishing_words
from ncuroof.present.texts.markdown import to_markdown
from ncuroof.present.texts.run_summary import run_summary
from ncuroof.present.texts.terminal import TerminalOptions, to_text
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report

METRICS = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0}
Shape = tuple[int, int, int] | None


def launch(
    block: Shape = (32, 1, 1), grid: Shape = (1, 1, 1), *, name: str = "copy(int)", short: str = "copy", device: int = 0
) -> dict[str, object]:
    return {"name": name, "short_name": short, "device": device, "block": block, "grid": grid}


@pytest.mark.parametrize(
    ("launches", "words"),
    [
        ([launch((32, 32, 1)), launch((32, 16, 1))], [("block 32×32",), ("block 32×16",)]),
        ([launch(grid=(4, 64, 1)), launch(grid=(12, 1, 1))], [("grid 4×64",), ("grid 12",)]),
        # the first differs in its block, the others then still in their grids
        (
            [launch((64, 1, 1)), launch(), launch(grid=(1, 1, 2))],
            [("block 64",), ("block 32", "grid 1"), ("block 32", "grid 1×1×2")],
        ),
        # with another block each, the grids, which differ, too, need not be told
        ([launch((64, 1, 1), (8, 1, 1)), launch((32, 1, 1), (16, 1, 1))], [("block 64",), ("block 32",)]),
        ([launch(), launch()], [(), ()]),
        ([launch(short="a"), launch((64, 1, 1), short="b")], [(), ()]),
        ([launch(device=0), launch((64, 1, 1), device=1)], [(), ()]),  # the GPU tells
        ([launch(None, None), launch()], [(), ()]),  # of a failed launch, no shape is known
        ([], []),
    ],
)
def test_words_of_shapes(launches: list[dict[str, object]], words: list[tuple[str, ...]]) -> None:
    assert distinguishing_words(launches) == words


def test_names_tell_before_shapes() -> None:
    narrow, wide = "copy<Narrow>(int)", "copy<Wide>(int)"
    assert distinguishing_words([launch(name=narrow), launch((64, 1, 1), name=wide)]) == [("Narrow",), ("Wide",)]
    assert distinguishing_words([launch(name=narrow), launch(name=wide), launch((64, 1, 1), name=wide)]) == [
        ("Narrow",),
        ("Wide", "block 32"),
        ("Wide", "block 64"),
    ]


def test_names_without_a_word_that_differs_are_told_by_shapes() -> None:
    pointer, reference = "copy<float *>(int)", "copy<float &>(int)"
    assert distinguishing_words([launch(name=pointer), launch((64, 1, 1), name=reference)]) == [
        ("block 32",),
        ("block 64",),
    ]


@pytest.mark.parametrize(
    ("sizes", "text"),
    [((32, 16, 1), "32×16"), ((1, 64, 1), "1×64"), ((1, 1, 1), "1"), ((2, 1, 3), "2×1×3"), ((), ""), (None, "")],
)
def test_sizes_in_names_are_without_ones_at_their_end(sizes: Sequence[int] | None, text: str) -> None:
    assert compact_extent(sizes) == text


def test_rows_of_one_kernel_show_their_blocks_within_80_columns(tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    name = "transposeMatrixOccupancyOptimized"
    kernels = [
        Kernel(name, METRICS, demangled=f"{name}(float *)", grid=(64, 1024 // rows, 1), block=(32, rows, 1))
        for rows in (32, 16)
    ]
    path.write_bytes(write_report(kernels * 2))
    analysis = ncuroof.read(path).analyse()
    assert {line.differs_in for line in run_summary(analysis).kernels} == {("block 32×32",), ("block 32×16",)}
    rows = [line for line in to_text(analysis, TerminalOptions(is_verbose=True)).splitlines() if "transpos" in line]
    # 28 cells for the name, of which " · block 32×32 ×2" takes 17
    assert sorted(row[5:33].rstrip() for row in rows) == [
        "transposeM… · block 32×16 ×2",
        "transposeM… · block 32×32 ×2",
    ]
    assert max(map(len, rows)) <= 80
    assert f"| {name} · block 32×16 | 2, " in to_markdown(analysis)
