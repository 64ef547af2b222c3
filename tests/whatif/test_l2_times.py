"""What L2 needs on another GPU or at another clock: hypotheses that the range holds, worked by hand."""

from __future__ import annotations

import pytest

from ncuroof.roofline import profile_by_name
from ncuroof.whatif import Target, project
from tests.whatif.launches import launch, table

H100 = {0: profile_by_name("h100-sxm")}  # 3.35 TB/s, 5120 bytes of L2 per clock, 132 SMs, 1.98 GHz
H200 = Target(profile_by_name("h200-sxm"))  # 4.8 TB/s, 6016 bytes of L2 per clock, otherwise as the H100
# H100 to B200: DRAM 3.35 / 7.7 of the time; its L2, whose bandwidth no document states, is taken to grow with SMs and clock
B200 = Target(profile_by_name("b200"))
DRAM, SMS = 3.35 / 7.7, 132 * 1.98 / (148 * 1.965)


def only(row, target, profiles=H100):
    return project(table(row), profiles, [target]).row(0, named=True)


def test_l2_stages_without_a_counter_affect_only_the_range() -> None:
    copy = launch(dram=0.9, sm=0.1, l2=0.5) | {"busy.l2_whole": 8e4, "reached_by_whole_l2_frac": 0.9}
    found = only(copy, H200)
    # DRAM 90 µs * 3.35 / 4.8 = 62.81; L2 as a whole 80 * 5120 / 6016 = 68.09, and 10 µs of waiting
    assert (found["limiter"], found["duration_ns"]) == ("dram", pytest.approx(1e5 * 3.35 / 4.8))
    assert (found["least_ns"], found["most_ns"]) == pytest.approx((1e5 * 3.35 / 4.8, 8e4 * 5120 / 6016 + 1e4))
    # Busier than DRAM and the limit, it makes the range shorter than expected: from the H200 to the H100 DRAM 60 µs * 4.8 / 3.35 =
    # 85.97 at 60 %, L2 as a whole 95 * 6016 / 5120 = 111.6 at 95 %.
    lookups = launch(dram=0.6, sm=0.1, l2=0.5) | {"busy.l2_whole": 9.5e4, "reached_by_whole_l2_frac": 0.95}
    found = only(lookups, Target(H100[0]), {0: H200.profile})
    assert found["duration_ns"] == found["most_ns"] == pytest.approx(1e5 * 4.8 / 3.35)
    assert found["least_ns"] == pytest.approx(9.5e4 * 6016 / 5120 + 5e3)
    # at home it takes what it took
    same = only(lookups, Target())
    assert [same[key] for key in ("duration_ns", "least_ns", "most_ns")] == pytest.approx([1e5] * 3)


def test_an_assumed_l2_as_a_whole_is_as_fast_as_the_dram_that_it_feeds() -> None:
    known = {"busy.l2_as_dram": 9e4, "busy.l2_whole": 8.5e4, "reached_by_whole_l2_frac": 0.9}
    # By SMs and clock it would need 76.4 µs there; DRAM, whose bytes it passes on, needs 39.2, and 10 µs of waiting become 8.98.
    found = only(launch(dram=0.9, sm=0.1, l2=0.5) | known, B200)
    assert found["most_ns"] == pytest.approx(9e4 * DRAM + 1e4 * 132 / 148 * 1.98 / 1.965, rel=1e-6)
    # Where it was the limit, that may be no bytes: 92 µs become 82.8, at 92 %.
    found = only(
        launch(dram=0.9, sm=0.1, l2=0.5) | known | {"busy.l2_whole": 9.2e4, "reached_by_whole_l2_frac": 0.92}, B200
    )
    assert found["most_ns"] == pytest.approx(9.2e4 * SMS / 0.92)


@pytest.mark.parametrize(("gpu", "sm_count", "is_own"), [("h100-sxm", 132.0, True), ("rtx-3090", 82.0, False)])
def test_l2_keeps_its_clock_where_a_data_sheet_says_so(gpu: str, sm_count: float, *, is_own: bool) -> None:
    here = profile_by_name(gpu)
    row = launch(dram=0.1, sm=0.1, l2=0.9, sm_clock_hz=here.sm_boost_clock_hz, sm_count=sm_count)
    found = only(row, Target(None, here.sm_boost_clock_hz / 2), {0: here})
    assert found["duration_ns"] == pytest.approx(1e5 if is_own else 2e5)
    # both are in the range, whichever is expected
    assert (found["least_ns"], found["most_ns"]) == pytest.approx((1e5, 2e5))
    # and so for what no counter names
    whole = row | {"busy.l2": 1e4, "reached_frac": 0.1, "limiter": "dram"}
    whole |= {"busy.l2_whole": 9e4, "reached_by_whole_l2_frac": 0.9}
    found = only(whole, Target(None, here.sm_boost_clock_hz * 2), {0: here})
    assert found["least_ns"] == pytest.approx(5e4)
