"""The gain beside a group of launches is the group's, not that of the launch which represents it."""

from __future__ import annotations

from ncuroof.present.texts.run_summary import run_summary
from ncuroof.reading import Reports
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"


def _copy(duration_ns: float, dram: float) -> dict[str, float]:
    """A kernel that keeps DRAM busy for a share of its time, in which SMs always have work."""
    return {
        "gpu__time_duration.sum": duration_ns,
        f"gpu__compute_memory_throughput{PCT}": dram,
        f"gpu__dram_throughput{PCT}": dram,
        f"dram__throughput{PCT}": dram,
        f"sm__throughput{PCT}": 20.0,
        f"sm__cycles_active{PCT}": 100.0,
        "launch__waves_per_multiprocessor": 8.0,
    }


def test_launches_of_a_group_save_what_they_save_together() -> None:
    report = raw_report(_copy(1e6, 70.0), _copy(3e6, 80.0), names=["copy", "copy"])
    (line,) = run_summary(Reports((report,)).analyse()).kernels
    # Until DRAM is 99 % busy: 1 - 70 / 99 of 1 ms and 1 - 80 / 99 of 3 ms are 0.869 ms of 4 ms; the longer launch alone has 19.2 %.
    assert (line.n_launches, line.gain) == (2, "about 10 %, at most 21.7 % of its time")


def test_more_blocks_at_once_save_time_per_unit_of_work_alone() -> None:
    small = _copy(1e6, 20.0) | {"launch__waves_per_multiprocessor": 0.25}
    (line,) = run_summary(Reports((raw_report(small, names=["copy"]),)).analyse()).kernels
    # DRAM is busy for less of the time than the 25 % of the places for blocks that are taken.
    assert line.gain.startswith("about 33 %, at most 75.0 % per unit of work, if more blocks run at once")


def test_beside_another_type_stands_what_is_saved_in_the_present_one() -> None:
    rates = {"add": 25.0, "mul": 30.0, "fma": 20.0}
    counted = {
        f"smsp__sass_thread_inst_executed_op_d{kind}_pred_on.sum.per_cycle_elapsed": rate
        for kind, rate in rates.items()
    }
    slow = _copy(1e6, 1.0) | counted | {
        f"sm__throughput{PCT}": 80.0,
        f"sm__pipe_fp64_cycles_active{PCT}": 80.0,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 6400.0,
        "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained": 100.0,
    }  # fmt: skip
    (line,) = run_summary(Reports((raw_report(slow, names=["simulate"]),)).analyse()).kernels
    assert line.advice.startswith("Use FP32 where the accuracy allows it")
    # In FP32, 1 of 64 remains; of 75 instructions in FP64, 25 additions could fuse with a multiplication each.
    assert line.gain == (
        "about 98.5 %, at most 98.6 % of its time; with its type kept, about 33 %, at most 33.3 %: "
        "FP64 additions and multiplications are not fused into FMAs"
    )
