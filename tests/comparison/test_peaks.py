"""Peaks of GPUs: what they are by hand, and which kernels they explain."""

from __future__ import annotations

import pytest

from ncuroof.comparison import QuantityChange, compare
from ncuroof.present.sentences.match_change import change_sentence
from tests.comparison.runs import launch, run

DRAM, L2, FLOP = "bandwidth.dram.peak_bytes_per_s", "bandwidth.l2.peak_bytes_per_s", "work.peak_flop_per_s"


def test_a_peak_is_the_rate_over_its_share() -> None:
    # 2 TB/s are 80 % of 2.5; 3 of 10 TB/s; 1e11 FLOP in 200 µs are 5e14 per second, half of 1e15. The FP32 of an epilogue is not
    # what the kernel mostly does.
    reached = {
        "bandwidth.dram.bytes_per_s": 2e12, "bandwidth.dram.frac": 0.8, "bandwidth.l2.bytes_per_s": 3e12, "bandwidth.l2.frac": 0.3,
        "work.tensor_bf16.flop": 1e11, "work.tensor_bf16.frac": 0.5, "work.fp32.frac": 0.1, "dominant_precision": "tensor_bf16",
    }  # fmt: skip
    groups = run(launch("a", 200.0, **reached)).groups
    assert groups.select(DRAM, L2, FLOP).row(0) == pytest.approx((2.5e12, 1e13, 1e15))


def test_the_peak_is_unknown_if_nothing_moved() -> None:
    nothing = {
        "bandwidth.dram.bytes_per_s": 0.0, "bandwidth.dram.frac": 0.0, "bandwidth.l2.bytes_per_s": None, "bandwidth.l2.frac": None,
        "work.fp32.flop": 0.0, "work.fp32.frac": 0.0, "dominant_precision": "fp32",
    }  # fmt: skip
    assert run(launch("a", **nothing)).groups.select(DRAM, L2, FLOP).row(0) == (None, None, None)
    assert run(launch("a")).groups.select(DRAM, L2, FLOP).row(0) == (None, None, None)  # not collected


def side(us: float, peak: float, busy: float, limiter: str = "dram", **others: float) -> dict[str, object]:
    return launch(
        "a", us, limiter=limiter,
        **{"bandwidth.dram.bytes_per_s": busy * peak, "bandwidth.dram.frac": busy, "utilisation.dram": busy, **others},
    )  # fmt: skip


def explaining(before: dict[str, object], after: dict[str, object]) -> dict[str, QuantityChange]:
    (delta,) = compare(run(before), run(after)).deltas
    return {change.quantity: change for change in delta.changes if change.explains}


# H100 and H200, a softmax's backward pass: 131.5 µs at 87.8 % of 3.35 TB/s, 96.2 µs at 84.2 % of 4.81 TB/s
H100, H200 = side(131.5, 3.35e12, 0.878), side(96.2, 4.81e12, 0.842)


def test_a_higher_peak_explains_what_is_bound_by_it() -> None:
    # busy for 115.5 µs; at 4.81 TB/s for 30.4 % less, 35.0 µs, but no more than 115.5 - 81.0 = 34.5 µs: of 35.3 µs 97.6 %
    (found,) = explaining(H100, H200).values()
    assert found.quantity == DRAM
    assert found.accounts_for_frac == pytest.approx(0.976, abs=0.002)
    assert list(explaining(H200, H100)) == [DRAM]  # on a GPU of less it is why it is slower


def test_the_peak_of_a_different_roof_explains_nothing() -> None:
    other = side(131.5, 3.35e12, 0.878, limiter="l2")
    assert DRAM not in explaining(other, H200)
    assert DRAM not in explaining(H200, other)
    # faster where the peak is lower
    assert DRAM not in explaining(side(131.5, 4.81e12, 0.878), side(96.2, 3.35e12, 0.842))
    # less than 5 % of peak is that of a clock
    assert DRAM not in explaining(H100, side(96.2, 3.5e12, 0.842))
    assert DRAM in explaining(H100, side(120.0, 3.55e12, 0.878))


@pytest.mark.parametrize(
    ("limiter", "name", "unit", "peak"),
    [
        ("l2", "bandwidth.l2", "utilisation.l2", L2),
        ("tensor", "work.tensor_bf16", "utilisation.tensor", FLOP),
        ("fp32", "work.fp32", "utilisation.fp32", FLOP),
        ("fp64", "work.fp64", "utilisation.fp64", FLOP),
        ("fp16", "work.fp16", "utilisation.fp16", FLOP),
    ],
)
def test_each_roof_explains_its_own(limiter: str, name: str, unit: str, peak: str) -> None:
    def of(us: float, most: float) -> dict[str, object]:
        precision = name.removeprefix("work.")
        reached = {f"{name}.bytes_per_s": 0.9 * most} if peak == L2 else {f"{name}.flop": 0.9 * most * 1e-6 * us}
        return launch(
            "a", us, limiter=limiter, verdict="compute", dominant_precision=precision,
            **{"work.fp32.flop": 0.0, f"{name}.frac": 0.9, unit: 0.9, "utilisation.dram": 0.1, **reached},
        )  # fmt: skip

    # as many bytes or FLOPs at twice the peak take half the time
    assert peak in explaining(of(200.0, 1e13), of(100.0, 2e13))
    assert peak not in explaining(of(200.0, 1e13) | {"limiter": "long_scoreboard"}, of(100.0, 2e13))


def test_other_units_and_waits_are_consequences_of_the_peak() -> None:
    # L2 was busy for 108 and 85.5 µs, the softmax of above
    before, after = H100 | {"utilisation.l2": 108 / 131.5}, H200 | {"utilisation.l2": 85.5 / 96.2}
    assert list(explaining(before, after)) == [DRAM]
    without = {"limiter": "long_scoreboard"}
    assert "utilisation.l2" in explaining(before | without, after | without)


def test_the_peak_is_shown_across_gpus() -> None:
    before = H100 | {"utilisation.issue": 0.159, "traffic_bytes.dram": 4.0e8}
    after = H200 | {"utilisation.issue": 0.218, "traffic_bytes.dram": 3.0e8}
    (delta,) = compare(run(before), run(after | {"traffic_bytes.dram": 4.0e8})).deltas
    sentence = "DRAM peak 3.35 TB/s → 4.81 TB/s"
    assert change_sentence(delta, is_time_comparable=False) == sentence
    # amounts are compared all the same; what is over time, such as the use of issue slots, only follows
    (delta,) = compare(run(before), run(after | {"work.fp32.flop": 2e9})).deltas
    told = change_sentence(delta, is_time_comparable=False)
    assert told.endswith("DRAM peak 3.35 TB/s → 4.81 TB/s, DRAM bytes −25.0 %, FLOPs +100 %")


def test_a_part_is_of_the_difference_where_times_are_not_compared() -> None:
    # busy for 131.5 x 0.4 = 52.6 µs: at 4.81 TB/s 16.0 µs less, of 35.3 µs 45 %; what L2 does less is not more of it
    (delta,) = compare(run(side(131.5, 3.35e12, 0.4)), run(side(96.2, 4.81e12, 0.35))).deltas
    assert change_sentence(delta, is_time_comparable=False) == (
        "DRAM peak 3.35 TB/s → 4.81 TB/s (at most 45.2 % of the difference in time)"
    )
    assert "(at most 45.2 % of that)" in change_sentence(delta)
