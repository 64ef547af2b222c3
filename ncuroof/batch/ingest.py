"""Taking reports into a dataset: one task per report, on one machine or on a Dask cluster, the same code.

A task reads a report, and where the dataset does not have it yet, analyses it and writes one file. Nothing else is kept: a task
that is run again, because its worker died or the whole program was killed, finds the file of the first time or writes it once more.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from ncuroof._version import __version__
from ncuroof.analysis import read
from ncuroof.batch.dataset import Dataset
from ncuroof.batch.locations import file_system
from ncuroof.errors import ClusterError, MissingExtraError, NcuroofError, ReportAccessError, ReportNotFoundError
from ncuroof.fleet import Origin, fleet_rows

_CHUNK_BYTES = 1 << 20
_CONNECT_SECONDS = 20
_ONE_THREAD = {"POLARS_MAX_THREADS": "1"}
"""For each of several processes that share the cores."""

_LOOPBACK = "127.0.0.1"
"""Where workers on this machine listen: nobody else is meant to reach them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one report.

    Attributes:
        location: of the report.
        status: "present" where the dataset had a report of the same content.
        sha256: of its bytes; None where they could not be read.
        n_launches: that were added.
        error: slug of the error; `defect` where it was none of ours.
        message: of the error.
    """

    location: str
    status: Literal["added", "present", "failed"]
    sha256: str | None = None
    n_launches: int = 0
    error: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """What every report of a run is taken in with.

    Attributes:
        dataset: where to.
        labels: value by name, for all of the run's reports.
        again: whether reports that are there already are analysed anew and replaced.
        run: tells this run from others.
    """

    dataset: Dataset
    labels: Mapping[str, str]
    again: bool
    run: str


@dataclass(frozen=True, slots=True)
class Workers:
    """Who does the work.

    Attributes:
        scheduler: address of a Dask scheduler; None for workers on this machine.
        n_workers: of this machine; None for one per core.
        are_threads: whether these are threads of this process.
    """

    scheduler: str | None = None
    n_workers: int | None = None
    are_threads: bool = False


def ingest(
    locations: Sequence[str],
    dataset: Dataset,
    *,
    labels: Mapping[str, str],
    again: bool = False,
    workers: Workers,
    progress: Callable[[Outcome], None],
) -> list[Outcome]:
    """Take reports into a dataset, and return what became of each, in the order in which they were done.

    Failures are noted in the dataset. `progress` is called after each report.

    Raises:
        DatasetError: the dataset cannot be written.
        ClusterError: the scheduler cannot be reached, or was lost; what is in the dataset stays.
        MissingExtraError: Dask is not installed.
    """
    dataset.prepare()
    task = Task(dataset, dict(labels), again, uuid.uuid4().hex)
    outcomes = []
    with _client(workers) as client:
        for outcome in _done(client, locations, task):
            if outcome.status == "failed":
                dataset.put_failure(_failure(outcome))
            outcomes.append(outcome)
            progress(outcome)
    dataset.forget_failures([outcome.location for outcome in outcomes if outcome.status != "failed"])
    return outcomes


def ingest_one(location: str, task: Task) -> Outcome:
    """Take one report into the dataset; whatever is wrong with it is told, not raised."""
    sha256 = None
    try:
        with _local(location) as path:
            sha256 = _sha256(path)
            is_there = sha256 in _present(task.dataset, task.run)
            if is_there and not task.again:
                return Outcome(location, "present", sha256)
            analysis = read(path).analyse()
            (report,) = analysis.reports
            rows = fleet_rows(
                report,
                analysis.kernels,
                analysis.findings,
                analysis.measurements.devices,
                Origin(location, task.labels),
            )
        if is_there:
            task.dataset.drop_report(sha256, but=rows)
        task.dataset.put_report(rows)
        return Outcome(location, "added", sha256, rows.height)
    except NcuroofError as error:
        return Outcome(location, "failed", sha256, error=error.slug, message=str(error))
    except Exception as error:
        return Outcome(location, "failed", sha256, error="defect", message=f"{type(error).__name__}: {error}")


@lru_cache(maxsize=4)
def _present(dataset: Dataset, run: str) -> frozenset[str]:  # noqa: ARG001  each run looks anew
    """Return the reports of a dataset, once per process and run."""
    return dataset.hashes()


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ReportNotFoundError(f"{path.name}: no such file", hint="check the path") from error
    except OSError as error:
        raise ReportAccessError(f"{path.name}: cannot be read: {error.strerror}", hint="check permissions") from error
    return digest.hexdigest()


@contextmanager
def _local(location: str) -> Iterator[Path]:
    """Yield a report's path on this machine; what lies elsewhere is fetched for as long as it is read."""
    if "://" not in location:
        yield Path(location)
        return
    fs, path = file_system(location)
    with tempfile.TemporaryDirectory(prefix="ncuroof-") as folder:
        local = Path(folder) / Path(path).name
        try:
            with fs.open(path, "rb") as remote, local.open("wb") as file:
                while chunk := remote.read(_CHUNK_BYTES):
                    file.write(chunk)
        except FileNotFoundError as error:
            raise ReportNotFoundError(f"{location}: no such file", hint="check the location") from error
        except OSError as error:
            raise ReportAccessError(f"{location}: cannot be read: {error}", hint="check permissions") from error
        yield local


