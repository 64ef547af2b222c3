# ruff: noqa: E501
"""What runs a script, where the runner goes in, where a rank begins."""

from __future__ import annotations

import pytest

from ncuroof.collect.programs import Program, find_program
from ncuroof.errors import ProfileRequestError
from ncuroof.ncu.settings import load_settings

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
        (("mpirun", "-n", "4", "-x", "VAR", "./app", "1"), Program(("mpirun", "-n", "4", "-x", "VAR"), ("./app", "1"), "OMPI_COMM_WORLD_RANK", None)),
        (("srun", "-n2", "python", "train.py"), Program(("srun", "-n2"), ("python", "train.py"), "SLURM_PROCID", 1)),
        (("mpiexec", "-n", "2", "train.py"), Program(("mpiexec", "-n", "2"), ("/v/python", "train.py"), "PMI_RANK", 1)),
        (
            ("torchrun", "--standalone", "--nproc-per-node", "2", "train.py", "--x"),
            Program(("torchrun", "--standalone", "--nproc-per-node", "2", "--no-python"), ("/v/python", "-u", "train.py", "--x"), "RANK", 2, may_lack_rank=True),
        ),
        (
            ("torchrun", "--nproc-per-node=2", "-m", "pkg.train"),
            Program(("torchrun", "--nproc-per-node=2", "--no-python"), ("/v/python", "-u", "-m", "pkg.train"), "RANK", 2, may_lack_rank=True),
        ),
        (("torchrun", "--no-python", "train.sh"), Program(("torchrun", "--no-python"), ("train.sh",), "RANK", None, may_lack_rank=True)),
        (
            ("torchrun", "-m", "--nproc-per-node", "2", "pkg.train", "-m"),
            Program(("torchrun", "--nproc-per-node", "2", "--no-python"), ("/v/python", "-u", "-m", "pkg.train", "-m"), "RANK", 2, may_lack_rank=True),
        ),
        (
            ("/x/python3", "-u", "-m", "torch.distributed.run", "--nproc_per_node", "2", "train.py"),
            Program(("/x/python3", "-u", "-m", "torch.distributed.run", "--nproc_per_node", "2", "--no-python"), ("/x/python3", "-u", "train.py"), "RANK", 2, may_lack_rank=True),
        ),
        (
            ("python", "-mtorch.distributed.launch", "--nproc_per_node=2", "train.py"),
            Program(("python", "-m", "torch.distributed.launch", "--nproc_per_node=2", "--no-python", "--use-env"), ("python", "-u", "train.py"), "RANK", 2, may_lack_rank=True),
        ),
        (
            ("accelerate", "launch", "--multi_gpu", "--mixed_precision", "bf16", "train.py", "--x"),
            Program(("accelerate", "launch", "--multi_gpu", "--mixed_precision", "bf16", "--no_python"), ("/v/python", "-u", "train.py", "--x"), "RANK", 2, may_lack_rank=True),
        ),
        (
            ("accelerate-launch", "--num_processes", "1", "train.py"),
            Program(("accelerate-launch", "--num_processes", "1", "--no_python"), ("/v/python", "-u", "train.py"), "RANK", 2, may_lack_rank=True),
        ),
        (
            ("deepspeed", "--num_gpus", "2", "train.py", "--deepspeed"),
            Program(("deepspeed", "--num_gpus", "2", "--no_python", "--no_local_rank"), ("/v/python", "-u", "train.py", "--deepspeed"), "RANK", 2, may_lack_rank=True),
        ),
        (("srun", "-p", "test", "-n", "4", "./app"), Program(("srun", "-p", "test", "-n", "4"), ("./app",), "SLURM_PROCID", None)),
        (("srun", "--partition=test", "-l", "app"), Program(("srun", "--partition=test", "-l"), ("app",), "SLURM_PROCID", None)),
        (("srun", "--new-option=test", "--", "./app", "--"), Program(("srun", "--new-option=test"), ("./app", "--"), "SLURM_PROCID", None)),
        (("mpirun", "--map-by", "node", "-wdir", "test", "./app"), Program(("mpirun", "--map-by", "node", "-wdir", "test"), ("./app",), "OMPI_COMM_WORLD_RANK", None)),
        (("mpiexec", "-genv", "A", "test", "./app"), Program(("mpiexec", "-genv", "A", "test"), ("./app",), "PMI_RANK", None)),
        (("mpirun", "--mca", "btl", "test", "python", "train", "x.py"), Program(("mpirun", "--mca", "btl", "test"), ("python", "train", "x.py"), "OMPI_COMM_WORLD_RANK", 1)),
        (("python", "-mpytest", "tests/x.py"), Program((), ("python", "-m", "pytest", "tests/x.py"), None, 1)),
        (("python", "-Bum", "pkg", "a.py"), Program((), ("python", "-Bu", "-m", "pkg", "a.py"), None, 2)),
        (("python", "train", "--config", "conf.py"), Program((), ("python", "train", "--config", "conf.py"), None, 1)),
        (("python", "-W", "ignore", "-Xdev", "-X", "tracemalloc", "--check-hash-based-pycs", "never", "t.py"), Program((), ("python", "-W", "ignore", "-Xdev", "-X", "tracemalloc", "--check-hash-based-pycs", "never", "t.py"), None, 8)),
        (("python", "-uc", "pass", "x.py"), Program((), ("python", "-uc", "pass", "x.py"), None, None)),
        (("python", "-", "x.py"), Program((), ("python", "-", "x.py"), None, None)),
        (("python", "-V"), Program((), ("python", "-V"), None, None)),
        (("./python_solver", "x"), Program((), ("./python_solver", "x"), None, None)),
    ],
)  # fmt: skip
def test_programs(words: tuple[str, ...], expected: Program) -> None:
    assert find(*words) == expected


