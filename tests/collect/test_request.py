"""What the words of the command line ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncuroof.collect.plan import plan_collection
from ncuroof.collect.request import Request, Steps, checked, parse_cover, parse_steps, split_words
from ncuroof.errors import ProfileRequestError
from ncuroof.ncu.settings import load_settings, parse_capability, parse_version


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("train.py", "--x"), ((), ("train.py", "--x"))),
        (("train.py", "--", "y"), ((), ("train.py", "--", "y"))),
        (("--call-stack", "--", "train.py", "--x"), (("--call-stack",), ("train.py", "--x"))),
    ],
)
def test_options_for_ncu_stand_between_two_dashes(words: tuple[str, ...], expected: object) -> None:
    assert split_words(words) == expected


@pytest.mark.parametrize("words", [(), ("--call-stack",), ("--call-stack", "--")])
def test_a_program_is_needed(words: tuple[str, ...]) -> None:
    with pytest.raises(ProfileRequestError, match=r"^expected a .*program"):
        split_words(words)


def test_steps() -> None:
    assert parse_steps("10") == Steps(10, 10)
    assert parse_steps("10:12") == Steps(10, 12)
    assert Steps(10, 12).text == "10:12"


@pytest.mark.parametrize("text", ["0", "", "3:2", "a", "1:", "-1", "1:2:3", "0:4"])
def test_malformed_steps_are_refused(text: str) -> None:
    with pytest.raises(ProfileRequestError, match="--step: expected a number from 1"):
        parse_steps(text)


def test_shares() -> None:
    assert parse_cover("95%") == pytest.approx(0.95)
    assert parse_cover("0.5") == pytest.approx(0.5)
    assert parse_cover("100%") == 1.0
    for text in ("0", "95", "101%", "x", "", "0%"):
        with pytest.raises(ProfileRequestError):
            parse_cover(text)


def test_versions_and_capabilities() -> None:
    assert parse_version("2024.1.1.0") == (2024, 1, 1, 0)
    assert parse_capability("12.1") == 121
    with pytest.raises(ProfileRequestError):
        parse_capability("90")


# ---- the plan ---------------------------------------------------------------------------------------------------------------


def test_an_option_added_twice_stands_once() -> None:
    plan = plan_collection("quick", load_settings(), sections=["Occupancy", "NvlinkTables"], metrics=["x.sum", "x.sum"])
    assert plan.sections == ("SpeedOfLight", "LaunchStats", "Occupancy", "NvlinkTables")
    assert plan.metrics == ("x.sum",)
    assert plan.arguments[-2:] == ["--metrics", "x.sum"]


def test_sections_that_an_old_ncu_lacks_are_left_out() -> None:
    newer = "WorkloadDistribution"  # than the version, or than it may be
    assert newer in plan_collection("quick", load_settings(), ncu_version=(2024, 1)).sections
    assert newer not in plan_collection("quick", load_settings(), ncu_version=(2023, 3)).sections
    assert newer not in plan_collection("quick", load_settings()).sections
    assert newer in plan_collection("quick", load_settings(), sections=[newer]).sections
    with pytest.raises(ProfileRequestError, match=r"ncu 2021\.3 or later is needed, found 2020\.1\.2"):
        plan_collection("roofline", load_settings(), ncu_version=(2020, 1, 2))


def test_costly_sections_are_never_asked_for() -> None:
    for level in load_settings().levels:
        for capability in load_settings().capabilities:
            sections = plan_collection(level, load_settings(), capabilities=[capability]).sections
            assert not {"MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables"} & set(sections)


def test_passes_of_several_gpus_are_a_range() -> None:
    assert plan_collection("roofline", load_settings(), capabilities=[90]).passes == (23, 26)
    assert plan_collection("roofline", load_settings(), capabilities=[90, 80]).passes == (21, 26)
    assert plan_collection("roofline", load_settings(), capabilities=[90, 121]).passes is None
    assert plan_collection("roofline", load_settings()).passes is None


def test_counters_for_several_gpus_are_those_of_all() -> None:
    names = plan_collection("roofline", load_settings(), capabilities=[90, 80]).metrics
    assert "dram__bytes_read.sum" in names
    assert "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum" not in names  # 8.0 has no bulk copies


def test_a_level_that_does_not_exist() -> None:
    with pytest.raises(ProfileRequestError, match="unknown level 'everything'"):
        plan_collection("everything", load_settings())


def test_functions_are_not_covered_among_instantiations() -> None:
    with pytest.raises(
        ProfileRequestError, match=r"--cover chooses whole functions, but --kernel .* chooses single instantiations"
    ):
        checked(Request(("./app",), Path("run.ncu-rep"), kernels=("ParallelFor<.*Force",), cover_frac=0.9))
    checked(Request(("./app",), Path("run.ncu-rep"), kernels=("gemm",), cover_frac=0.9))
