"""A recorded launch that stands for many counts for them: in sums, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from ncuroof.analysis import Analysis
from ncuroof.diagnosis.wall_time import WallTime
from ncuroof.diagnosis.weights import NotRecorded, UnprofiledLaunches, Weighting
from ncuroof.present import render
from ncuroof.reading import Reports
from ncuroof.sidecars.counts import Counts, KernelCount
from ncuroof.sidecars.traces.temporal_breakdown import CountedSteps, Part, TemporalBreakdown
from ncuroof.tables import WEIGHTS
from tests.support.raw import raw_report

PCT = ".avg.pct_of_peak_sustained_elapsed"


def launch(duration_ns: float, memory: float, grid: int = 8) -> dict[str, float]:
    """One launch with Speed-of-Light totals."""
    return {
        "gpu__time_duration.sum": duration_ns,
        f"gpu__compute_memory_throughput{PCT}": memory,
        f"sm__throughput{PCT}": 10.0,
        f"gpu__dram_throughput{PCT}": memory,
        f"sm__pipe_alu_cycles_active{PCT}": 10.0,
        "dram__bytes.sum": 1e6,
        **{f"launch__grid_dim_{axis}": float(size) for axis, size in zip("xyz", (grid, 1, 1), strict=True)},
        **{f"launch__block_dim_{axis}": float(size) for axis, size in zip("xyz", (64, 1, 1), strict=True)},
    }


LAUNCHES = [launch(1000, 90), launch(3000, 90), launch(2000, 10, grid=4), launch(500, 90)]
NAMES = ("void k<(int)4>(T1)", "void k<(int)4>(T1)", "void k<(int)4>(T1)", "other")
COUNTS = Counts(
    (
        KernelCount("void k<4>(float)", (8, 1, 1), (64, 1, 1), 10, 30_000.0),
        KernelCount("void k<4>(float)", (4, 1, 1), (64, 1, 1), 6, 15_000.0),
        KernelCount("left out", (1, 1, 1), (64, 1, 1), 5, 5_000.0),
    )
)


def analysed(counts: Counts | None = COUNTS) -> Analysis:
    return Reports((raw_report(*LAUNCHES, names=NAMES),), counts=(counts,)).analyse()


def test_weights_by_hand() -> None:
    weighting = analysed().weighting
    assert weighting is not None
    # k<4>, 8 blocks: 10 launches in 30 µs, recorded twice in 1 + 3 µs: each stands for 5, its time weighs 30 / 4 = 7.5.
    # k<4>, 4 blocks: 6 in 15 µs, recorded once in 2 µs: it stands for 6 and weighs 7.5. `other` was not counted.
    assert weighting.weights["n_represented"].to_list() == [5, 5, 6, 1]
    assert weighting.weights["weight"].to_list() == [7.5, 7.5, 7.5, 1]
    assert (weighting.n_launches, weighting.duration_ns, weighting.n_unmatched) == (21, 50_000.0, 1)
    assert weighting.covered_frac == pytest.approx(45 / 50)


@pytest.mark.long
def test_what_was_counted_and_not_recorded_is_told_by_function() -> None:
    # 5 launches of `left out`; of k<4> 6 in another shape, and 2 of k<8>, which is another kernel of the same function
    more = (
        KernelCount("void ns::k<4>(float)", (4, 2, 1), (64, 1, 1), 6, 15_000.0),
        KernelCount("void ns::k<8>(float)", (8, 1, 1), (64, 1, 1), 2, 5_000.0),
    )
    weighting = analysed(Counts(COUNTS.kernels + more)).weighting
    assert weighting is not None
    assert weighting.not_recorded == (NotRecorded("k", 8, 20_000.0), NotRecorded("out", 5, 5_000.0))
    assert weighting.unprofiled == (
        UnprofiledLaunches("void ns::k<4>(float)", (4, 2, 1), (64, 1, 1), 6, 15_000.0),
        UnprofiledLaunches("left out", (1, 1, 1), (64, 1, 1), 5, 5_000.0),
        UnprofiledLaunches("void ns::k<8>(float)", (8, 1, 1), (64, 1, 1), 2, 5_000.0),
    )
    assert weighting.steps == (None,)
    of_steps = analysed(replace(COUNTS, steps="10")).weighting
    assert of_steps is not None
    assert of_steps.steps == ("10",)


def test_the_average_is_that_of_the_counted_launches_however_many_were_recorded() -> None:
    weighting = analysed().weighting
    assert weighting is not None
    # 30 µs in 10 launches, of which two were recorded; 15 µs in 6; not counted
    assert weighting.weights["counted_average_ns"].to_list() == [3_000, 3_000, 2_500, None]


def test_a_kernel_that_the_profiler_left_mangled_is_the_one_that_the_report_demangles() -> None:
    """PyTorch's profiler demangles no name of more than 1024 characters: two products of CUTLASS, alike in function and shape."""
    raw = raw_report(*LAUNCHES, names=NAMES)
    mangled = ["_ZN7cutlass6KernelI1aEEvv", "_ZN7cutlass6KernelI1aEEvv", "_ZN7cutlass6KernelI1bEEvv", None]
    demangled = ["void cutlass::Kernel<a>(T1)", "void cutlass::Kernel<a>(T1)", "void cutlass::Kernel<b>(T1)", "other"]
    raw = replace(
        raw,
        workloads=raw.workloads.with_columns(
            mangled_name=pl.Series(mangled, dtype=pl.String), demangled_name=pl.Series(demangled)
        ),
        counters=raw.counters.with_columns(launch__grid_dim_x=pl.lit(8.0)),
    )
    shape = (8, 1, 1), (64, 1, 1)
    counts = Counts(
        (
            KernelCount("_ZN7cutlass6KernelI1aEEvv", *shape, 10, 30_000.0),
            KernelCount("_ZN7cutlass6KernelI1bEEvv", *shape, 6, 15_000.0),
            KernelCount("other", *shape, 1, 5_000.0),
        )
    )
    weighting = Reports((raw,), counts=(counts,)).analyse().weighting
    assert weighting is not None
    # As above: 30 / (1 + 3) µs and 15 / 2 µs; the last is 5 / 0.5 µs.
    assert weighting.weights["weight"].to_list() == [7.5, 7.5, 7.5, 10]
    assert weighting.weights["n_represented"].to_list() == [5, 5, 6, 1]
    assert (weighting.n_unmatched, weighting.covered_frac) == (0, 1.0)


