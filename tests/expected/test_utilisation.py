"""Model FLOP utilisation: the shares by hand, and that they add up."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.expected.schemas import CALLS
from ncuroof.expected.utilisation import model_utilisation
from ncuroof.tables import KERNELS, conform


def launches(*rows: tuple[float | None, str, float | None]) -> pl.DataFrame:
    """Return launches as (duration in ns, verdict, tail)."""
    table = pl.DataFrame(
        [
            {"id": number, "duration_ns": ns, "verdict": verdict, "occupancy.tail_frac": tail, "failed": ns is None}
            for number, (ns, verdict, tail) in enumerate(rows)
        ],
        schema_overrides={"occupancy.tail_frac": pl.Float64, "duration_ns": pl.Float64},
    )
    absent = [pl.lit(None, dtype).alias(name) for name, dtype in KERNELS.items() if name not in table.columns]
    whole = table.with_columns(absent)
    return conform(whole, KERNELS).hstack(whole.select("verdict", "occupancy.tail_frac", pl.lit(1.0).alias("weight")))


def calls(*rows: tuple[list[int], float, float | None]) -> pl.DataFrame:
    """Return products as (launches, needed flop, counted flop)."""
    known = [
        {"call": number, "ids": ids, "needed_flop": needed, "counted_flop": counted, "asked_precision": "tensor_bf16"}
        for number, (ids, needed, counted) in enumerate(rows)
    ]
    return pl.DataFrame([dict.fromkeys(CALLS) | row for row in known], schema=CALLS)


def test_the_parts_of_the_peak_add_up() -> None:
    # peak 1000 flop/ns. Product: 400 ns, needed 200 000 flop = 200 ns, counted 250 000 = 50 ns more, a tenth tail = 40 ns;
    # the rest, 110 ns, is low efficiency. Others: 300 memory, 100 overhead, 200 latency. 1000 ns in all.
    kernels = launches(
        (400, "compute", 0.1),
        (300, "memory", None),
        (100, "overhead", None),
        (200, "latency", None),
        (None, "unknown", None),
    )
    found = model_utilisation(calls(([0], 2e5, 2.5e5)), kernels, {"tensor_bf16": 1e12})
    assert found is not None
    shares = (found.mfu_frac, found.extra_work_frac, found.tail_frac, found.low_efficiency_frac)
    assert shares == pytest.approx((0.2, 0.05, 0.04, 0.11))
    others = (found.memory_bound_frac, found.short_frac, found.other_frac)
    assert others == pytest.approx((0.3, 0.1, 0.2))
    assert sum(shares) + sum(others) == pytest.approx(1)
    assert (found.precision, found.duration_ns) == ("tensor_bf16", 1000)


def test_over_wall_time_idle_time_counts() -> None:
    # 200 000 flop, a fifth of what the peak of 1000 flop/ns does in the 1000 ns of GPU time, in 1250 ns of wall time: 16 %
    kernels, known = launches((400, "compute", None), (600, "memory", None)), calls(([0], 2e5, 2e5))
    over_both, of_gpu = (model_utilisation(known, kernels, {"tensor_bf16": 1e12}, wall) for wall in (1250.0, None))
    assert over_both is not None
    assert of_gpu is not None
    assert (over_both.mfu_frac, over_both.wall_mfu_frac) == pytest.approx((0.2, 0.16))
    assert of_gpu.wall_mfu_frac is None


def test_no_part_is_larger_than_what_is_left() -> None:
    # counted work that the time cannot hold, as an unlucky clock makes it seem, leaves nothing for the others
    found = model_utilisation(calls(([0], 5e5, 9e5)), launches((400, "compute", 0.9)), {"tensor_bf16": 1e12})
    assert found is not None
    assert found.mfu_frac == 1
    assert (found.extra_work_frac, found.tail_frac, found.low_efficiency_frac, found.other_frac) == (0, 0, 0, 0)


def test_without_products_or_a_peak_there_is_no_utilisation() -> None:
    kernels = launches((400, "compute", 0.1))
    assert model_utilisation(calls(([0], 0.0, None)), kernels, {"tensor_bf16": 1e12}) is None
    assert model_utilisation(calls(([0], 1e5, None)), kernels, {}) is None
    assert model_utilisation(calls(), kernels, {"tensor_bf16": 1e12}) is None


def test_launches_count_as_often_as_they_represent() -> None:
    # The product was launched 3 times in 900 ns (recorded once, 400 ns), the other kernel once: 900 + 100 ns in all.
    kernels = launches((400, "compute", None), (100, "memory", None)).with_columns(weight=pl.Series([900 / 400, 1.0]))
    known = calls(([0], 2e5, 2e5)).with_columns(pl.lit(3.0).alias("work_weight"))
    found = model_utilisation(known, kernels, {"tensor_bf16": 1e12})
    assert found is not None
    assert (found.needed_flop, found.duration_ns) == (6e5, pytest.approx(1000))
    assert (found.mfu_frac, found.memory_bound_frac) == (pytest.approx(0.6), pytest.approx(0.1))
    assert found.extrapolated_frac == 0


def test_utilisation_says_how_much_work_is_estimated_from_time() -> None:
    # 2.25 times 2e5 are those of other sizes, 1.5e5 are as recorded: 4.5 of 6
    kernels = launches((400, "compute", None), (300, "compute", None))
    weighed = pl.Series([2.25, 1.0]), pl.Series([True, False])
    known = calls(([0], 2e5, 2e5), ([1], 1.5e5, 1.5e5)).with_columns(work_weight=weighed[0], is_uneven=weighed[1])
    found = model_utilisation(known, kernels, {"tensor_bf16": 1e12})
    assert found is not None
    assert (found.needed_flop, found.extrapolated_frac) == (6e5, pytest.approx(0.75))


def test_products_add_up_and_what_is_computed_again_is_extra() -> None:
    # two products of 400 ns, each needed for 200 ns of the peak and counted at 250: 400 and 100 of 800 ns
    kernels, known = (
        launches((400, "compute", None), (400, "compute", None)),
        calls(([0], 2e5, 2.5e5), ([1], 2e5, 2.5e5)),
    )
    found = model_utilisation(known, kernels, {"tensor_bf16": 1e12})
    assert found is not None
    assert (found.mfu_frac, found.extra_work_frac) == pytest.approx((0.5, 0.125))
    # the second does once more what was done: 200, and 300 ns that none needed
    again = known.with_columns(pl.Series("is_recomputed", [False, True]))
    found = model_utilisation(again, kernels, {"tensor_bf16": 1e12})
    assert found is not None
    assert (found.needed_flop, found.mfu_frac, found.extra_work_frac) == pytest.approx((2e5, 0.25, 0.375))
