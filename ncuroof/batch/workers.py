"""The workers that load reports: processes or threads on this machine, or a Dask cluster."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ncuroof.errors import ClusterError, MissingExtraError
from ncuroof.ingest.many_reports import workers_start

_CONNECT_SECONDS = 20

_ONE_THREAD = {"POLARS_MAX_THREADS": "1"}
"""Environment of each worker process: several of them share the cores."""

_LOOPBACK = "127.0.0.1"
"""Address on which workers on this machine listen, so that no other machine can reach them."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Which workers to use.

    Attributes:
        scheduler: address of a Dask scheduler; None for workers on this machine.
        n_workers: number of workers on this machine; None for one per core.
        are_threads: whether workers on this machine are threads of this process, instead of processes.
    """

    scheduler: str | None = None
    n_workers: int | None = None
    are_threads: bool = False


@contextmanager
def connected(workers: Workers) -> Iterator[Any]:
    """Yield a Dask client of the scheduler, or of workers on this machine that end with the block.

    Raises:
        ClusterError: the scheduler cannot be reached.
        MissingExtraError: Dask is not installed.
    """
    try:
        import distributed  # noqa: PLC0415  slow to import, and an optional dependency
    except ImportError as error:
        raise MissingExtraError(f"ingest needs Dask: {error}", hint="pip install 'ncuroof[fleet]'") from error
    # A lost worker does not concern the user: its tasks are run again.
    logging.getLogger("distributed.client").setLevel(logging.ERROR)
    if workers.scheduler is None:
        with contextlib.ExitStack() as ending:
            with workers_start():
                cluster = ending.enter_context(_cluster(workers))
                client = ending.enter_context(distributed.Client(cluster, set_as_default=False))
            yield client
        return
    try:
        client = distributed.Client(workers.scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"{workers.scheduler}: cannot reach the Dask scheduler: {error}",
            hint="start one with: dask scheduler; its address looks like tcp://HOST:8786",
        ) from error
    with client:
        yield client


def _cluster(workers: Workers) -> Any:
    """Return a local Dask cluster, a context manager."""
    import distributed  # noqa: PLC0415

    n_workers = workers.n_workers or os.cpu_count() or 1
    size = (1, n_workers) if workers.are_threads else (n_workers, 1)
    return distributed.LocalCluster(
        n_workers=size[0],
        threads_per_worker=size[1],
        processes=not workers.are_threads,
        host=None if workers.are_threads else _LOOPBACK,
        dashboard_address=f"{_LOOPBACK}:0",
        worker_dashboard_address=f"{_LOOPBACK}:0",
        silence_logs=logging.CRITICAL,
        **({} if workers.are_threads else {"env": _ONE_THREAD}),
    )
