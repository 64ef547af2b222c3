"""What runs a script, where the runner goes in, where a rank begins."""

from __future__ import annotations

import pytest

from ncuroof.collect.programs import Program, find_program
from ncuroof.collect.settings import load_settings
from ncuroof.errors import ProfileRequestError

EXECUTABLES = {"python": "/usr/bin/python", "./app": "./app", "train.sh": "/bin/train.sh", "torchrun": "/bin/torchrun"}


def find(*words: str, rank_variable: str | None = None) -> Program:
    return find_program(words, load_settings(), python="/v/python", find=EXECUTABLES.get, rank_variable=rank_variable)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("train.py", "--x"), Program((), ("/v/python", "train.py", "--x"), None, 1)),
        (("./app", "train.py"), Program((), ("./app", "train.py"), None, None)),
        (("python", "-u", "train.py"), Program((), ("python", "-u", "train.py"), None, 2)),
        (("python3.12", "-m", "pkg.train"), Program((), ("python3.12", "-m", "pkg.train"), None, 1)),
        (("python", "-c", "x.py"), Program((), ("python", "-c", "x.py"), None, None)),
        (("mpirun", "-n", "4", "-x", "VAR", "./app", "1"), Program(("mpirun", "-n", "4", "-x", "VAR"), ("./app", "1"), "OMPI_COMM_WORLD_RANK", None)),  # noqa: E501
        (("srun", "-n2", "python", "train.py"), Program(("srun", "-n2"), ("python", "train.py"), "SLURM_PROCID", 1)),
        (("mpiexec", "-n", "2", "train.py"), Program(("mpiexec", "-n", "2"), ("/v/python", "train.py"), "PMI_RANK", 1)),
        (
            ("torchrun", "--standalone", "--nproc-per-node", "2", "train.py", "--x"),
            Program(("torchrun", "--standalone", "--nproc-per-node", "2", "--no-python"), ("/v/python", "-u", "train.py", "--x"), "RANK", 2),  # noqa: E501
        ),
        (
            ("torchrun", "--nproc-per-node=2", "-m", "pkg.train"),
            Program(("torchrun", "--nproc-per-node=2", "--no-python"), ("/v/python", "-u", "-m", "pkg.train"), "RANK", 2),
        ),
        (("torchrun", "--no-python", "train.sh"), Program(("torchrun", "--no-python"), ("train.sh",), "RANK", None)),
    ],
)  # fmt: skip
def test_programs(words: tuple[str, ...], expected: Program) -> None:
    assert find(*words) == expected


def test_a_launcher_that_is_not_known_is_told_by_its_variable() -> None:
    assert find("jsrun", "-r", "1", "./app", rank_variable="MY_RANK") == Program(
        ("jsrun", "-r", "1"), ("./app",), "MY_RANK", None
    )


def test_the_runner_goes_before_the_script() -> None:
    inside = find("torchrun", "--nproc-per-node", "2", "train.py", "--x").inside(["runner.py", "--step", "3", "--"])
    assert inside.words == ("/v/python", "-u", "runner.py", "--step", "3", "--", "train.py", "--x")
    assert find("python", "-m", "pkg").inside(["r", "--"]).words == ("python", "r", "--", "-m", "pkg")


def test_steps_of_a_binary_are_refused() -> None:
    with pytest.raises(ProfileRequestError, match=r"a Python script was wanted, './app' was found"):
        find("./app").inside(["runner.py"])


def test_a_launcher_without_a_program_is_refused() -> None:
    with pytest.raises(ProfileRequestError, match="a program for mpirun to start was wanted"):
        find("mpirun", "-n", "4")
