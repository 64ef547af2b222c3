"""A short kernel is as short as it runs without ncu, where that was counted."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.reading import Reports
from ncuroof.sidecars.counts import Counts, KernelCount
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"


def judged(under_ncu_ns: float, *counted: float | None, n_launches: int = 96, n_recorded: int = 1) -> dict[str, Any]:
    """Return the document's kernel: an idle launch of half a wave, counted as an average, shortest and longest in µs.

    It is recorded at the GPU's own clock, as `ncuroof profile` does.
    """
    launch = {
        "gpu__time_duration.sum": under_ncu_ns,
        f"gpu__compute_memory_throughput{PCT}": 20.0,
        f"sm__throughput{PCT}": 10.0,
        "launch__waves_per_multiprocessor": 0.5,
    }
    launch |= {f"launch__{what}_dim_{axis}": 1.0 for what in ("grid", "block") for axis in "xyz"}
    average, *ends = (None if time is None else 1e3 * time for time in counted or (None,))
    kernel = KernelCount("cast", (1, 1, 1), (1, 1, 1), n_launches, n_launches * (average or 0), *ends)
    counts = None if average is None else Counts((kernel,))
    raw = raw_report(*[launch] * n_recorded, names=["cast"] * n_recorded)
    (first, *_) = Reports((raw,), counts=(counts,)).analyse().to_dict()["kernels"]
    assert isinstance(first, dict)
    return first


@pytest.mark.parametrize(
    ("under_ncu_ns", "counted", "expected"),
    [
        (5090, (), "latency"),
        (4960, (), "overhead"),
        (5090, (3.4, 3.2, 3.6), "overhead"),  # 3.4 µs in all recordings of the step, and 5.09, 4.96 and 4.93 under ncu
        (4960, (3.4, 3.2, 3.6), "overhead"),
        (4960, (5.01, 4.9, 5.2), "latency"),
        (5010, (4.99, 4.9, 5.2), "overhead"),
        (5090, (3.4, None, None), "overhead"),  # counts of before the ends were written
        # Launches of 1 to 9 µs: 3.4 is the time of none.
        (5090, (3.4, 1.0, 9.0), "latency"),
        (4960, (9.4, 5.0, 50.0), "overhead"),
        (5090, (0.0, 0.0, 0.0), "latency"),  # no time was counted
    ],
)
def test_a_kernel_is_as_short_as_it_usually_is(
    under_ncu_ns: float, counted: tuple[float | None, ...], expected: str
) -> None:
    assert judged(under_ncu_ns, *counted)["verdict"] == expected


@pytest.mark.long
def test_the_path_and_the_finding_go_by_the_usual_time() -> None:
    kernel = judged(5090, 3.4, 3.2, 3.6)
    (step,) = [step for step in kernel["path"] if step["node"] == "long_enough"]
    assert (step["quantity"], step["value"], step["threshold"]) == ("check.usual_ns", pytest.approx(3400), 5000)
    assert "launch_overhead" in [finding["id"] for finding in kernel["findings"]]
    (step,) = [step for step in judged(5090)["path"] if step["node"] == "long_enough"]
    assert (step["value"], step["outcome"]) == (5090, True)


@pytest.mark.long
def test_launches_that_were_all_recorded_and_are_uneven_are_judged_by_their_own_time() -> None:
    assert judged(5090, 3.4, 1.0, 9.0, n_launches=2, n_recorded=2)["verdict"] == "latency"
    assert judged(5090, 3.4, 3.0, 4.0, n_launches=2, n_recorded=2)["verdict"] == "overhead"
