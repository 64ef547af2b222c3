"""The gain beside a group of launches is the group's, not that of the launch which represents it."""

from __future__ import annotations

from ncuroof.present.texts.brief import brief
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
    (line,) = brief(Reports((report,)).analyse()).kernels
    # Until DRAM is 98 % busy: 1 - 70 / 98 of 1 ms and 1 - 80 / 98 of 3 ms are 0.837 ms of 4 ms; the longer launch alone has 18.4 %.
    assert (line.n_launches, line.gain) == (2, "up to 20.9 % of its time")
