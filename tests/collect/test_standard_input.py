"""A program that runs twice reads the same standard input twice."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.collect.making import ROOT
from tests.support.patience import PATIENCE_S

TWICE = """
import os, subprocess, sys
from ncuroof.collect.counting_run import run_to_end
from ncuroof.collect.processes import from_the_beginning, kept_input
os.read(0, 2)  # what was read before us is nobody's
same = lambda one, other: (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
words = [sys.executable, "-c", sys.argv[1]]
before = os.fstat(0)
with kept_input():
    for _ in range(2):
        run_to_end(words, {})
print("is ours", same(os.fstat(0), before))
"""
READS_ALL = "import sys; print(sys.stdin.read(), flush=True)"
READS_A_LINE = "import os; print(os.read(0, 2).decode(), flush=True)"
READS_NOTHING = "print('nothing', flush=True)"


def twice(program: str, **more: object) -> bytes:
    done = subprocess.run(
        [sys.executable, "-c", TWICE, program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=PATIENCE_S,
        check=True,
        **more,  # type: ignore[call-overload]
    )
    return bytes(done.stdout)


def test_a_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"--ab")
    with (tmp_path / "input").open("rb", buffering=0) as file:
        assert twice(READS_ALL, stdin=file) == b"ab\nab\nis ours True\n"


@pytest.mark.parametrize("n_bytes", [3, 300_000])  # more than a pipe holds
def test_a_pipe_is_read_again(n_bytes: int) -> None:
    text = b"a" * n_bytes
    assert twice(READS_ALL, input=b"--" + text) == text + b"\n" + text + b"\nis ours True\n"
    assert twice(READS_A_LINE, input=b"--" + text) == b"aa\naa\nis ours True\n"


def test_a_pipe_that_nobody_closes_does_not_block() -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"--ab")
    try:
        assert twice(READS_NOTHING, stdin=ours) == b"nothing\nnothing\nis ours True\n"
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("make", [os.pipe, lambda: [end.detach() for end in socket.socketpair()]])
@pytest.mark.parametrize(("program", "left"), [(READS_NOTHING, b"ab\ncd\n"), (READS_A_LINE, b"\ncd\n")])
def test_unread_input_is_left_to_the_next_reader(
    make: Callable[[], tuple[int, int]], program: str, left: bytes
) -> None:
    """Such as the shell of `… | while read name; do ncuroof profile ./app $name; done`."""
    ours, theirs = make()
    os.write(theirs, b"--ab\ncd\n")
    assert twice(program, stdin=ours).endswith(b"is ours True\n")
    os.close(theirs)
    assert os.read(ours, 100) == left
    os.close(ours)


def test_a_socket_is_read_again() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"--" + 90_000 * b"a")
        theirs.shutdown(socket.SHUT_WR)
        assert twice(READS_ALL, stdin=ours) == 90_000 * b"a" + b"\n" + 90_000 * b"a" + b"\nis ours True\n"


def test_a_device_as_standard_input_stays_as_it_is() -> None:
    assert twice(READS_ALL, stdin=subprocess.DEVNULL) == b"\n\nis ours True\n"
