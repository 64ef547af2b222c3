"""The command line of ncu, word by word."""

from __future__ import annotations

import csv
import io
import re
from itertools import pairwise
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest

from ncuroof.collect.arguments import LaunchFilter, files_of_ranks, kernel_pattern, ncu_command, report_argument
from ncuroof.collect.programs import Program
from ncuroof.collect.request import Request, Steps, refuse_options_set_by_ncuroof
from ncuroof.errors import ProfileRequestError
from ncuroof.ncu.settings import load_settings
from tests.collect.making import COLLECTION, DEMO, PLAN, request
from tests.support.ncu import find_ncu, print_page

ALONE = Program((), ("./app", "--size", "3"), None, None)
CONTROL = [
    *("--replay-mode", "kernel", "--clock-control", "none", "--cache-control", "all", "--target-processes", "all"),
    *("--graph-profiling", "node"),
]
WITHOUT_COLLECTIVES = ["--kernel-name", "regex:^(?!.*(?:nccl|nvshmem))"]
BY_NAME = ["--kernel-name-base", "mangled"]


def command(
    program: Program = ALONE, *, selection: LaunchFilter | None = None, log: str | None = None, **more: Any
) -> list[str]:
    return ncu_command(request(**more), PLAN, program, load_settings(), ncu="ncu", selection=selection, log=log)


def test_a_report_named_on_windows_has_a_name_for_the_clusters_shell() -> None:
    assert report_argument(PureWindowsPath(r"runs\step.ncu-rep"), None) == "runs/step"


def test_the_whole_command() -> None:
    assert command(log="/tmp/x/ncu.log") == [
        *("ncu", "--export", "run", "--log-file", "/tmp/x/ncu.log", *COLLECTION, *CONTROL, *WITHOUT_COLLECTIVES),
        *("./app", "--size", "3"),
    ]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"kernels": ("gemm",)}, ["--kernel-name", "regex:^(?!.*(?:nccl|nvshmem)).*(?:gemm)"]),
        ({"kernels": ("(?i)A", "b")}, ["--kernel-name", "regex:^(?!.*(?:nccl|nvshmem)).*(?:(?i:A)|b)"]),
        ({"kernels": ("^a$", "b")}, ["--kernel-name", "regex:^(?!.*(?:nccl|nvshmem)).*(?:^a$|b)"]),
        ({"kernels": ("gemm",), "with_collectives": True}, ["--kernel-name", "regex:^.*(?:gemm)"]),
        ({"with_collectives": True}, []),
        ({"nvtx": ("step/", "B@x")}, [*WITHOUT_COLLECTIVES, "--nvtx", "--nvtx-include", "step/", "--nvtx-include", "B@x"]),
        ({"annotates": True}, [*WITHOUT_COLLECTIVES, "--nvtx"]),
        ({"steps": Steps(3, 4)}, [*WITHOUT_COLLECTIVES, "--profile-from-start", "off"]),
        ({"skip": 5, "count": 2}, [*WITHOUT_COLLECTIVES, "--launch-skip", "5", "--launch-count", "2"]),
        ({"per_shape": True}, [*WITHOUT_COLLECTIVES, *BY_NAME, "--filter-mode", "per-launch-config", "--launch-count", "1"]),
        ({"per_shape": True, "count": 3}, [*WITHOUT_COLLECTIVES, *BY_NAME, "--filter-mode", "per-launch-config", "--launch-count", "3"]),  # noqa: E501
        ({"per_shape": True, "kernels": ("^a$",), "with_collectives": True}, ["--kernel-name", "regex:^.*(?:^a$)", "--filter-mode", "per-launch-config", "--launch-count", "1"]),  # noqa: E501
        ({"ncu_words": ("--call-stack", "--import-source", "yes")}, [*WITHOUT_COLLECTIVES, "--call-stack", "--import-source", "yes"]),  # noqa: E501
    ],
)  # fmt: skip
def test_which_launches(asked: dict[str, Any], words: list[str]) -> None:
    assert command(**asked) == ["ncu", "--export", "run", *COLLECTION, *CONTROL, *words, "./app", "--size", "3"]


