"""What no data sheet tells of a run is said where the run has it, and another GPU is a target."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import ncuroof
from ncuroof.metrics import measure
from ncuroof.roofline import profile_by_name
from ncuroof.whatif import Target
from ncuroof.whatif.what_if import not_modelled
from tests.support.raw import raw_report

FIXTURES = Path(__file__).parents[2] / "fixtures"
H100, H200, A10 = (profile_by_name(name) for name in ("h100-sxm", "h200-sxm", "a10"))


def of_times(*durations_ns: float) -> pl.DataFrame:
    counters = ({"gpu__time_duration.sum": each} for each in durations_ns)
    return measure([raw_report(*counters)]).kernels.with_columns(weight=pl.lit(1.0))


LONG = of_times(1e6)


@pytest.mark.parametrize(
    ("here", "there", "said"),
    [(H100, H200, "larger on h200-sxm, 60 MiB after 50"), (H200, H100, "smaller on h100-sxm, 50 MiB after 60")],
)
def test_a_remark_names_a_different_size_of_l2(here, there, said: str) -> None:
    (text,) = not_modelled(LONG, [Target(), Target(there), Target(there, 1.5e9)], {0: here, 1: None})
    assert said in text
    assert ("take less time" in text) == (there is H200)


def test_the_same_gpu_at_any_clock_has_nothing_to_say() -> None:
    short = of_times(3e3)
    for targets in ([Target()], [Target(None, 1e9)], [Target(H100)]):
        assert not_modelled(short, targets, {0: H100}) == []


@pytest.mark.parametrize(
    ("durations_ns", "share"),
    [((4999.0, 9e4), "5%"), ((4000.0, 9e4), None), ((5000.0, 5000.0), None), ((2e3, 2e3), "100%")],
)
def test_a_remark_names_short_launches_from_a_twentieth_of_the_time_on(durations_ns, share: str | None) -> None:
    # 5 of 95 µs are 5.3 %, 4 of 94 are 4.3 %
    found = [text for text in not_modelled(of_times(*durations_ns), [Target(A10)], {0: A10, 1: H100}) if "5 µs" in text]
    assert [share in text for text in found] == ([True] if share else [])


@pytest.mark.long
def test_a_remark_names_a_graph() -> None:
    run = ncuroof.read(FIXTURES / "h200" / "cuda_graph.full.ncu-repz").analyse()
    found = not_modelled(run.kernels, [Target(H100)], {0: H200})
    assert [text for text in found if "1 CUDA graph " in text]
    assert not [text for text in not_modelled(LONG, [Target(H100)], {0: H200}) if "graph" in text]
