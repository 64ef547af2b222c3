from __future__ import annotations

import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.present.charts import figures
from ncuroof.present.charts.views import FLOP, INSTRUCTION
from ncuroof.present.page.data import page_index
from ncuroof.present.view import RunView
from tests.present.documents import (
    CEILINGS,
    INSTRUCTION_CEILINGS,
    ceiling,
    document,
    kernel,
    unknown_kernel,
    without_flop,
)


def test_only_positive_numbers_become_dots():
    for intensity, rate in ((0.0, 1e12), (None, 1e12), (0.5, 0.0), (float("inf"), 1e12), (5e-324, 1e12), (1e300, 1e12)):
        point = kernel()["points"][0] | {"intensity_flop_per_byte": intensity, "flop_per_s": rate}
        assert FLOP.dots(kernel(points=[point])) == {}


def test_the_first_dot_is_of_the_precision_that_takes_longest():
    point = kernel()["points"][0]
    both = kernel(points=[point, point | {"precision": "fp64", "flop_per_s": 5e11}], dominant_precision="fp64")
    assert [each["precision"] for each in FLOP.dots(both)["dram"]] == ["fp64", "fp32"]


def test_roofs_are_those_of_the_precisions_used_and_a_slope_for_each_level():
    chart = figures.chart(CEILINGS, [kernel()])
    assert [(roof["kind"], roof["short"], roof["source"]) for roof in chart["roofs"]] == [
        ("bandwidth", "DRAM", "counters"),
        ("bandwidth", "L2", "counters"),
        ("compute", "FP32", "counters"),
        ("bandwidth", "DRAM datasheet", "datasheet"),
        ("compute", "FP32 datasheet", "datasheet"),
    ]
    assert chart["sources"] == [["counters", True], ["datasheet", False]]


def test_a_slope_is_bandwidth_times_intensity_up_to_the_peak():
    dram = figures.chart(CEILINGS, [kernel()])["roofs"][0]
    assert dram["y"][0] == pytest.approx(2.5e12 * dram["x"][0], rel=1e-4)
    # It ends at its ridge: 1e13 FLOP/s / 2.5e12 B/s = 4 FLOP/B.
    assert (dram["x"][1], dram["y"][1]) == (4.0, 1e13)


def test_a_peak_begins_where_the_steepest_slope_meets_it():
    # 1e13 FLOP/s / 5e12 B/s (L2) = 2 FLOP/B.
    fp32 = figures.chart(CEILINGS, [kernel()])["roofs"][2]
    assert (fp32["x"][0], fp32["y"]) == (2.0, [1e13, 1e13])


def test_roofs_of_the_same_height_share_a_line():
    ceilings = [ceiling("bandwidth", "l1", 1e13), ceiling("bandwidth", "shared", 1e13)]
    assert [roof["label"] for roof in figures.chart(ceilings, [kernel()])["roofs"]] == ["L1, shared 10.0 TB/s"]


def test_a_slower_tensor_path_has_a_roof_of_its_own():
    used = kernel(work={"tensor_bf16": kernel()["work"]["fp32"]})
    roofs = [
        {**CEILINGS[0], "kind": "compute", "name": name, "per_s": per_s, "source": "counters"}
        for name, per_s in (("tensor_bf16", 3e14), ("tensor_bf16_slower_path", 2e14), ("tensor_fp8_slower_path", 4e14))
    ]
    labels = [roof["label"] for roof in figures.chart(roofs, [used])["roofs"]]
    assert labels == ["BF16 tensor 300 TFLOP/s", "BF16 tensor (slower path) 200 TFLOP/s"]


def test_a_roof_that_no_counter_gives_is_drawn_from_the_data_sheet():
    used = kernel(points=[kernel()["points"][0] | {"level": "dram"}])
    sheet = {"device": 0, "kind": "bandwidth", "per_s": 2e11, "source": "datasheet", "definition": "a data sheet"}
    ceilings = [
        {**sheet, "name": "dram"},
        {**sheet, "name": "l1", "per_s": 4e11},
        {**sheet, "kind": "compute", "name": "fp32", "per_s": 5e12, "source": "counters"},
        {**sheet, "kind": "compute", "name": "fp32", "per_s": 6e12},
    ]
    stands_in = {(roof["short"], roof["standsIn"]) for roof in figures.chart(ceilings, [used])["roofs"]}
    # No dot is at L1, and FP32 has a roof from counters: only device memory would be without a roof.
    assert stands_in == {("DRAM datasheet", True), ("L1 datasheet", False), ("FP32", False), ("FP32 datasheet", False)}


