"""What was counted and not recorded stands between the recorded launches, by hand-made sequences of names."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from ncuroof.metrics.catalogue import load_catalogue
from ncuroof.metrics.measurements import measure
from ncuroof.metrics.neighbours import embedding_sort, loss_parts, with_unrecorded
from ncuroof.sidecars.counts import Counts, count_launches
from ncuroof.sidecars.traces.timeline import Activity, Timeline
from tests.metrics.test_embedding_gradient import OFFSETS, PARTIALS, ROWS, SCAN, SORT
from tests.metrics.test_loss_parts import BACKWARD_ONCE, CAST, CAST_BACK, FILL, FORWARD_ONCE, LOSS, LOSS_BACK, PRODUCT
from tests.support.raw import raw_report

MEMSET = "Memset (Device)"
STEP = [PRODUCT, CAST, FORWARD_ONCE, LOSS, FILL, LOSS_BACK, BACKWARD_ONCE, CAST_BACK, PRODUCT]


def counted(*names: str) -> Counts:
    """Return the counts of launches one after another in one stream, of one shape and 10 µs each."""
    activities = [
        Activity(name, 2e4 * place, 1e4, 0, place, None if is_copy else ((8, 1, 1), (64, 1, 1)), is_copy, stream=7)
        for place, name in enumerate(names)
        for is_copy in (name == MEMSET,)
    ]
    return count_launches(Timeline(activities, ()), source="torch.profiler")


def recorded(*names: str | None, streams: Sequence[int] = ()) -> pl.DataFrame:
    """Return launches of a report, all of the same shape, in one stream where nothing else is said."""
    ids = pl.Series("id", range(len(names)), pl.UInt32)
    queue = {"process_id": 1, "context": 1, "stream": list(streams) or [7] * len(names)}
    shape = pl.lit([8, 1, 1]).alias("grid"), pl.lit([64, 1, 1]).alias("block")
    kernels = pl.DataFrame({"id": ids, "name": list(names)} | queue, schema_overrides={"name": pl.String})
    return kernels.with_columns(*shape, source=pl.lit(0, pl.UInt32), duration_ns=pl.lit(1e5))


def names_of(kernels: pl.DataFrame, counts: Counts | None) -> list[str | None]:
    return with_unrecorded(kernels, {0: counts})["name"].to_list()


@pytest.mark.parametrize(
    ("names", "run", "expected"),
    [
        ("ad", "abcdabcd", "abcd"),  # behind a, and the same two before d
        ("a", "abc", "abc"),
        ("c", "abc", "abc"),
        ("aa", "abab", "abab"),
        ("ad", "abadad", "ad"),  # b ran behind one a of three
        ("ad", "abdabdad", "abd"),  # behind two of three
        ("ad", "abad", "ad"),  # behind one of two: not most
        ("ad", "ab|cd", "abcd"),  # a memset runs between b and c: each is known from one side
        ("ad", "a|b|d", "ad"),  # nothing ran right beside b
        ("a", "abbb", "ab"),  # a kernel that follows itself is put there once
        ("abc", "acab", "abc"),  # all were recorded
    ],
)
def test_what_was_not_recorded_is_put_beside_what_it_ran_beside(names: str, run: str, expected: str) -> None:
    counts = counted(*(MEMSET if name == "|" else name for name in run))
    assert names_of(recorded(*names), counts) == list(expected)


def test_what_is_added_has_a_name_a_shape_a_time_and_a_queue_and_no_id() -> None:
    kernels = recorded("a", "c", streams=[7, 8]).with_columns(some=pl.lit(1.0))
    launches = with_unrecorded(kernels, {0: counted("a", "b")})
    assert launches["is_recorded"].to_list() == [True, False, True]
    assert launches.filter("is_recorded").drop("is_recorded").equals(kernels.select(launches.columns[:-1]))
    (added,) = launches.filter(~pl.col("is_recorded")).to_dicts()
    assert added == {"id": None, "name": "b", "process_id": 1, "context": 1, "stream": 7, "grid": [8, 1, 1]} | {
        "block": [64, 1, 1], "source": 0, "duration_ns": 1e4, "some": None, "is_recorded": False,
    }  # fmt: skip


def test_nothing_is_put_where_the_counts_are_of_another_report_or_have_no_order() -> None:
    assert names_of(recorded("a", "d"), None) == ["a", "d"]
    assert names_of(recorded("a", None), counted("x", "y")) == ["a", None]
    launches = with_unrecorded(recorded("a", "d"), {1: counted("a", "b")})
    assert launches["name"].to_list() == ["a", "d"]


def test_a_report_with_counts_is_measured_with_what_it_lacks() -> None:
    launch = {
        f"launch__{what}_dim_{axis}": size
        for what, x in (("grid", 8.0), ("block", 64.0))
        for axis, size in zip("xyz", (x, 1.0, 1.0), strict=True)
    }
    names = [FORWARD_ONCE, FILL, BACKWARD_ONCE]
    raw = raw_report(*[launch | {"gpu__time_duration.sum": 1e5}] * 3, names=names)
    shares = [
        measure([raw], counts=[counts]).kernels["launch.fused_loss_frac"].to_list()
        for counts in (None, counted(FORWARD_ONCE, LOSS, FILL, LOSS_BACK, BACKWARD_ONCE))
    ]
    assert shares == [[None] * 3, [1 / 2, 0, pytest.approx(1 / 3)]]


def test_a_cross_entropy_is_one_although_its_loss_was_not_recorded() -> None:
    """`ncuroof profile --cover 95%` left out the loss and its gradient, each 1 % of the run; the rest is casts and fills."""
    catalogue = load_catalogue()
    launches = with_unrecorded(recorded(*(name for name in STEP if name not in (LOSS, LOSS_BACK))), {0: counted(*STEP)})
    shares = loss_parts(launches, catalogue.neighbours, catalogue.cross_entropy).filter(launches["is_recorded"])
    # as with all of it recorded (test_loss_parts.py), the log-softmax read once: half of one of two tensors, of three behind
    assert shares.to_list() == [None, 0, pytest.approx(1 / 4), 0, pytest.approx(1 / 6), 0, None]


def test_a_sort_is_of_an_embedding_although_its_counting_of_indices_was_not_recorded() -> None:
    run = [PRODUCT, SORT, FILL, PARTIALS, SCAN, OFFSETS, ROWS, PRODUCT]
    launches = with_unrecorded(recorded(PRODUCT, SORT, FILL), {0: counted(*run)})
    parts = embedding_sort(launches, load_catalogue().embedding_gradient).filter(launches["is_recorded"])
    assert parts.to_list() == [0, 1, 0]
