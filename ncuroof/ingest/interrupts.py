"""Starts worker processes that Ctrl-C does not end: a terminal sends it to them too, but what started them acts on it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def workers_start() -> Iterator[None]:
    """Block SIGINT for processes and threads that are started in this block; an interrupt meanwhile is raised at its end.

    A process inherits what is blocked, so that SIGINT cannot end it before its first line of Python, as it could if the process
    ignored it by itself. A pool that is half started does not end cleanly either, hence the delay.

    Raises:
        KeyboardInterrupt: SIGINT came during the block.
    """
    came: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    except ValueError:  # not the main thread, in which alone signals are handled
        yield
        return
    try:
        with _blocked() if hasattr(signal, "pthread_sigmask") else contextlib.nullcontext():  # Windows lacks it
            yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _blocked() -> Iterator[None]:
    from multiprocessing import resource_tracker  # noqa: PLC0415  few commands start processes

    resource_tracker.ensure_running()  # its start would unblock SIGINT again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # what waited comes now
