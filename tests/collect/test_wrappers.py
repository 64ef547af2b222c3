"""The command behind `uv run`, `env`, `numactl` and their like."""

from __future__ import annotations

import pytest

from ncuroof.collect.programs import Program, find_program, unwrapped
from ncuroof.ncu.settings import load_settings

SETTINGS = load_settings()


@pytest.mark.parametrize(
    ("words", "n_before", "command"),
    [
        (("uv", "run", "train.py", "--x"), 2, ("train.py", "--x")),
        (("/h/.local/bin/uv", "run", "--with", "rich", "--frozen", "python", "train.py"), 5, ("python", "train.py")),
        (("uv", "run", "--python=3.12", "--", "train.py"), 4, ("train.py",)),
        (("uv", "run", "-m", "pkg.train", "--x"), 2, ("python", "-m", "pkg.train", "--x")),
        (("conda", "run", "-n", "torch", "--no-capture-output", "python", "t.py"), 5, ("python", "t.py")),
        (("micromamba", "run", "-p", "/envs/a", "t.py"), 4, ("t.py",)),
        (("pixi", "run", "-m", "pixi.toml", "t.py"), 4, ("t.py",)),  # a value, and no module
        (("env", "-u", "A", "B=1", "C=-n 2", "python", "t.py"), 5, ("python", "t.py")),
        (("numactl", "--membind=0", "-N", "0", "./app", "-m"), 4, ("./app", "-m")),
        (("numactl", "-N0", "./app"), 2, ("./app",)),
        (("taskset", "-c", "0-7", "python", "t.py"), 3, ("python", "t.py")),
        (("taskset", "0xff", "python", "t.py"), 2, ("python", "t.py")),
        (("timeout", "-k", "5", "60", "./app"), 4, ("./app",)),
        (("stdbuf", "-oL", "./app"), 2, ("./app",)),
    ],
)
def test_the_command_begins_after_options_and_their_values(
    words: tuple[str, ...], n_before: int, command: tuple[str, ...]
) -> None:
    found = unwrapped(words, SETTINGS)
    assert found is not None
    assert (found.wrapper, found.words) == (words[:n_before], command)


@pytest.mark.parametrize(
    "words", [("uv", "pip", "run"), ("uv",), ("uv", "run"), ("timeout", "60"), ("env", "A=1"), ("./uvx", "run", "t.py")]
)
def test_other_commands_are_left_alone(words: tuple[str, ...]) -> None:
    assert unwrapped(words, SETTINGS) is None


_TORCHRUN = ("torchrun", "--nproc-per-node", "2")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("uv", "run", "train.py", "--x"), Program((), ("uv", "run", "python", "train.py", "--x"), None, 3)),
        (("uv", "run", "trl", "sft"), Program((), ("uv", "run", "trl", "sft"), None, None)),
        (("nice", "-n", "5", "trl", "sft"), Program((), ("nice", "-n", "5", "/w/python", "/bin/trl", "sft"), None, 4)),
        (
            ("env", "A=1", "numactl", "-l", "train.py"),
            Program((), ("env", "A=1", "numactl", "-l", "/v/python", "train.py"), None, 5),
        ),
        (("numactl", "-l", "./app", "train.py"), Program((), ("numactl", "-l", "./app", "train.py"), None, None)),
        (
            ("uv", "run", *_TORCHRUN, "train.py"),
            Program(("uv", "run", *_TORCHRUN, "--no-python"), ("python", "-u", "train.py"), "RANK", 2, may_lack_rank=True),
        ),
        (
            ("mpirun", "-n", "2", "numactl", "-l", "train.py"),
            Program(("mpirun", "-n", "2"), ("numactl", "-l", "/v/python", "train.py"), "OMPI_COMM_WORLD_RANK", 3),
        ),
    ],
)  # fmt: skip
def test_a_script_behind_a_wrapper_is_known(words: tuple[str, ...], expected: Program) -> None:
    found = find_program(
        words,
        SETTINGS,
        python="/v/python",
        find={"trl": "/bin/trl", "./app": "./app"}.get,
        named_python=lambda path: ("/w/python",) if path == "/bin/trl" else (),
    )
    assert found == expected