@pytest.mark.parametrize(
    ("name", "value", "option"),
    [
        ("clock_control", "base", "--clock-control"),
        ("cache_control", "none", "--cache-control"),
        ("graph_profiling", "graph", "--graph-profiling"),
        ("target_processes", "application-only", "--target-processes"),
    ],
)
def test_controls_are_passed_on(name: str, value: str, option: str) -> None:
    words = command(**{name: value})
    assert words[words.index(option) + 1] == value


@pytest.mark.parametrize("mode", ["application", "range", "app-range"])
def test_replaying_the_program_leaves_nothing_out(mode: str) -> None:
    words = command(replay_mode=mode)
    assert words[words.index("--replay-mode") + 1] == mode
    assert "--kernel-name" not in words


def test_force_overwrites() -> None:
    assert command(force=True)[:4] == ["ncu", "--force-overwrite", "--export", "run"]


def test_counts_select_functions_exactly() -> None:
    found = command(selection=LaunchFilter(("gemm", "operator()"), per_shape=True))
    assert found[found.index("--kernel-name") + 1] == r"regex:^(?!.*(?:nccl|nvshmem))(?:gemm|operator\(\))$"
    assert found[found.index("--filter-mode") + 1] == "per-launch-config"


@pytest.mark.parametrize(
    ("is_mangled", "name"),
    [
        (False, "copy"),
        (True, "_ZN2at6native4copyILi4EfEEviT0_"),
        (True, "_ZN12_GLOBAL__N_4copyEv"),
        (True, "_Z4copyv"),
        (True, "copy"),
    ],
)
def test_a_function_is_found_in_each_kind_of_name(is_mangled: bool, name: str) -> None:
    selection = LaunchFilter(("other", "copy"), per_shape=True, by_mangled_names=is_mangled)
    pattern = kernel_pattern(request(), selection, load_settings())
    assert pattern is not None
    assert re.search(pattern, name)
    for another in (name.replace("copy", "copy2").replace("4copy", "5copy2"), name.replace("copy", "nccl")):
        assert not re.search(pattern, another), another
    # a length that ends in the same digits lets another one through, which costs a recorded launch and loses none
    assert bool(re.search(pattern, "_Z14copykernel_v2xPf")) is is_mangled


def test_special_characters_in_a_name_are_escaped() -> None:
    """In ncu's expressions, `\\<` would begin a word and `\\'` end the name."""
    selection = LaunchFilter(("operator<", "'lambda'", "a.b[c]{d}|e^f$g\\h+i?"))
    pattern = kernel_pattern(request(with_collectives=True), selection, load_settings())
    assert pattern == r"^(?:operator<|'lambda'|a\.b\[c\]\{d\}\|e\^f\$g\\h\+i\?)$"


@pytest.mark.parametrize(
    ("pattern", "is_about_whole_names"),
    [
        ("ParallelFor<.*PairForce", True),
        ("App::PairForce", True),
        ("<float>", True),
        ("gemm", False),
        (r"\<gemm\>", False),  # a word, in Boost.Regex
        ("(?i:gemm)|(?:copy)(?<!x)", False),
        ("(?<kind>copy)", False),
        ("(?i)gemm", False),
    ],
)
def test_a_pattern_that_no_function_name_can_have_is_searched_in_whole_names(
    pattern: str, *, is_about_whole_names: bool
) -> None:
    found = command(kernels=("relu", pattern))
    assert (found[found.index("--kernel-name") + 1]).endswith(f".*(?:relu|{pattern.replace('(?i)gemm', '(?i:gemm)')})")
    assert (("--kernel-name-base", "demangled") in pairwise(found)) is is_about_whole_names