def test_a_roof_that_stands_in_is_drawn_as_launches_are_judged_by_it_and_meets_the_slopes():
    # Two tensor launches at 1.14 and 1.41 GHz, the first the longer: 312 TFLOP/s at 1.41 GHz are 252 at 1.14
    base = kernel()["work"]["fp32"]
    tensor = [
        kernel(
            duration_ns=duration,
            sm_clock_hz=clock,
            work={"tensor_fp16": {**base, "peak_flop_per_s": peak, "peak_source": "datasheet"}},
        )
        for duration, clock, peak in ((1e5, 1.41e9, 3.12e14), (9e5, 1.14e9, 2.52e14))
    ]
    roof = {"device": 0, "kind": "compute", "definition": "a definition"}
    ceilings = [
        {**CEILINGS[0], "kind": "bandwidth", "name": "dram", "per_s": 2e12, "source": "counters"},
        {**roof, "name": "tensor_fp16", "per_s": 3.12e14, "source": "datasheet"},
    ]
    slope, flat = figures.chart(ceilings, tensor)["roofs"]
    assert flat["label"] == "FP16 tensor datasheet at 1.14 GHz 252 TFLOP/s"
    assert (flat["per_s"], flat["x"][0]) == (2.52e14, 126)
    assert (slope["x"][1], slope["y"][1]) == (126, 2.52e14)


def test_a_measured_roof_is_drawn_as_the_longest_launch_is_judged_by_it():
    # 144 TFLOP/s are said to be 47.3 % of what was reached, at the launch's clock: 304 TFLOP/s, not the 260 at the other
    work = {"fp32": {**kernel()["work"]["fp32"], "flop_per_s": 1.44e14, "reached_frac": 0.473}}
    roof = {"device": 0, "kind": "compute", "name": "fp32", "definition": "a definition"}
    ceilings = [{**roof, "per_s": 3.5e14, "source": "counters"}, {**roof, "per_s": 2.6e14, "source": "measured"}]
    labels = [each["label"] for each in figures.chart(ceilings, [kernel(work=work, sm_clock_hz=1.41e9)])["roofs"]]
    assert labels == ["FP32 350 TFLOP/s", "FP32 measured at 1.41 GHz 304 TFLOP/s"]


def test_the_range_holds_every_dot_and_every_ridge():
    far = kernel(points=[kernel()["points"][0] | {"intensity_flop_per_byte": 1e-4, "flop_per_s": 1e14}])
    chart = figures.chart(CEILINGS, [kernel(), far])
    assert chart["x"]["ranges"]["dram"][0] < -4
    assert chart["x"]["ranges"]["dram"][1] > 0.6  # the ridge of DRAM: log10(4)
    assert chart["y"]["ranges"]["dram"][1] > 14


def test_the_first_range_of_a_level_knows_nothing_of_points_that_are_no_dots_there():
    # Tensor work that comes to the SMs past L1, and little work in FP64 besides: both are far from the dots at DRAM.
    dram, l2, _ = kernel()["points"]
    l1 = dram | {"level": "l1", "intensity_flop_per_byte": 262176.0}
    aside = dram | {"precision": "fp64", "intensity_flop_per_byte": 1e-5, "flop_per_s": 1e7}
    shown = kernel(points=[dram, l2, l1, aside], dominant_precision="fp32")
    chart = figures.chart(CEILINGS, [shown])
    # Ridges from 1e13 / 5e12 = 2 (L2) to 1.2e13 / 2.5e12 = 4.8 FLOP/B, the dot at 0.5; three times as much room on both sides make
    # 0.167 to 14.4, 1.94 decades; of the other 1.06 two thirds go to the left.
    assert chart["x"]["ranges"]["dram"] == pytest.approx([-1.487, 1.513], abs=0.002)
    assert chart["y"]["ranges"]["dram"][0] > 10
    assert chart["x"]["ranges"]["l1"][1] == pytest.approx(5.896, abs=0.002)  # log10(3 · 262176)
    assert chart["x"]["reach"][0] < -5
    assert chart["x"]["reach"][1] > 5.89
    assert chart["y"]["reach"][0] < 7


def test_the_horizontal_axis_says_of_which_bytes():
    titles = figures.chart(CEILINGS, [kernel()])["x"]["titles"]
    assert titles == {"dram": "FLOP per byte of DRAM", "l2": "FLOP per byte of L2"}
    assert FLOP.x_title("shared") == "FLOP per byte of shared memory"
    assert INSTRUCTION.x_title("l1") == "warp instructions per transaction of L1"


def test_ticks_are_round_numbers_with_units():
    ticks = figures.chart(CEILINGS, [kernel()])["y"]["ticks"]
    by_value = dict(zip(ticks["values"], ticks["fine"], strict=True))
    assert by_value[1e12] == "1 TFLOP/s"
    assert by_value[5e11] == "500 GFLOP/s"
    assert {label for label in ticks["coarse"] if label} <= set(ticks["fine"])


def test_the_area_of_a_dot_grows_with_the_duration():
    least, quarter, longest = figures.dot_sizes_px([None, 25.0, 100.0])
    assert longest - least == pytest.approx(2 * (quarter - least), abs=0.2)


def test_a_kernel_without_a_dot_says_why():
    assert FLOP.off_chart_reason(kernel()) is None
    assert FLOP.off_chart_reason(without_flop()) == "no FLOPs"
    assert FLOP.off_chart_reason(kernel(points=[])) == "bytes not collected"
    assert FLOP.off_chart_reason(kernel(points=[], work={})) == "FLOPs not collected"
    assert FLOP.off_chart_reason(unknown_kernel()) == "profiling failed"