NAMED = {"/bin/trl": ("/w/python", "-E"), "/bin/torchrun": ("/w/python", "-E"), "/bin/train.sh": ()}
"""By first lines of executables."""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("trl", "sft", "--x"), Program((), ("/w/python", "-E", "/bin/trl", "sft", "--x"), None, 2)),
        (("train.sh", "--x"), Program((), ("train.sh", "--x"), None, None)),
        (("absent", "--x"), Program((), ("absent", "--x"), None, None)),
        (("train.py",), Program((), ("/v/python", "train.py"), None, 1)),
        (("python", "train.py"), Program((), ("python", "train.py"), None, 1)),
        (("torchrun", "train.py"), Program(("torchrun", "--no-python"), ("/w/python", "-u", "train.py"), "RANK", 2, may_lack_rank=True)),
        (("mpirun", "-n", "2", "trl", "sft"), Program(("mpirun", "-n", "2"), ("/w/python", "-E", "/bin/trl", "sft"), "OMPI_COMM_WORLD_RANK", 2)),
    ],
)  # fmt: skip
def test_an_executable_that_names_python_is_a_script(words: tuple[str, ...], expected: Program) -> None:
    found = {"trl": "/bin/trl", "torchrun": "/bin/torchrun", "train.sh": "/bin/train.sh"}.get
    named = {**NAMED, "torchrun": ()}
    assert (
        find_program(words, load_settings(), python="/v/python", find=found, named_python=lambda path: named[path])
        == expected
    )


def test_an_unknown_launcher_is_recognised_by_its_variable() -> None:
    assert find("jsrun", "-r", "1", "./app", rank_variable="MY_RANK") == Program(
        ("jsrun", "-r", "1"), ("./app",), "MY_RANK", None
    )
    assert find("jsrun", "-x", "python", "--", "./app", rank_variable="MY_RANK").launcher == ("jsrun", "-x", "python")


def test_only_a_launcher_that_may_set_no_rank_is_given_one() -> None:
    assert find("accelerate", "launch", "train.py").inside(["runner.py", "--"]).environment == {"RANK": "0"}
    assert find("mpirun", "./app").environment == find("./app").environment == {}


def test_the_runner_goes_before_the_script() -> None:
    inside = find("torchrun", "--nproc-per-node", "2", "train.py", "--x").inside(["runner.py", "--step", "3", "--"])
    assert inside.words == ("/v/python", "-u", "runner.py", "--step", "3", "--", "train.py", "--x")
    assert find("python", "-m", "pkg").inside(["r", "--"]).words == ("python", "r", "--", "-m", "pkg")


def test_steps_of_a_binary_are_refused() -> None:
    with pytest.raises(ProfileRequestError, match=r"expected a Python script, found './app'"):
        find("./app").inside(["runner.py"])


@pytest.mark.parametrize("words", [("mpirun", "-n", "4"), ("srun", "-p"), ("torchrun",), ("mpirun", "--")])
def test_a_launcher_without_a_program_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(ProfileRequestError, match=f"expected a program for {words[0]} to start, found none"):
        find(*words)


def test_python_without_a_module_is_refused() -> None:
    with pytest.raises(ProfileRequestError, match="python -m: expected a module, found none"):
        find("python", "-m")
