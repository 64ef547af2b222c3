"""What is said of a kernel does not depend on what is analysed beside it, and nothing is counted twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import ncuroof
from ncuroof.ingest.raw_report import RawReport
from ncuroof.metrics.catalogue import BREAKDOWNS
from ncuroof.reading import Reports
from tests.diagnosis.test_caveats import TRIOS
from tests.support.constructed import Described
from tests.support.constructed_counters import GROUPS, kernel
from tests.support.constructed_gpus import GPUS
from tests.support.every_unit import every_unit
from tests.support.raw import raw_report
from tests.support.report_writer import write_report

QUICK = settings(max_examples=12, derandomize=True, phases=[Phase.explicit, Phase.generate])
"""A difference says where it is: there is no need to look for a smaller example, which takes minutes."""


Entry = dict[str, Any]
ReportOf = Callable[..., RawReport]

LEFT_OUT = [(), ("roofline",), ("speed_of_light",), ("memory_tables", "stalls"), ("workload_distribution", "occupancy")]
"""Groups of counters that a report may lack, so that reports differ in columns as well as in chips."""


def described(gpu: str) -> Described:
    """Return a kernel that uses every kind of unit; how long it takes tells the GPUs apart."""
    part = GPUS[gpu]
    path = next(iter(part.tensor_operations))
    return replace(every_unit(gpu, path), name=f"on_{gpu}", duration_ns=1_000_000 + 1000 * part.n_sms)


@pytest.fixture(scope="module")
def report_of(tmp_path_factory: pytest.TempPathFactory) -> ReportOf:
    """A report of one kernel on a GPU, without some groups of counters."""
    folder = tmp_path_factory.mktemp("together")

    @cache
    def report(gpu: str, without: tuple[str, ...] = ()) -> RawReport:
        path = folder / f"{gpu}-{'-'.join(without)}.ncu-rep"
        path.write_bytes(write_report([kernel(described(gpu), without=without)]))
        (raw,) = ncuroof.read(path).raw
        return raw

    return report


def entries(reports: Iterable[RawReport]) -> list[Entry]:
    """Return what the analysis of the reports says of their kernels, apart from where these stand in it."""
    kernels = Reports(tuple(reports)).analyse().to_dict()["kernels"]
    return [{key: value for key, value in entry.items() if key not in ("id", "source", "device")} for entry in kernels]


def differences(together: Any, alone: Any, where: str = "") -> list[str]:
    """Return where two documents differ; numbers may by their last digits, which depend on how many rows a table has."""
    if isinstance(together, dict) and isinstance(alone, dict):
        keys = [str(key) for key in together.keys() ^ alone.keys()]
        inner = (differences(together[key], alone[key], f"{where}.{key}") for key in together.keys() & alone.keys())
        return sorted([f"{where}.{key} is in one only" for key in keys] + list(chain.from_iterable(inner)))
    if isinstance(together, list) and isinstance(alone, list) and len(together) == len(alone):
        pairs = enumerate(zip(together, alone, strict=True))
        return list(chain.from_iterable(differences(*pair, f"{where}[{number}]") for number, pair in pairs))
    if isinstance(together, float) and isinstance(alone, float):
        return [] if math.isclose(together, alone, rel_tol=1e-12) else [f"{where}: {together} in place of {alone}"]
    return [] if together == alone else [f"{where}: {together!r} in place of {alone!r}"]


_ALONE: dict[int, tuple[RawReport, list[Entry]]] = {}
"""What was said of a report by itself, and the report, so that its identity is not given to another."""


def alone(report: RawReport) -> list[Entry]:
    if id(report) not in _ALONE:
        _ALONE[id(report)] = report, entries([report])
    return _ALONE[id(report)][1]


def difference_of(reports: Sequence[RawReport]) -> list[str]:
    """Return what is said otherwise of the reports together than of each alone."""
    return differences(entries(reports), [entry for report in reports for entry in alone(report)])


@pytest.mark.long
def test_every_gpu_gets_the_same_diagnosis_beside_all_others_as_alone(report_of: ReportOf) -> None:
    assert difference_of([report_of(gpu) for gpu in GPUS]) == []


@pytest.mark.long
def test_every_gpu_has_the_same_ceilings_beside_all_others_as_alone(report_of: ReportOf) -> None:
    reports = [report_of(gpu) for gpu in GPUS]
    together = Reports(tuple(reports)).analyse().to_dict()
    assert [device["profile"] for device in together["devices"]] == list(GPUS)
    for number, report in enumerate(reports):
        single = Reports((report,)).analyse().to_dict()
        for kind in ("ceilings", "instruction_ceilings"):
            roofs = [{**roof, "device": 0} for roof in together[kind] if roof["device"] == number]
            assert differences(roofs, single[kind], kind) == []


@pytest.mark.long
@QUICK
@given(
    chosen=st.lists(st.tuples(st.sampled_from(sorted(GPUS)), st.sampled_from(LEFT_OUT)), min_size=2, max_size=5),
)
def test_a_report_gets_the_same_diagnosis_beside_reports_of_other_gpus_and_sections(
    report_of: ReportOf, chosen: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert difference_of([report_of(gpu, without) for gpu, without in chosen]) == []


@pytest.mark.long
@pytest.mark.parametrize("path", GPUS["t4"].tensor_operations)
def test_tensor_work_of_a_chip_without_sparsity_is_counted_beside_one_with_it(path: str, tmp_path: Path) -> None:
    # Turing's `src_fp16_dst_fp16` is a path of its own; on later chips that name is the sum over sparsity.
    done = 2.0**30
    reports = []
    for name, paths in (("t4", {path: done}), ("a100-sxm-80gb", {})):
        file = tmp_path / f"{name}.ncu-rep"
        file.write_bytes(write_report([kernel(replace(described(name), tensor=paths))]))
        reports += ncuroof.read(file).raw
    work = entries(reports)[0]["work"]
    found = sum(entry["flop"] for precision, entry in work.items() if precision.startswith("tensor"))
    assert found == pytest.approx(done)


LAUNCHES = [
    launch.report()
    for trios in TRIOS.values()
    for each in trios
    for launch in (each.holds, *each.just_not, *each.unknown)
]


@pytest.mark.long
@QUICK
@given(chosen=st.lists(st.sampled_from(range(len(LAUNCHES))), min_size=2, max_size=5))
def test_launches_with_few_counters_get_the_same_diagnosis_beside_each_other(chosen: list[int]) -> None:
    assert difference_of([LAUNCHES[number] for number in chosen]) == []


@pytest.mark.long
def test_a_launch_with_few_counters_gets_the_same_diagnosis_beside_a_full_report(report_of: ReportOf) -> None:
    # The full report has a column for nearly every counter; for the others it is null, where alone it is not there.
    launches = [each.holds.without(each.needs).report() for trios in TRIOS.values() for each in trios]
    assert difference_of([report_of("h200-sxm"), *launches]) == []


# ---- sums ----------------------------------------------------------------------------------------------------------------------

DURATIONS = st.integers(min_value=1, max_value=10**9)
LAUNCH_COUNTERS = st.fixed_dictionaries(
    {"gpu__time_duration.sum": DURATIONS.map(float)},
    optional={
        "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": st.integers(0, 10**12).map(float),
        "dram__bytes_read.sum": st.integers(0, 10**12).map(float),
        "sm__ops_path_tensor_src_fp16.sum": st.integers(0, 10**12).map(float),
        "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum": st.integers(0, 10**12).map(float),
    },
)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[list[Mapping[str, float]], list[list[Mapping[str, float]]]]:
    """Kernels, and the same ones in the same order split into reports."""
    kernels = draw(st.lists(LAUNCH_COUNTERS, min_size=1, max_size=8))
    cuts = sorted(draw(st.sets(st.integers(1, len(kernels)), max_size=3)) - {len(kernels)})
    bounds = [0, *cuts, len(kernels)]
    return kernels, [kernels[first:last] for first, last in pairwise(bounds)]


@pytest.mark.long
@QUICK
@given(split=partitions())
def test_kernels_are_summed_once_however_they_are_split_into_reports(
    split: tuple[list[Mapping[str, float]], list[list[Mapping[str, float]]]],
) -> None:
    kernels, parts = split
    document = Reports(tuple(raw_report(*part) for part in parts)).analyse().to_dict()
    durations = [launch["gpu__time_duration.sum"] for launch in kernels]
    summary = document["summary"]
    assert (summary["n_kernels"], summary["n_failed"]) == (len(kernels), 0)
    assert summary["duration_ns"] == pytest.approx(sum(durations))
    assert [entry["duration_ns"] for entry in document["kernels"]] == durations
    by_verdict = summary["by_verdict"].values()
    assert sum(share["n_kernels"] for share in by_verdict) == len(kernels)
    assert sum(share["duration_ns"] for share in by_verdict) == pytest.approx(sum(durations))
    assert sum(group["n_launches"] for group in document["groups"]) == len(kernels)
    assert sum(group["duration_ns"] for group in document["groups"]) == pytest.approx(sum(durations))


@pytest.mark.long
@QUICK
@given(split=partitions())
def test_the_diagnosis_does_not_depend_on_how_kernels_are_split_into_reports(
    split: tuple[list[Mapping[str, float]], list[list[Mapping[str, float]]]],
) -> None:
    kernels, parts = split
    names = [f"kernel_{number}" for number in range(len(kernels))]
    rest = iter(names)
    reports = [raw_report(*part, names=[next(rest) for _ in part]) for part in parts]
    assert differences(entries(reports), entries([raw_report(*kernels, names=names)])) == []


@pytest.mark.long
def test_a_report_read_twice_has_twice_the_time_and_one_device(report_of: ReportOf) -> None:
    report = report_of("h200-sxm")
    once, twice = (Reports((report,) * n).analyse().to_dict() for n in (1, 2))
    for key in ("duration_ns", "recoverable_ns", "n_kernels"):
        assert twice["summary"][key] == pytest.approx(2 * once["summary"][key])
    assert twice["devices"] == once["devices"]
    assert twice["ceilings"] == once["ceilings"]
    (first,), (second, third) = once["kernels"], twice["kernels"]
    assert (first["work"], first["traffic_bytes"]) == (second["work"], second["traffic_bytes"])
    assert (first["work"], first["traffic_bytes"]) == (third["work"], third["traffic_bytes"])


# ---- where reports could get into each other's way -------------------------------------------------------------------------------


def sampled(name: str) -> RawReport:
    """A report of stall samples under one of the two names that Nsight Compute gave them."""
    counters = {name.format("long_scoreboard"): 30.0, name.format("wait"): 10.0, "gpu__time_duration.sum": 1e6}
    return raw_report(counters)


SAMPLES = ("smsp__pcsamp_warps_issue_stalled_{}", "smsp__pcsamp_warp_stall_{}")


@pytest.mark.parametrize("names", [SAMPLES, SAMPLES[::-1]])
def test_old_and_new_names_of_stall_samples_can_stand_side_by_side(names: Sequence[str]) -> None:
    reports = [sampled(name) for name in names]
    assert alone(reports[0])[0]["stalls"] == {"long_scoreboard": 0.75, "wait": 0.25}
    assert difference_of(reports) == []


ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
BUSY = {f"lts__t_sectors{ELAPSED}": 85.0, f"l1tex__lsuin_requests{ELAPSED}": 90.0}
THROUGHPUTS = {f"gpu__compute_memory_throughput{ELAPSED}": 90.0, f"sm__throughput{ELAPSED}": 10.0}


def broken_down(*members: str) -> RawReport:
    """A memory-bound kernel whose breakdown of memory lists these of its counters; none for no breakdown."""
    listing = {BREAKDOWNS["memory"]: ",".join(members)} if members else {}
    return raw_report({"gpu__time_duration.sum": 1e6, **THROUGHPUTS, **BUSY, **listing})


@pytest.mark.long
def test_limiter_comes_from_the_kernels_own_breakdown() -> None:
    # The first lists L2 alone, though the counter of L1's requests is in the report as well; the second lists both.
    reports = [broken_down(f"lts__t_sectors{ELAPSED}"), broken_down(*BUSY)]
    assert [alone(report)[0]["limiter"] for report in reports] == ["l2", "lsu"]
    assert difference_of(reports) == []


@pytest.mark.long
def test_kernel_without_a_breakdown_borrows_none() -> None:
    assert difference_of([broken_down(), broken_down(*BUSY)]) == []


def test_counters_that_tie_give_the_same_limiter_beside_other_reports() -> None:
    # Two units equally busy, listed in opposite orders: which comes first must not depend on the other report.
    members = (f"lts__t_sectors{ELAPSED}", f"l1tex__lsuin_requests{ELAPSED}")
    tied = {"gpu__time_duration.sum": 1e6, **THROUGHPUTS, **dict.fromkeys(members, 90.0)}
    reports = [raw_report({**tied, BREAKDOWNS["memory"]: ",".join(each)}) for each in (members, members[::-1])]
    assert difference_of(reports) == []


def test_groups_that_may_be_left_out_exist() -> None:
    assert {group for without in LEFT_OUT for group in without} <= set(GROUPS)


def test_damage_of_one_report_is_none_of_another() -> None:
    sound = raw_report({"gpu__time_duration.sum": 1e6})
    damaged = replace(sound, damage="cut off")
    caveats = [entry["caveats"] for entry in entries([damaged, sound])]
    assert ["damaged_report" in names for names in caveats] == [True, False]
