"""What would turn a verdict into the next one, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.diagnosis.vendor import vendor_verdict
from ncuroof.present.documents.kernels import vendor_block
from ncuroof.present.sentences.remarks import flip_sentence
from ncuroof.reading import Reports
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"


def kernel(memory: float, compute: float, duration_ns: float = 1e6) -> dict[str, Any]:
    counters = {
        "gpu__time_duration.sum": duration_ns,
        f"gpu__compute_memory_throughput{PCT}": memory,
        f"sm__throughput{PCT}": compute,
        "launch__waves_per_multiprocessor": 0.5,
    }
    return Reports((raw_report(counters),)).analyse().to_dict()["kernels"][0]


@pytest.mark.parametrize(
    ("memory", "compute", "verdict", "becomes", "change_frac", "sentence"),
    [
        # memory stays at 90 % in the time that its work takes; at 80 % the SMs are the gap of 10 points behind: 72/80
        (
            90,
            72,
            "memory",
            "balanced",
            72 / 80 - 1,
            "Would be balanced if the memory side had 10.0 % less to do, and compute-bound with still less.",
        ),
        (
            63,
            80,
            "compute",
            "balanced",
            63 / 70 - 1,
            "Would be balanced if the SMs had 10.0 % less to do, and memory-bound with still less.",
        ),
        # 45/80 would be 43.8 % less to do; 60 % busy is nearer, where the tree asks whether any unit is busy
        (
            90,
            45,
            "memory",
            "latency",
            60 / 90 - 1,
            "Would be latency-bound if the busiest unit were 60.0 % busy instead of 90.0 %.",
        ),
        (
            20,
            61,
            "compute",
            "latency",
            60 / 61 - 1,
            "Would be latency-bound if the busiest unit were 60.0 % busy instead of 61.0 %.",
        ),
        (
            61,
            60,
            "balanced",
            "latency",
            60 / 61 - 1,
            "Would be latency-bound if the busiest unit were 60.0 % busy instead of 61.0 %.",
        ),
        # 80 and 75 are 5 points apart; at 70 the gap is 10: 75 less 6.7 %; at 62 it is 10 to 72: 70 less 11.4 %
        (80, 75, "balanced", "memory", 70 / 75 - 1, "Would be memory-bound if the SMs had 6.7 % less to do."),
        (
            70,
            72,
            "balanced",
            "compute",
            62 / 70 - 1,
            "Would be compute-bound if the memory side had 11.4 % less to do.",
        ),
        # 60 % is busy: half as much again as 40 %, and a fifth more than 50 %
        (
            40,
            30,
            "latency",
            "memory",
            0.5,
            "Would be memory-bound if the memory side were 60.0 % busy instead of 40.0 %.",
        ),
        # in two thirds of the time both sides are busier: 60 % and 57 %
        (
            40,
            38,
            "latency",
            "balanced",
            0.5,
            "Would be balanced if it ran 1.5 times as fast, with the memory side 60.0 % busy instead of 40.0 %.",
        ),
        (
            10,
            50,
            "latency",
            "compute",
            0.2,
            "Would be compute-bound if the SMs were 60.0 % busy instead of 50.0 %.",
        ),
    ],
)
def test_the_nearest_other_verdict_and_what_leads_there(
    memory: float, compute: float, verdict: str, becomes: str, change_frac: float, sentence: str
) -> None:
    found = kernel(memory, compute)
    assert found["verdict"] == verdict
    assert (found["flip"]["becomes"], found["flip"]["change_frac"]) == (becomes, pytest.approx(change_frac))
    assert flip_sentence(found, load_rules()) == sentence


def test_agreement_with_nvidias_rule_is_stated_and_what_differs_is_explained() -> None:
    def block(title: str, verdict: str, node: str = "memory_leads") -> dict[str, Any]:
        message = {
            "rule_id": "SOLBottleneck",
            "title": title,
            "message": "",
            "type": "ok",
            "speedup_frac": None,
            "scope": None,
        }
        return vendor_block([message], verdict, [{"node": node, "outcome": True}], load_rules())

    assert (
        block("High Memory Throughput", "memory")["agreement"],
        block("High Memory Throughput", "memory")["why"],
    ) == ("same", None)
    assert block("Small Grid", "overhead")["agreement"] == "refined"
    assert "launch overhead" in block("Small Grid", "overhead")["why"]
    assert block("High Compute Throughput", "memory")["agreement"] == "different"
    assert block("High Throughput", "memory")["agreement"] is None
    assert block("Balanced Throughput", "memory")["agreement"] == "different"
    assert "at its own thresholds alone" in block("Balanced Throughput", "memory")["why"]
    assert "LSU" in block("Balanced Throughput", "memory", "memory_instructions")["why"]
    assert "shared memory" in block("Balanced Throughput", "compute", "operands")["why"]


def test_a_unit_that_the_memory_total_leaves_out_is_why_nvidias_rule_differs() -> None:
    def why(busiest: float) -> str:
        path = [
            {"node": "memory_known", "outcome": True, "value": 0.58},
            {"node": "busy_enough", "outcome": True, "value": busiest},
        ]
        message = {"rule_id": "SOLBottleneck", "title": "Latency Issue"}
        found = vendor_verdict([message], "memory", path, load_rules().vendor)
        assert (found.verdict, found.agreement) == ("latency", "different")
        return found.why or ""

    assert "leaves out the unit that is busiest here" in why(0.83)
    assert "leaves out" not in why(0.61)


def test_by_intensity_the_ridge_is_what_matters() -> None:
    # 100 of 1000 FP32 FMAs per cycle, DRAM at half of its peak: a fifth of the ridge, which the tree calls left of it until a half
    counters = {
        "gpu__time_duration.sum": 1e6,
        "smsp__cycles_elapsed.avg.per_second": 1e9,
        "sm__cycles_elapsed.avg.per_second": 1e9,
        **{
            f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed": rate
            for op, rate in (("fadd", 0.0), ("fmul", 0.0), ("ffma", 100.0))
        },
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 1000.0,
        "dram__bytes.sum.per_second": 5e11,
        "dram__bytes.sum.peak_sustained": 1000.0,
        "dram__cycles_elapsed.avg.per_second": 1e9,
    }
    found = Reports((raw_report(counters),)).analyse().to_dict()["kernels"][0]
    assert found["verdict"] == "memory"
    assert found["flip"] == {
        "becomes": "balanced",
        "quantity": "roofline.ridge_ratio",
        "change_frac": pytest.approx(1.5),
    }
    assert flip_sentence(found, load_rules()) == "Would become balanced at 2.5 times its intensity."


@pytest.mark.long
@pytest.mark.parametrize(("duration_ns", "says"), [(5200, True), (6300, False)])
def test_a_small_grid_says_how_near_it_is_to_its_launch(duration_ns: float, says: bool) -> None:
    found = kernel(30, 20, duration_ns=duration_ns)
    assert found["verdict"] == "latency"
    sentence = flip_sentence(found, load_rules())
    assert (sentence == "Would be overhead-bound if it were 3.8 % shorter: its launch would cost as much.") is says


def test_what_cannot_flip_by_one_number_says_nothing() -> None:
    assert kernel(90, 10, duration_ns=1e3)["verdict"] == "overhead"
    for found in (kernel(90, 10, duration_ns=1e3), kernel(0, 0)):
        assert found["flip"] is None
        assert flip_sentence(found, load_rules()) == ""


@pytest.mark.parametrize(
    ("lsu", "issue", "verdict", "becomes"),
    [
        (90.0, 40.0, "memory", "latency"),  # at 60 % of a busy unit
        # at 60 % of the time, (40 - 33) · 60/40 = 10.5 points ahead; (40 - 34) · 60/40 = 9 points, less than the tree asks for
        (40.0, 33.0, "latency", "memory"),
        (40.0, 34.0, "latency", "balanced"),
    ],
)
def test_what_memory_instructions_decide_does_not_flip_to_balanced(
    lsu: float, issue: float, verdict: str, becomes: str | None
) -> None:
    counters = {
        "gpu__time_duration.sum": 1e6,
        f"gpu__compute_memory_throughput{PCT}": lsu,
        f"sm__throughput{PCT}": lsu,
        f"sm__inst_executed_pipe_lsu{PCT}": lsu,
        f"sm__issue_active{PCT}": issue,
        f"sm__pipe_alu_cycles_active{PCT}": 10.0,
        f"sm__pipe_fma_cycles_active{PCT}": 10.0,
    }
    found = Reports((raw_report(counters),)).analyse().to_dict()["kernels"][0]
    assert found["verdict"] == verdict
    assert (found["flip"] and found["flip"]["becomes"]) == becomes


@pytest.mark.parametrize(
    ("memory", "compute", "l2", "verdict", "becomes"),
    [
        # Memory is the busier side, with operands: the SMs' work cannot fall to it.
        (94.5, 93.3, 58.7, "compute", "latency"),
        # Nor does what would make the sides equal give another verdict: the tensor cores stay 32.3 points ahead of L2.
        (91.0, 93.3, 58.7, "compute", "latency"),
        (91.0, 91.0, 58.7, "compute", "latency"),
        # In 55/60 of the time the tensor cores would be (54.5 - 40) · 60/55 = 15.8 points ahead of L2: compute, not balanced.
        (55.0, 54.5, 40.0, "latency", None),
        # (54.5 - 47) · 60/55 = 8.2 points, less than the 10 that the tree asks for
        (55.0, 54.5, 47.0, "latency", "balanced"),
    ],
)
def test_what_operands_decide_does_not_flip_to_another_side(
    memory: float, compute: float, l2: float, verdict: str, becomes: str | None
) -> None:
    counters = {
        "device__attribute_compute_capability_major": 9,
        "device__attribute_compute_capability_minor": 0,
        "gpu__time_duration.sum": 1e6,
        f"gpu__compute_memory_throughput{PCT}": memory,
        f"sm__throughput{PCT}": compute,
        f"sm__pipe_tensor_cycles_active{PCT}": compute,
        f"l1tex__data_pipe_lsu_wavefronts{PCT}": memory,
        f"sm__inst_executed_pipe_lsu{PCT}": 0.8,
        f"gpu__dram_throughput{PCT}": 29.6,
        f"lts__throughput{PCT}": l2,
    }
    found = Reports((raw_report(counters),)).analyse().to_dict()["kernels"][0]
    assert found["verdict"] == verdict
    assert (found["flip"] and found["flip"]["becomes"]) == becomes