def test_instruction_roofs_are_transactions_of_the_levels_and_the_schedulers():
    chart = figures.chart(INSTRUCTION_CEILINGS, [kernel()], INSTRUCTION)
    # 2.5 and 5 TB/s over 32 byte
    assert [(roof["kind"], roof["label"]) for roof in chart["roofs"] if roof["source"] == "counters"] == [
        ("bandwidth", "DRAM 78.1 GTXN/s"),
        ("bandwidth", "L2 156 GTXN/s"),
        ("compute", "warp issue 200 GIPS"),
    ]
    # 2e11 IPS / 78.125e9 TXN/s = 2.56 inst/TXN
    assert (chart["roofs"][0]["x"][1], chart["roofs"][0]["y"][1]) == (pytest.approx(2.56, rel=1e-3), 2e11)
    assert chart["levels"] == ["dram", "l2"]
    assert chart["sources"] == [["counters", True], ["datasheet", False]]


def test_ticks_of_the_instruction_roofline_have_its_unit():
    chart = figures.chart(INSTRUCTION_CEILINGS, [kernel()], INSTRUCTION)
    by_value = dict(zip(chart["y"]["ticks"]["values"], chart["y"]["ticks"]["fine"], strict=True))
    assert by_value[5e10] == "50 GIPS"


def test_high_intensities_have_short_ticks():
    far = kernel(points=[kernel()["points"][0] | {"intensity_flop_per_byte": 2e6}])
    ticks = figures.chart(CEILINGS, [far])["x"]["ticks"]
    by_value = dict(zip(ticks["values"], ticks["fine"], strict=True))
    assert [by_value[value] for value in (0.01, 1000, 1e4, 2e6)] == ["0.01", "1000", "10k", "2M"]


def test_a_kernel_without_a_dot_on_the_instruction_roofline_says_why():
    instructions = kernel()["instructions"]
    nothing_moved = [instructions["points"][2]]
    assert INSTRUCTION.off_chart_reason(without_flop()) is None
    assert INSTRUCTION.off_chart_reason(unknown_kernel()) == "profiling failed"
    for block, reason in (
        (None, "instructions not collected"),
        (instructions | {"points": []}, "bytes not collected"),
        (instructions | {"points": nothing_moved}, "no transactions"),
        (instructions | {"points": [], "warp_executed": 0.0}, "no instructions"),
    ):
        assert INSTRUCTION.off_chart_reason(kernel(instructions=block)) == reason


def opens_first(*kernels):
    return page_index(RunView(document(*kernels)), load_rules())["charts"][0]["opens"]


def test_the_instruction_roofline_opens_first_where_no_kernel_has_flop():
    assert opens_first(without_flop(), kernel(id=1)) == "flop"
    assert opens_first(without_flop()) == "instruction"
    assert opens_first(unknown_kernel()) == "flop"


def test_the_payload_has_a_chart_for_every_device():
    two = document(kernel(), kernel(id=1, device=1))
    charts = page_index(RunView(two), load_rules())["charts"]
    assert [(chart["device"], len(chart["views"]["flop"]["roofs"])) for chart in charts] == [(0, 5), (1, 0)]


def far(number, rate, duration_ns, intensity=0.5):
    """Return a launch with one dot at DRAM."""
    point = kernel()["points"][0] | {"flop_per_s": rate, "intensity_flop_per_byte": intensity}
    return kernel(id=number, points=[point], duration_ns=duration_ns)


@pytest.mark.parametrize(
    ("duration_ns", "rate", "is_out"),
    [(1e4, 1e8, True), (1e5, 1e8, False), (1e4, 5e11, False)],
    ids=["1 % of the time", "9 % of the time", "less than a decade away"],
)
def test_a_first_view_leaves_out_far_dots_with_next_to_no_time_where_that_is_asked_for(duration_ns, rate, is_out):
    kernels = [far(0, 1e12, 1e6), far(1, rate, duration_ns)]
    lowest = {}
    for leaves_out in (False, True):
        lowest[leaves_out] = figures.chart(CEILINGS, kernels, leaves_out=leaves_out)["y"]["ranges"]["dram"][0]
    assert (lowest[True] > lowest[False] + 1) is is_out
    if not is_out:
        assert lowest[True] == lowest[False]


def test_dots_are_left_out_at_either_end_of_an_axis_but_not_for_more_time_than_to_spare():
    near = far(0, 1e12, 1e6)
    low, high = far(1, 1e8, 1.5e4), far(2, 1e12, 1e4, intensity=1e6)
    y_alone = figures.chart(CEILINGS, [near], leaves_out=True)["y"]["ranges"]["dram"][0]
    both = figures.chart(CEILINGS, [near, low, high], leaves_out=True)
    assert both["y"]["ranges"]["dram"][0] == y_alone  # 1.5 % are left out
    assert both["x"]["ranges"]["dram"][1] > 6  # and 1 % more would be 2.5 %
    assert both["x"]["reach"][1] > 6
