"""How far reading has come, on standard error where that is a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import click

_FIRST_AFTER_S = 0.5
"""What is done sooner needs no word."""

_AGAIN_AFTER_S = 0.1

CLEAR_LINE = "\r\x1b[K"


@contextlib.contextmanager
def reading_progress(*, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Give a function to call with the share that is read, which keeps one line up to date where somebody sees it."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    next_s = time.monotonic() + _FIRST_AFTER_S
    is_drawn = False

    def tell(share: float) -> None:
        nonlocal next_s, is_drawn
        if time.monotonic() > next_s:
            next_s, is_drawn = time.monotonic() + _AGAIN_AFTER_S, True
            click.echo(f"{CLEAR_LINE}reading: {100 * share:.0f} %", nl=False, err=True)

    try:
        yield tell
    finally:
        if is_drawn:
            click.echo(CLEAR_LINE, nl=False, err=True)
