"""Launches that repeat are read at once, and give what reading them counter by counter gives."""

from __future__ import annotations

import math
import random
from pathlib import Path

import polars as pl
import pytest

from ncuroof.ingest import CounterSelection, open_report
from ncuroof.ingest.native import repeats as native_repeats
from ncuroof.ingest.native.columns import CounterColumns
from tests.support.report_writer import Float32, Instances, Kernel, Metric, Uint32, write_report

TIME, BYTES, WARPS, PATH = "gpu__time_duration.sum", "dram__bytes.sum", "launch__block_size", "sm__inst_executed.sum"
LISTING = "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed"


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that were read at once."""
    rows: list[int] = []
    add = CounterColumns.add_repeated

    def noted(self: CounterColumns, row: int, *others: object) -> None:
        rows.append(row)
        add(self, row, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(CounterColumns, "add_repeated", noted)
    return rows


def _counters(folder: Path, kernels: list[Kernel], selection: CounterSelection | None = None) -> pl.DataFrame:
    path = folder / "run.ncu-rep"
    path.write_bytes(write_report(kernels))
    return open_report(path, selection=selection, reader="native").counters


def _launch(number: int, name: str = "add", **others: Metric) -> Kernel:
    return Kernel(name, {TIME: 1000.0 + number, BYTES: 64.0 * number, WARPS: Uint32(128), **others})


def test_from_the_fourth_launch_of_a_kernel_on_values_are_read_at_once(tmp_path: Path, repeated: list[int]) -> None:
    counters = _counters(tmp_path, [_launch(number) for number in range(6)])
    assert repeated == [3, 4, 5]
    assert counters[TIME].to_list() == [1000, 1001, 1002, 1003, 1004, 1005]
    assert counters[BYTES].to_list() == [0, 64, 128, 192, 256, 320]
    assert counters[WARPS].to_list() == [128] * 6


def test_kernels_that_store_the_same_counters_repeat_each_other(tmp_path: Path, repeated: list[int]) -> None:
    turns = [_launch(number, f"kernel_{number % 2}", **{PATH: float(number)}) for number in range(6)]
    counters = _counters(tmp_path, turns)
    assert repeated == [3, 4, 5]
    assert counters[PATH].to_list() == list(range(6))


def test_alternating_kernels_are_told_apart(tmp_path: Path, repeated: list[int]) -> None:
    """The odd launches store the path where the even ones store the bytes: as long, but not the same."""
    turns = [
        Kernel("b", {TIME: 1.0, PATH: float(number), WARPS: Uint32(128)}) if number % 2 else _launch(number)
        for number in range(10)
    ]
    counters = _counters(tmp_path, turns)
    assert repeated == [6, 7, 8, 9]  # the fourth of each, and those behind it
    assert counters[BYTES].to_list() == [0, None, 128, None, 256, None, 384, None, 512, None]
    assert counters[PATH].to_list() == [None, 1, None, 3, None, 5, None, 7, None, 9]


def test_the_values_of_instances_may_be_anything(tmp_path: Path, repeated: list[int]) -> None:
    """They are passed over: what is asked for stands before them."""
    instances = [Instances([float(lane * number) for lane in range(20)], total=float(number)) for number in range(6)]
    counters = _counters(tmp_path, [_launch(number, **{PATH: each}) for number, each in enumerate(instances)])
    assert repeated == [3, 4, 5]
    assert counters[PATH].to_list() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("other", "value"),
    [(Float32(2.5), 2.5), (Uint32(77), 77.0), (math.nan, None), ("text", None), (1e300, None)],
    ids=["a single-precision number", "an integer", "NaN", "a text", "what no counter can be"],
)
def test_a_value_of_a_different_kind_is_read_as_it_is(tmp_path: Path, other: Metric, value: float | None) -> None:
    launches = [_launch(number) for number in range(4)] + [_launch(4, **{BYTES: other}), _launch(5)]
    counters = _counters(tmp_path, launches)
    assert counters[BYTES].to_list() == [0, 64, 128, 192, value, 320]
    assert counters[TIME].to_list() == [1000, 1001, 1002, 1003, 1004, 1005]


def test_a_value_that_is_not_a_double_may_change(tmp_path: Path, repeated: list[int]) -> None:
    counters = _counters(tmp_path, [_launch(number, **{WARPS: Uint32(32 + number)}) for number in range(6)])
    assert repeated == [3, 4, 5]
    assert counters[WARPS].to_list() == [32, 33, 34, 35, 36, 37]


def test_a_different_counter_in_the_same_place_is_not_a_repeat(tmp_path: Path, repeated: list[int]) -> None:
    """The fifth launch stores the instructions where the others store the bytes: as long, but not the same."""
    launches = [_launch(number) for number in range(4)]
    launches.append(Kernel("add", {TIME: 1004.0, PATH: 7.0, WARPS: Uint32(128)}))
    counters = _counters(tmp_path, launches)
    assert repeated == [3]
    assert counters[BYTES].to_list() == [0, 64, 128, 192, None]
    assert counters[PATH].to_list() == [None] * 4 + [7]


def test_a_list_of_different_counters_is_not_a_repeat(tmp_path: Path, repeated: list[int]) -> None:
    """What a breakdown lists is read besides; one of the same length names another counter."""
    lists = CounterSelection(names=frozenset({TIME}), prefixes=(), lists=frozenset({LISTING}), texts=frozenset())
    first, second = (f"sm__inst_executed_pipe_{pipe}.sum" for pipe in ("alu", "fma"))
    launches = [_launch(number, **{LISTING: first, first: 1.0, second: 2.0}) for number in range(4)]
    launches.append(_launch(4, **{LISTING: second, first: 1.0, second: 2.0}))
    counters = _counters(tmp_path, launches, lists)
    assert repeated == [3]
    assert counters[first].to_list() == [1, 1, 1, 1, None]
    assert counters[second].to_list() == [None] * 4 + [2]


def test_no_difference_shows_between_the_two_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(20261120)
    launches = [
        _launch(
            chance.randrange(1 << 20),
            f"kernel_{chance.randrange(3)}",
            **{PATH: chance.choice([chance.random(), Uint32(chance.randrange(1 << 9)), "text", Float32(0.5)])},
        )
        for _ in range(300)
    ]
    at_once = _counters(tmp_path, launches)
    monkeypatch.setattr(native_repeats, "_MAX_IMPRINTS", 0)
    assert at_once.equals(_counters(tmp_path, launches))
