"""Starts a local Dask cluster as a user would: a scheduler and workers, each in its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import PATIENCE_S

_QUIET = {**os.environ, "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical"}


@dataclass(frozen=True)
class DaskCluster:
    """A running cluster: the scheduler's address, and its workers' processes."""

    address: str
    workers: tuple[subprocess.Popen[bytes], ...]

    def kill(self, number: int) -> None:
        """Kill a worker without notice, as if its machine were lost."""
        self.workers[number].send_signal(signal.SIGKILL)
        self.workers[number].wait()


@contextmanager
def dask_cluster(folder: Path, n_workers: int) -> Iterator[DaskCluster]:
    """Yield a cluster of single-threaded workers on the loopback interface; `folder` takes its files."""
    file = folder / "scheduler.json"
    started = [
        _dask(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(file),
            folder=folder,
        )
    ]
    try:
        wait_for(
            lambda: file.exists() and file.read_text(encoding="utf-8").rstrip().endswith("}"), "the scheduler's file"
        )
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
        workers = tuple(
            _dask("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", folder=folder)
            for _ in range(n_workers)
        )
        started += workers
        yield DaskCluster(address, workers)
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def wait_for(condition: Callable[[], bool], what: str, *, patience_seconds: float = PATIENCE_S) -> None:
    """Wait until the function returns true."""
    end = time.monotonic() + patience_seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.02)


def _dask(*arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=_QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