@pytest.mark.oracle
def test_the_real_ncu_filters_by_our_expressions() -> None:
    """It filters what it imports by the option, and the expressions, by which it filters what it records."""
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("NVIDIA's ncu is not installed")

    def functions(asked: Request, *chosen: str, base: str = "function") -> list[str]:
        selection = LaunchFilter(chosen, by_mangled_names=base == "mangled")
        pattern = kernel_pattern(asked, selection, load_settings())
        options = (
            "--page",
            "raw",
            "--print-kernel-base",
            "function",
            "--kernel-name-base",
            base,
            *(("--kernel-name", f"regex:{pattern}") if pattern else ()),
        )
        rows = csv.DictReader(io.StringIO(print_page(ncu, DEMO, *options).decode()))
        return [row["Kernel Name"] for row in rows if row["ID"]]

    everything = functions(request(with_collectives=True))
    collectives = [name for name in everything if "nccl" in name.lower()]
    assert collectives
    assert functions(request()) == [name for name in everything if name not in collectives]
    assert functions(request(kernels=("(?i)GEMM", "^copy"))) == functions(request(kernels=("gemm", "^copy")))
    assert functions(request(kernels=("gemm", "^copy"))) == [
        name for name in everything if "gemm" in name or name.startswith("copy")
    ]
    assert functions(request(kernels=("native::.*Functor", "multi_tensor")), base="demangled") == [
        "multi_tensor_apply_kernel",
        "vectorized_elementwise_kernel",
    ]
    one_each = list(dict.fromkeys(name for name in everything if name not in collectives))
    for base in ("function", "mangled"):
        assert functions(request(), "copy_strided", base=base) == ["copy_strided"]
        assert functions(request(), base=base) == functions(request())
        assert [functions(request(), name, base=base) for name in one_each] == [
            [name] * everything.count(name) for name in one_each
        ]


def test_a_rank_gets_a_report_of_its_own() -> None:
    program = Program(("mpirun", "-n", "4"), ("./app",), "OMPI_COMM_WORLD_RANK", None)
    assert command(program)[:6] == ["mpirun", "-n", "4", "ncu", "--export", "run.rank%q{OMPI_COMM_WORLD_RANK}"]
    assert command(program)[-1] == "./app"


def test_a_percent_sign_in_a_name_stays_one() -> None:
    assert report_argument(Path("out/50%.ncu-rep"), None) == "out/50%%"


def test_ranks_reports_are_found_by_rank() -> None:
    names = [f"run.rank{rank}.ncu-rep" for rank in (10, 2, 0)]
    others = ["run.ncu-rep", "other.rank1.ncu-rep", "run.rank1.html", "run.rank1-kept.ncu-rep", "run.ranking.ncu-rep"]
    found = files_of_ranks("run", ".ncu-rep", [Path(name) for name in (*names, *others)])
    assert {rank: path.name for rank, path in found.items()} == {rank: f"run.rank{rank}.ncu-rep" for rank in (0, 2, 10)}
    assert list(found) == [0, 2, 10]


def test_an_old_ncu_is_not_given_options_that_it_lacks() -> None:
    old = ncu_command(request(), PLAN, ALONE, load_settings(), ncu="ncu", ncu_version=(2022, 3))
    assert "--graph-profiling" not in old
    with pytest.raises(ProfileRequestError, match=r"--filter-mode needs ncu 2022\.4 or later, found 20\d\d\.\d"):
        ncu_command(request(per_shape=True), PLAN, ALONE, load_settings(), ncu="ncu", ncu_version=(2022, 3))


def test_no_filter_at_all() -> None:
    assert kernel_pattern(request(with_collectives=True), LaunchFilter(), load_settings()) is None


def test_every_option_of_ours_that_ncu_takes_once_is_refused_among_the_users() -> None:
    asked = request(kernels=("a",), nvtx=("b",), steps=Steps(1, 2), skip=1, count=2, per_shape=True, force=True)
    words = ncu_command(asked, PLAN, Program((), ("./app",), None, None), load_settings(), ncu="ncu", log="x")
    words += command(per_shape=True)
    ours = {word for word in words if word.startswith("--")} - {"--size"} - {"--section", "--nvtx", "--nvtx-include"}
    settings = load_settings()
    assert ours | {"--set"} == {option for option in settings.given_by_ncuroof if option.startswith("--")}
    with pytest.raises(ProfileRequestError, match="--metrics for ncu"):
        refuse_options_set_by_ncuroof(("--metrics", "a.sum"), settings.given_by_ncuroof)


def test_ranges_are_asked_for_once() -> None:
    asked = request(nvtx=("b",), ncu_words=("--nvtx",))
    words = ncu_command(asked, PLAN, Program((), ("./app",), None, None), load_settings(), ncu="ncu")
    assert words.count("--nvtx") == 1
