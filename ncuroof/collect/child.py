"""Starts a child process, and writes its output on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from ncuroof.collect.standard_input import from_the_beginning
from ncuroof.errors import NcuNotFoundError


def started(
    words: Sequence[str], environment: Mapping[str, str], *, stdout: int | None = None, stderr: int | None = None
) -> subprocess.Popen[bytes]:
    """Return a started command, which inherits our standard input from its beginning.

    Args:
        words: the command.
        environment: variables to set where our environment lacks them.
        stdout: descriptor to write to; None for ours.
        stderr: likewise.

    Raises:
        NcuNotFoundError: it cannot be run.
    """
    from_the_beginning()
    try:
        return subprocess.Popen(words, stdout=stdout, stderr=stderr, env={**environment, **os.environ})  # noqa: S603  the arguments as given, no shell
    except OSError as error:
        raise NcuNotFoundError(
            f"{words[0]} cannot be run: {error.strerror}", hint="check the machine with ncuroof doctor"
        ) from error


def write_all(descriptor: int, output: bytes) -> None:
    """Write all of `output`, of which a pipe or a terminal may take a part at a time.

    Raises:
        OSError: the other end is gone.
    """
    view = memoryview(output)
    while view:
        view = view[os.write(descriptor, view) :]