def _done(client: Any, locations: Sequence[str], task: Task) -> Iterator[Outcome]:
    """Yield what became of each report, as it is done; a report whose worker dies again and again has failed."""
    from distributed import as_completed  # noqa: PLC0415  heavy

    futures = client.map(ingest_one, locations, task=task, pure=False)
    location_by_key = {future.key: location for future, location in zip(futures, locations, strict=True)}
    for future in as_completed(futures, loop=client.loop):
        location = location_by_key[future.key]
        try:
            yield future.result()  # waits once more where the result went down with its worker
        except (CancelledError, OSError) as error:
            raise ClusterError(
                f"the scheduler was lost before {location} was done: {error}",
                hint="start the same command again: what is in the dataset stays",
            ) from error
        except Exception as error:  # noqa: BLE001  the report that kills its workers must not end the batch either
            yield Outcome(location, "failed", error="defect", message=f"{type(error).__name__}: {error}")


@contextmanager
def _client(workers: Workers) -> Iterator[Any]:
    """Yield a Dask client: of the scheduler that is named, or of workers on this machine."""
    try:
        import distributed  # noqa: PLC0415  heavy, and an extra
    except ImportError as error:
        raise MissingExtraError(f"ingest needs Dask: {error}", hint="pip install 'ncuroof[fleet]'") from error
    # A lost worker is no news to the user: what it had begun is done again.
    logging.getLogger("distributed.client").setLevel(logging.ERROR)
    if workers.scheduler is not None:
        try:
            client = distributed.Client(workers.scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"{workers.scheduler}: the Dask scheduler cannot be reached: {error}",
                hint="start one with: dask scheduler; its address looks like tcp://HOST:8786",
            ) from error
        with client:
            yield client
        return
    n_workers = workers.n_workers or os.cpu_count() or 1
    size = (1, n_workers) if workers.are_threads else (n_workers, 1)
    with (
        distributed.LocalCluster(
            n_workers=size[0],
            threads_per_worker=size[1],
            processes=not workers.are_threads,
            host=None if workers.are_threads else _LOOPBACK,
            dashboard_address=f"{_LOOPBACK}:0",
            worker_dashboard_address=f"{_LOOPBACK}:0",
            silence_logs=logging.CRITICAL,
            **({} if workers.are_threads else {"env": _ONE_THREAD}),
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _failure(outcome: Outcome) -> Mapping[str, str]:
    return {
        "report_location": outcome.location,
        "report_file": outcome.location.rpartition("/")[2],
        "error": outcome.error,
        "message": outcome.message,
        "ncuroof_version": __version__,
    }