@pytest.mark.long
def test_what_the_counted_launches_took() -> None:
    recent = KernelCount("void k<4>(float)", (8, 1, 1), (64, 1, 1), 10, 30_000.0, 2_000.0, 9_000.0)
    silent = KernelCount(
        "void k<(int)4>(float)", (8, 1, 1), (64, 1, 1), 1, 1_000.0
    )  # the same kernel, from older counts

    def ends(*kernels: KernelCount) -> list[tuple[float | None, float | None]]:
        weighting = analysed(Counts(kernels)).weighting
        assert weighting is not None
        return weighting.weights.select("counted_shortest_ns", "counted_longest_ns").rows()

    assert ends(recent) == [(2_000, 9_000), (2_000, 9_000), (None, None), (None, None)]
    assert ends(recent, silent) == [(None, None)] * 4


@pytest.mark.long
def test_the_share_of_time_in_launches_that_stand_for_uneven_ones() -> None:
    uneven = KernelCount("void k<4>(float)", (8, 1, 1), (64, 1, 1), 10, 30_000.0, 1_000.0, 9_000.0)
    even = KernelCount("void k<4>(float)", (4, 1, 1), (64, 1, 1), 6, 15_000.0, 2_400.0, 2_600.0)
    document = analysed(Counts((uneven, even))).to_dict()
    assert document["summary"]["weighting"]["uneven_frac"] == pytest.approx(30 / 45)
    assert [kernel["caveats"].count("uneven_launches") for kernel in document["kernels"]] == [1, 1, 0, 0]
    assert "represents launches that take longer or shorter" in " ".join(
        render(analysed(Counts((uneven, even))), "md").decode().split()
    )


