"""Worker processes start in peace: an interrupt waits until they have, and never reaches them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from ncuroof.ingest.many_reports import workers_start

PRINTS_WHAT_IS_BLOCKED = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"


def _is_blocked_in_a_new_process() -> bool:
    done = subprocess.run([sys.executable, "-c", PRINTS_WHAT_IS_BLOCKED], capture_output=True, text=True, check=True)
    return done.stdout == "True\n"


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    came_to_the_end = False
    with pytest.raises(KeyboardInterrupt), workers_start():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        came_to_the_end = True
    assert came_to_the_end
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # afterwards it is as before


def test_processes_that_start_meanwhile_are_not_interrupted() -> None:
    with workers_start():
        assert _is_blocked_in_a_new_process()
    assert not _is_blocked_in_a_new_process()


def test_an_error_is_not_replaced_by_an_interrupt() -> None:
    with pytest.raises(ValueError, match="of its own"), workers_start():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        raise ValueError("of its own")


def test_a_thread_leaves_signals_to_the_main_thread() -> None:
    ran: list[bool] = []

    def start() -> None:
        with workers_start():
            ran.append(True)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert ran == [True]
