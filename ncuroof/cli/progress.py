"""How far reading has come, on standard error where that is a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import click

_FIRST_AFTER_S = 0.5
"""What is done sooner needs no word."""

CLEAR_LINE = "\r\x1b[K"


@contextlib.contextmanager
def reading_progress(n_files: int, *, quiet: bool) -> Iterator[Callable[[], None] | None]:
    """Give a function to call after each file, which keeps one line up to date; None where nobody would see it."""
    if quiet or n_files < 2 or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    begin = time.monotonic()
    n_done = 0

    def done() -> None:
        nonlocal n_done
        n_done += 1
        if time.monotonic() - begin > _FIRST_AFTER_S:
            click.echo(f"{CLEAR_LINE}read {n_done} of {n_files} files", nl=False, err=True)

    try:
        yield done
    finally:
        click.echo(CLEAR_LINE, nl=False, err=True)