def test_a_recorded_launch_unlike_the_average_of_those_it_stands_for_is_uneven_without_their_ends() -> None:
    # 6 launches in 15 µs, 2.5 µs each, as the one recorded in 2; 10 in 60 µs, 6 µs each, of which 1 and 3 were recorded
    even = KernelCount("void k<4>(float)", (4, 1, 1), (64, 1, 1), 6, 15_000.0)
    longer = KernelCount("void k<4>(float)", (8, 1, 1), (64, 1, 1), 10, 60_000.0)
    document = analysed(Counts((longer, even))).to_dict()
    assert [kernel["caveats"].count("uneven_launches") for kernel in document["kernels"]] == [1, 1, 0, 0]
    assert document["summary"]["weighting"]["uneven_frac"] == pytest.approx(60 / 75)


def test_sums_are_those_of_the_counted_run() -> None:
    analysis = analysed()
    # 30 + 15 µs of what was counted, and 0.5 µs of what was not
    assert analysis.summary.duration_ns == pytest.approx(45_500)
    # above the roof: 10 % of 30 µs, 90 % of 15 µs, 10 % of 0.5 µs
    assert analysis.summary.recoverable_ns == pytest.approx(3_000 + 13_500 + 50)
    assert analysis.groups["n_launches"].to_list() == [6, 10, 1]
    assert analysis.groups["duration_ns"].to_list() == pytest.approx([15_000, 30_000, 500])
    assert analysis.groups["max_duration_ns"].to_list() == [2_000, 3_000, 500]  # of single launches, as ncu measured
    families = analysis.breakdowns.filter(kind="family")
    assert families["n_launches"].sum() == 17
    assert families["duration_ns"].sum() == pytest.approx(45_500)
    assert analysis.kernels["duration_ns"].to_list() == [1000, 3000, 2000, 500]
    assert analysis.kernels["weight"].to_list() == [7.5, 7.5, 7.5, 1]


@pytest.mark.long
def test_gains_are_weighted_and_shares_stay_shares() -> None:
    plain, weighted = analysed(None), analysed()
    findings = weighted.findings.filter("is_most_worth")
    factors = dict(weighted.kernels.select("id", "weight").iter_rows())
    by_hand = sum(gain * factors[number] for number, gain in findings.select("id", "gain_ns").iter_rows())
    assert weighted.actions["gain_ns"].sum() == pytest.approx(by_hand)
    assert weighted.actions["share_frac"].sum() <= 1
    assert plain.findings.equals(weighted.findings)


@pytest.mark.long
def test_without_counts_nothing_changes() -> None:
    assert analysed(None).weighting is None
    assert analysed(None).to_dict() == Reports((raw_report(*LAUNCHES, names=NAMES),)).analyse().to_dict()
    assert analysed(Counts(())).weighting is None


def test_counts_hold_for_their_own_report_alone() -> None:
    reports = tuple(replace(raw_report(*LAUNCHES, names=NAMES), sha256=name) for name in "ab")
    weighting = Reports(reports, counts=(None, COUNTS)).analyse().weighting
    assert weighting is not None
    assert weighting.weights["weight"].to_list() == [1, 1, 1, 1, 7.5, 7.5, 7.5, 1]
    assert weighting.n_unmatched == 1  # in the second; nobody counted in the first


@pytest.mark.long
def test_screen_and_page_say_so() -> None:
    sentence = "eighted by launch counts from a run without ncu"
    left_out = "10.0 % of the counting run"
    for form in ("md", "html"):
        text = " ".join(render(analysed(), form).decode().split())
        assert sentence in text, form
        assert left_out in text, form
        assert sentence not in " ".join(render(analysed(None), form).decode().split())


def test_launches_recorded_once_and_not_counted_are_told() -> None:
    report = raw_report(*LAUNCHES, names=NAMES)
    session = replace(
        report.session,
        command_line="ncu --kernel-name-base demangled --filter-mode per-launch-config --launch-count 1 ./app",
    )
    once = Reports((replace(report, session=session),)).analyse()
    for form in ("term", "html"):
        assert "rofiled once per kernel and launch shape" in " ".join(render(once, form).decode().split())


