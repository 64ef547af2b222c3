"""Shows the progress of reading reports on standard error, if that is a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from ncuroof.cli.plain_characters import echo

_FIRST_AFTER_S = 0.5
"""Shorter work shows no progress."""

_AGAIN_AFTER_S = 0.1

_WIDTH = len("reading: 100 %")


@contextlib.contextmanager
def reading_progress(*, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Yield a function to call with the share read so far, from 0 to 1; it updates a line on the terminal, if there is one."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    next_s = time.monotonic() + _FIRST_AFTER_S
    is_drawn = False

    def tell(share: float) -> None:
        nonlocal next_s, is_drawn
        if time.monotonic() > next_s:
            next_s, is_drawn = time.monotonic() + _AGAIN_AFTER_S, True
            echo(f"\r{f'reading: {100 * share:.0f} %':<{_WIDTH}}", nl=False, err=True)

    try:
        yield tell
    finally:
        if is_drawn:
            echo(f"\r{'':{_WIDTH}}\r", nl=False, err=True)  # no escape: not every terminal knows one that clears a line
