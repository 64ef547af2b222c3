"""What would turn a verdict into the next one, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.analysis import Reports
from ncuroof.diagnosis import load_rules
from ncuroof.present.flip import flip_sentence
from ncuroof.present.vendor import vendor_block
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
        # 90 % has to come down to 45 %: by half
        (90, 45, "memory", "compute", -0.5, "Would become compute-bound if the memory side had 50.0 % less to do."),
        (20, 80, "compute", "memory", -0.75, "Would become memory-bound if the SMs had 75.0 % less to do."),
        # 80 and 75 are 5 points apart; at 70 the gap is 10: 75 less 6.7 %; at 62 it is 10 to 72: 70 less 11.4 %
        (80, 75, "balanced", "memory", 70 / 75 - 1, "Would become memory-bound if the SMs had 6.7 % less to do."),
        (
            70,
            72,
            "balanced",
            "compute",
            62 / 70 - 1,
            "Would become compute-bound if the memory side had 11.4 % less to do.",
        ),
        # 60 % is busy: half as much again as 40 %, and a fifth more than 50 %
        (
            40,
            30,
            "latency",
            "memory",
            0.5,
            "Would count as memory-bound if the memory side were busy for 60.0 % of the time instead of 40.0 %.",
        ),
        # in two thirds of the time both sides are busier: 60 % and 57 %
        (
            40,
            38,
            "latency",
            "balanced",
            0.5,
            "Would count as balanced if the memory side were busy for 60.0 % of the time instead of 40.0 %.",
        ),
        (
            10,
            50,
            "latency",
            "compute",
            0.2,
            "Would count as compute-bound if the SMs were busy for 60.0 % of the time instead of 50.0 %.",
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
    def block(title: str, verdict: str) -> dict[str, Any]:
        message = {
            "rule_id": "SOLBottleneck",
            "title": title,
            "message": "",
            "type": "ok",
            "speedup_frac": None,
            "scope": None,
        }
        return vendor_block([message], verdict, load_rules())

    assert (
        block("High Memory Throughput", "memory")["agreement"],
        block("High Memory Throughput", "memory")["why"],
    ) == ("same", None)
    assert block("Small Grid", "overhead")["agreement"] == "refined"
    assert "launch overhead" in block("Small Grid", "overhead")["why"]
    assert block("High Compute Throughput", "memory")["agreement"] == "different"
    assert block("High Throughput", "memory")["agreement"] is None


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
    assert flip_sentence(found, load_rules()) == "Would become balanced if its intensity were 2.5 times what it is."


def test_what_cannot_flip_by_one_number_says_nothing() -> None:
    assert kernel(90, 10, duration_ns=1e3)["verdict"] == "overhead"
    for found in (kernel(90, 10, duration_ns=1e3), kernel(0, 0)):
        assert found["flip"] is None
        assert flip_sentence(found, load_rules()) == ""