@pytest.mark.long
def test_a_run_can_have_more_launches_than_32_bits_count() -> None:
    n = 10**12
    found = analysed(Counts(tuple(replace(kernel, n_launches=n) for kernel in COUNTS.kernels)))
    # 8 blocks and 4 blocks: n each; `other` was not counted
    assert found.summary.n_launches == 2 * n + 1
    assert found.groups["n_launches"].sum() == 2 * n + 1
    for form in ("json", "html", "md", "csv", "parquet", "term"):
        assert render(found, form)


@pytest.mark.parametrize(
    ("wall_times", "timed_frac", "steps_ns"),
    [
        ([(2, 5e6)], 1.0, 10e6),
        ([(2, 5e6)], 0.99, 10e6),
        ([(2, 5e6)], 0.97, None),  # 3 % of the GPU time is of other launches
        ([(None, 5e6)], 1.0, None),  # a whole run, start-up included
        ([], 0.0, None),
        ([(2, 5e6), (2, 6e6)], 1.0, None),  # ranks run at the same time
        ([(2, 5e6), (None, 6e6)], 1.0, None),
    ],
)
def test_wall_time_of_the_counted_steps(
    wall_times: list[tuple[int | None, float]], timed_frac: float, steps_ns: float | None
) -> None:
    times = tuple(
        WallTime(0, "torch", n_steps, each_ns, each_ns, 1.0, 0.0, None, ()) for n_steps, each_ns in wall_times
    )
    weighting = Weighting(pl.DataFrame(schema=WEIGHTS), 0, 0.0, None, (), 0, times, (), 0.0, timed_frac)
    assert weighting.steps_ns == steps_ns


STEP = TemporalBreakdown((Part("computation", 50e3), Part("host_wait", 50e3, 6)), CountedSteps(1, 100e3, None, None))


@pytest.mark.long
def test_a_wall_time_is_of_the_launches_that_were_counted() -> None:
    """Of the GPU time that the wall time says nothing about, the share is told: a report without counts, and one launch."""
    reports = (raw_report(*LAUNCHES, names=NAMES), replace(raw_report(launch(54_500, 90)), sha256="another"))
    weighting = Reports(reports, counts=(replace(COUNTS, breakdown=STEP), None)).analyse().weighting
    assert weighting is not None
    # 45 µs counted; `other` took 0.5 µs, the report without counts 54.5 µs
    assert weighting.uncounted_frac == pytest.approx(0.55)
    assert weighting.timed_frac == pytest.approx(0.45)
    assert [time.source for time in weighting.wall_times] == [0]
    assert weighting.steps_ns is None
    alone = Reports(reports[:1], counts=(replace(COUNTS, breakdown=STEP),)).analyse().weighting
    assert alone is not None
    assert (alone.uncounted_frac, alone.timed_frac) == pytest.approx((0.5 / 45.5, 45 / 45.5))
    assert alone.steps_ns == 100e3


@pytest.mark.parametrize(
    ("names", "foreign"),
    [
        (("void k<(int)4>(T1)", "void k<(int)4>(T1)", "a", "b"), ()),  # two of four launches were counted
        (("void k<(int)4>(T1)", "a", "b", "c"), (0,)),
        (("a", "b", "c", "d"), (0,)),
    ],
)
def test_a_counting_run_of_another_program_has_no_wall_time(names: tuple[str, ...], foreign: tuple[int, ...]) -> None:
    counts = replace(COUNTS, breakdown=STEP)
    analysis = Reports((raw_report(*LAUNCHES, names=names),), counts=(counts,)).analyse()
    assert analysis.weighting is not None
    assert analysis.weighting.foreign == foreign
    assert len(analysis.weighting.wall_times) == 1 - len(foreign)
    screen = " ".join(render(analysis, "term").decode().split())
    assert ("A step takes" in screen) is not bool(foreign)
    assert ("was it the same program?" in screen) is bool(foreign)
