"""Treat SIGTERM and SIGHUP like Ctrl-C, so that a program that they end has time to clean up."""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterator

ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals of a batch system that ends a job, and of a terminal that is closed."""

_ONE_SIGNAL_S = 1.0
"""Signals closer together count as one: `timeout` and batch systems signal the process, and then its whole group."""


@contextlib.contextmanager
def interrupted_by_signals(tell: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP, unless they are ignored, as under nohup.

    Args:
        tell: called before the exception is raised.
    """
    interrupted_s = -math.inf

    def interrupt(*_: object) -> None:
        nonlocal interrupted_s
        now_s = time.monotonic()
        if now_s - interrupted_s < _ONE_SIGNAL_S:
            return
        interrupted_s = now_s
        tell()
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in ENDINGS}
    taken = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    try:
        for number in taken:
            signal.signal(number, interrupt)
    except ValueError:  # not the main thread
        taken = []
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])
