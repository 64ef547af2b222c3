"""The decision tree, at its thresholds and with counters missing."""

from __future__ import annotations

import pytest

from ncuroof.diagnosis import diagnose, load_rules, unit_weights
from ncuroof.metrics import measure
from ncuroof.roofline import roofline
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"
MEMORY, COMPUTE = f"gpu__compute_memory_throughput{PCT}", f"sm__throughput{PCT}"


def diagnosed(counters: dict[str, float | str]) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Return the verdict row and the path of one kernel."""
    measurements = measure([raw_report(counters)])
    diagnosis = diagnose(measurements, roofline(measurements), unit_weights(measurements.kernels))
    return diagnosis.verdicts.row(0, named=True), diagnosis.path.to_dicts()


def verdict(memory: float, compute: float, duration_ns: float = 1e6, **more: float) -> str:
    row, _ = diagnosed({"gpu__time_duration.sum": duration_ns, MEMORY: memory, COMPUTE: compute, **more})
    return str(row["verdict"])


@pytest.mark.parametrize(
    ("memory", "compute", "expected"),
    [
        (90, 20, "memory"),
        (20, 90, "compute"),
        (85, 80, "balanced"),
        (70, 60.1, "balanced"),  # 9.9 points apart
        (70, 59.9, "memory"),  # 10.1 points apart
        (59.9, 20, "latency"),
        (60.1, 20, "memory"),
        (10, 5, "latency"),
    ],
)
def test_long_kernels_follow_the_busier_side(memory: float, compute: float, expected: str) -> None:
    assert verdict(memory, compute) == expected


@pytest.mark.long
def test_short_kernels_that_do_not_fill_the_gpu_are_overhead() -> None:
    assert verdict(5, 5, duration_ns=4999, launch__waves_per_multiprocessor=0.9) == "overhead"
    assert verdict(5, 5, duration_ns=4999, launch__waves_per_multiprocessor=1.0) == "latency"
    assert verdict(5, 5, duration_ns=5001, launch__waves_per_multiprocessor=0.9) == "latency"


def test_short_and_full_kernels_are_judged_by_their_units() -> None:
    assert verdict(90, 20, duration_ns=3000, launch__waves_per_multiprocessor=4.0) == "memory"


def test_without_utilisation_and_flops_the_verdict_is_unknown() -> None:
    row, path = diagnosed({"gpu__time_duration.sum": 1e6})
    assert (row["verdict"], row["limiter"], row["confidence"]) == ("unknown", None, "low")
    assert [step["node"] for step in path] == [
        "ran",
        "long_enough",
        "memory_known",
        "enough_blocks",
        "known_unit_busy",
        "main_units_known",
        "intensity_known",
        "dram_busy",
    ]
    assert path[-1]["outcome"] is None


@pytest.mark.long
def test_a_launch_too_small_to_matter_needs_no_utilisation() -> None:
    row, path = diagnosed({"gpu__time_duration.sum": 4999, "launch__waves_per_multiprocessor": 0.9})
    assert row["verdict"] == "overhead"
    assert [step["node"] for step in path] == ["ran", "long_enough", "fills_a_wave"]
    row, _ = diagnosed({"gpu__time_duration.sum": 4999, "launch__waves_per_multiprocessor": 1.0})
    assert row["verdict"] == "unknown"


@pytest.mark.long
@pytest.mark.parametrize(("active_cycles", "is_overhead"), [(490, True), (510, False)])
def test_a_short_wave_of_blocks_that_leave_at_once_is_overhead(active_cycles: int, is_overhead: bool) -> None:
    cycles = {"sm__cycles_active.avg": active_cycles, "sm__cycles_elapsed.max": 1000}
    row, path = diagnosed(
        {MEMORY: 90.0, COMPUTE: 10.0, "gpu__time_duration.sum": 4160, "launch__waves_per_multiprocessor": 1.0, **cycles}
    )
    assert [step["node"] for step in path][:4] == ["ran", "long_enough", "fills_a_wave", "sms_work"]
    assert (row["verdict"] == "overhead") is is_overhead


def test_without_a_duration_utilisations_give_the_verdict() -> None:
    row, path = diagnosed({MEMORY: 90.0, COMPUTE: 10.0})
    assert row["verdict"] == "memory"
    assert [(step["node"], step["outcome"]) for step in path][:2] == [("ran", True), ("long_enough", None)]


WGMMA = {  # as Nsight Compute printed it of a product of 8192 in BF16 on an H100: HGMMA 64x64x16, both operands from shared memory
    "device__attribute_compute_capability_major": 9,
    "device__attribute_compute_capability_minor": 0,
    "gpu__time_duration.sum": 1.39e6,
    MEMORY: 94.49,
    COMPUTE: 93.32,
    f"l1tex__data_pipe_lsu_wavefronts{PCT}": 94.49,
    f"sm__pipe_tensor_cycles_active{PCT}": 93.32,
    f"sm__inst_executed_pipe_lsu{PCT}": 0.80,
    f"gpu__dram_throughput{PCT}": 29.61,
    f"lts__throughput{PCT}": 58.71,
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ("compute", "tensor")),
        ({f"sm__inst_executed_pipe_lsu{PCT}": 21.0}, ("balanced", "l1")),  # 84 % by instructions of its own
        ({f"lts__throughput{PCT}": 85.0}, ("balanced", "l1")),  # L2 is nearly as busy
        ({"device__attribute_compute_capability_major": 8}, ("balanced", "l1")),  # no wgmma
        ({COMPUTE: 94.4}, ("balanced", "l1")),  # another unit than the tensor pipe
        (
            {COMPUTE: 80.0, f"sm__pipe_tensor_cycles_active{PCT}": 80.0},
            ("memory", "l1"),
        ),  # shared memory holds them back
    ],
)
def test_operands_that_tensor_cores_read_themselves_are_no_second_wall(
    changed: dict[str, float], expected: tuple[str, str]
) -> None:
    row, _ = diagnosed({**WGMMA, **changed})
    assert (row["verdict"], row["limiter"]) == expected


ONE_PIPE = {  # as Nsight Compute printed it of a naive matrix product on an RTX 3090
    "gpu__time_duration.sum": 1.2e6,
    MEMORY: 98.16,
    COMPUTE: 98.16,
    f"sm__inst_executed_pipe_lsu{PCT}": 98.16,
    f"l1tex__lsuin_requests{PCT}": 98.16,
    f"sm__issue_active{PCT}": 47.80,
    f"sm__pipe_alu_cycles_active{PCT}": 40.05,
    f"sm__pipe_fma_cycles_active{PCT}": 16.24,
}


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, "memory"),
        ({MEMORY: 99.0}, "memory"),  # a part of L1 is busier still
        ({f"sm__issue_active{PCT}": 88.1}, "memory"),  # 10.06 points behind
        ({f"sm__issue_active{PCT}": 88.2}, "balanced"),  # 9.96 points
        ({f"sm__pipe_fp64_cycles_active{PCT}": 95.0}, "balanced"),
        ({f"sm__inst_executed_pipe_lsu{PCT}": 97.0}, "balanced"),  # another unit is the SMs' busiest
    ],
)
def test_memory_instructions_that_both_sides_count_are_no_second_wall(changed: dict[str, float], verdict: str) -> None:
    row, _ = diagnosed({**ONE_PIPE, **changed})
    assert row["verdict"] == verdict


@pytest.mark.parametrize("missing", [f"sm__issue_active{PCT}", f"sm__pipe_alu_cycles_active{PCT}"])
def test_memory_instructions_decide_nothing_where_the_other_units_are_not_known(missing: str) -> None:
    row, _ = diagnosed({name: value for name, value in ONE_PIPE.items() if name != missing})
    assert row["verdict"] == "balanced"


def roofline_only(flop_share: float, dram_share: float) -> dict[str, float | str]:
    """Counters of FLOPs, bytes and ceilings alone: FP32 at a share of its peak, DRAM at a share of its own."""
    prefix = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
    return {
        "gpu__time_duration.sum": 1e6,
        prefix.format("fadd"): 0.0,
        prefix.format("fmul"): 0.0,
        prefix.format("ffma"): 1000.0 * flop_share,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 1000.0,
        "smsp__cycles_elapsed.avg.per_second": 1e9,
        "sm__cycles_elapsed.avg.per_second": 1e9,
        "dram__bytes.sum.per_second": 1e12 * dram_share,
        "dram__bytes.sum.peak_sustained": 1000.0,
        "dram__cycles_elapsed.avg.per_second": 1e9,
    }


@pytest.mark.parametrize(
    ("flop_share", "dram_share", "expected", "limiter", "confidence"),
    [
        (0.1, 0.9, "memory", "dram", "medium"),
        (0.9, 0.1, "compute", "fp32", "medium"),
        (0.8, 0.8, "balanced", "dram", "medium"),
        (0.02, 0.2, "memory", "dram", "low"),  # far below its roof: the side alone says little
    ],
)
def test_a_report_of_flops_and_bytes_alone_has_a_verdict(
    flop_share: float, dram_share: float, expected: str, limiter: str, confidence: str
) -> None:
    row, path = diagnosed(roofline_only(flop_share, dram_share))
    assert row["verdict"] == expected
    if expected != "balanced":
        assert row["limiter"] == limiter
    assert row["confidence"] == confidence
    assert ("far_below_roof" in row["caveats"]) == (confidence == "low")
    nodes = [step["node"] for step in path]
    assert ("intensity_known" in nodes) == (confidence == "low")
    assert ("known_memory_leads" in nodes) == (confidence == "medium")


def bytes_only(dram_share: float) -> dict[str, float | str]:
    """Counters of a duration and of DRAM bytes alone: 1 ms, and a share of 2 × 1.5625 GHz × 5120 / 8 bytes = 2 TB/s."""
    return {
        "gpu__time_duration.sum": 1e6,
        "dram__bytes_read.sum": 1.5e9 * dram_share,
        "dram__bytes_write.sum": 0.5e9 * dram_share,
        "device__attribute_memory_clock_rate": 1.5625e6,
        "device__attribute_global_memory_bus_width": 5120,
        "device__attribute_compute_capability_major": 9,
        "device__attribute_compute_capability_minor": 0,
    }


@pytest.mark.parametrize(
    ("dram_share", "expected", "limiter", "confidence"),
    [
        (0.80, "memory", "dram", "medium"),  # known_units_only
        (0.601, "memory", "dram", "low"),  # and near the threshold
        (0.599, "unknown", None, "low"),  # nothing says what bounds it
    ],
)
def test_durations_and_bytes_alone_give_a_verdict_where_they_keep_dram_busy(
    dram_share: float, expected: str, limiter: str | None, confidence: str
) -> None:
    row, path = diagnosed(bytes_only(dram_share))
    assert (row["verdict"], row["limiter"], row["confidence"]) == (expected, limiter, confidence)
    assert ("known_units_only" in row["caveats"]) == (expected == "memory")
    assert path[-1]["node"] == "dram_busy"
    assert path[-1]["value"] == pytest.approx(dram_share)


def test_the_side_of_the_ridge_comes_before_a_busy_dram_alone() -> None:
    # FLOPs at 95 % of their peak, whose pipe was not measured, and DRAM at 60.5 %: right of the ridge, 0.95 / 0.605 = 1.57 times.
    row, path = diagnosed(roofline_only(0.95, 0.605))
    assert row["verdict"] == "compute"
    assert "dram_busy" not in [step["node"] for step in path]


@pytest.mark.parametrize(
    ("dram", "l1", "issue", "alu", "expected", "limiter", "confidence"),
    [
        # an integer chain on an H100: without FLOPs, its intensity is far left of the ridge
        (0.0, 0.1, 50.7, 99.6, "compute", "alu", "medium"),
        (85.0, 40.0, 20.0, 15.0, "memory", "dram", "medium"),
        (70.0, 75.0, 68.0, 30.0, "balanced", "l1", "medium"),
        (30.0, 40.0, 20.0, 15.0, "latency", None, "medium"),
        (None, None, 50.7, 99.6, "unknown", None, "low"),  # memory may be busier
    ],
)
def test_without_the_two_totals_the_known_units_decide(
    dram: float | None,
    l1: float | None,
    issue: float,
    alu: float,
    expected: str,
    limiter: str | None,
    confidence: str,
) -> None:
    units = {
        f"gpu__dram_throughput{PCT}": dram,
        f"l1tex__throughput{PCT}": l1,
        f"sm__issue_active{PCT}": issue,
        f"sm__pipe_alu_cycles_active{PCT}": alu,
    }
    row, _ = diagnosed(
        {"gpu__time_duration.sum": 1e6, **{name: value for name, value in units.items() if value is not None}}
    )
    assert (row["verdict"], row["limiter"], row["confidence"]) == (expected, limiter, confidence)


@pytest.mark.long
def test_one_of_the_two_totals_is_a_known_unit() -> None:
    # --metrics dram__throughput,sm__throughput: no unit of the SMs is busier than their total
    dram = {f"gpu__dram_throughput{PCT}": 80.5}
    row, _ = diagnosed({"gpu__time_duration.sum": 2e6, **dram, COMPUTE: 30.0})
    assert (row["verdict"], row["limiter"], row["confidence"]) == ("memory", "dram", "medium")
    row, _ = diagnosed({"gpu__time_duration.sum": 2e6, **dram, COMPUTE: 75.0})
    assert row["verdict"] == "balanced"


@pytest.mark.parametrize(
    ("n_blocks", "dram_share", "expected", "limiter"),
    [
        (4, 0.2, "latency", "grid"),  # 4 of 24 SMs: three times a sixth is below 0.6
        (5, 0.2, "memory", "dram"),  # 0.625: L2 or the SMs may be busy, the side of the ridge decides
        (4, 0.65, "memory", "dram"),  # few SMs can fill DRAM
    ],
)
def test_a_grid_for_few_sms_keeps_no_unit_busy(n_blocks: int, dram_share: float, expected: str, limiter: str) -> None:
    grid = {
        "launch__grid_size": n_blocks,
        "launch__waves_per_multiprocessor": n_blocks / 24 / 6,
        "device__attribute_multiprocessor_count": 24,
    }
    row, path = diagnosed(roofline_only(0.02, dram_share) | grid)
    assert (row["verdict"], row["limiter"]) == (expected, limiter)
    bound = next(step for step in path if step["node"] == "enough_blocks")
    assert bound["value"] == pytest.approx(max(3 * n_blocks / 24, dram_share))


@pytest.mark.parametrize(
    ("n_blocks", "expected", "limiter"),
    [
        (2, "latency", "grid"),
        (3, "unknown", None),
    ],  # 24 times 2 of 108 SMs are 0.44, of 3 they are 0.67: these may fill DRAM
)
def test_two_blocks_fill_nothing_even_where_nothing_was_counted(
    n_blocks: int, expected: str, limiter: str | None
) -> None:
    row, _ = diagnosed(
        {
            "gpu__time_duration.sum": 7e6,
            "launch__grid_size": n_blocks,
            "launch__waves_per_multiprocessor": n_blocks / 108 / 32,
            "device__attribute_multiprocessor_count": 108,
        }
    )
    assert (row["verdict"], row["limiter"]) == (expected, limiter)


def test_the_path_shows_value_threshold_and_margin() -> None:
    _, path = diagnosed({"gpu__time_duration.sum": 1e6, MEMORY: 90.0, COMPUTE: 20.0})
    step = next(step for step in path if step["node"] == "busy_enough")
    assert (step["quantity"], step["op"], step["outcome"]) == ("utilisation.busiest", ">=", True)
    assert step["value"] == pytest.approx(0.9)
    # |0.9 − 0.6| / 0.6
    assert step["margin_frac"] == pytest.approx(0.5)


@pytest.mark.long
def test_confidence_falls_near_a_threshold() -> None:
    def confidence(memory: float) -> object:
        return diagnosed({"gpu__time_duration.sum": 1e6, MEMORY: memory, COMPUTE: 20.0})[0]["confidence"]

    assert confidence(90) == "high"
    assert confidence(61) == "medium"  # 1.7 % above 60 %
    assert confidence(59) == "medium"


@pytest.mark.parametrize(
    ("compute", "confidence"), [(77.5, "medium"), (76.5, "high"), (82.5, "medium"), (83.5, "high")]
)
def test_three_points_beside_the_gap_are_near(compute: float, confidence: str) -> None:
    # 90 % against it: memory leads by 10 points up to 80 %
    row, _ = diagnosed({"gpu__time_duration.sum": 1e6, MEMORY: 90.0, COMPUTE: compute})
    assert (row["verdict"], row["confidence"]) == ("memory" if compute <= 80 else "balanced", confidence)


def test_failed_launches_are_unknown_and_say_so() -> None:
    report = raw_report({})
    failed = report.workloads.with_columns(n_collected=1, n_not_finite=1).cast(report.workloads.schema)
    broken = type(report)(**{**{name: getattr(report, name) for name in report.__slots__}, "workloads": failed})
    measurements = measure([broken])
    diagnosis = diagnose(measurements, roofline(measurements), unit_weights(measurements.kernels))
    assert diagnosis.verdicts["verdict"].to_list() == ["unknown"]
    assert diagnosis.verdicts["caveats"].to_list() == [["failed"]]
    assert diagnosis.missing.is_empty()


def test_every_node_leads_to_a_node_or_a_described_verdict() -> None:
    rules = load_rules()
    names = {node.id for node in rules.nodes}
    for node in rules.nodes:
        for target in (node.yes, node.no, node.unknown):
            assert target in names or target.removeprefix("verdict:") in rules.verdicts, target


def test_without_a_breakdown_the_busiest_known_unit_is_the_limiter() -> None:
    totals = {"gpu__time_duration.sum": 1e6, MEMORY: 80.0, COMPUTE: 15.0}
    row, _ = diagnosed({**totals, f"gpu__dram_throughput{PCT}": 40.0, f"lts__throughput{PCT}": 80.0})
    assert (row["verdict"], row["limiter"]) == ("memory", "l2")
