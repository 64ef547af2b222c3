"""Loads reports into a dataset, a few per task, with the same code on one machine or a Dask cluster.

A task reads reports, analyses those that the dataset does not have yet, and writes one file for each. There is no other state: a
task that runs again, because its worker died or the program was killed, finds the file or writes it again. Workers are processes or
threads on this machine, or those of a cluster.
"""

from __future__ import annotations

import contextlib
import logging
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any, Literal

from ncuroof._version import __version__
from ncuroof.batch.dataset import Dataset, file_system
from ncuroof.errors import ClusterError, MissingExtraError, NcuroofError, ReportAccessError, ReportNotFoundError
from ncuroof.fleet import Origin, fleet_rows, of_source
from ncuroof.ingest.file_content import readable, sha256
from ncuroof.ingest.many_reports import workers_start
from ncuroof.ingest.report_files import require_report
from ncuroof.reading import Reports, read
from ncuroof.sidecars.counts import counts_path
from ncuroof.temporary_files import temporary_folder

_CHUNK_BYTES = 1 << 20
_MOST_REPORTS, _LEAST_TASKS = 8, 4
"""Most reports per task, and fewest tasks per worker thread (unless there are too few reports)."""

_CONNECT_SECONDS = 20

_ONE_THREAD = {"POLARS_MAX_THREADS": "1"}
"""Environment of each worker process: several of them share the cores."""

_LOOPBACK = "127.0.0.1"
"""Address on which workers on this machine listen, so that no other machine can reach them."""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What became of one report.

    Attributes:
        location: of the report.
        status: "added"; "present" if the dataset has a report with the same content; "failed".
        sha256: hash of its content; None if it could not be read.
        n_launches: number of launches added.
        error: slug of the error; `defect` if it is not an NcuroofError.
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
    """What all reports of a run have in common.

    Attributes:
        dataset: where the rows go.
        labels: value by name, for all reports of the run; an empty value removes the label.
        again: analyse and replace reports that the dataset has already; labels that are not in `labels` stay.
        run: identifies this run.
    """

    dataset: Dataset
    labels: Mapping[str, str]
    again: bool
    run: str


def ingest(
    locations: Sequence[str],
    dataset: Dataset,
    *,
    labels: Mapping[str, str],
    again: bool = False,
    workers: Workers,
    progress: Callable[[IngestResult], None],
) -> list[IngestResult]:
    """Load reports into a dataset, and return what became of each, in the order of completion.

    Failures are recorded in the dataset. `progress` is called after each report.

    Raises:
        DatasetError: the dataset cannot be written.
        ClusterError: the scheduler cannot be reached, or was lost; what was written stays.
        MissingExtraError: Dask is not installed.
    """
    dataset.prepare()
    task = Task(dataset, dict(labels), again, uuid.uuid4().hex)
    outcomes = []
    for outcome in _outcomes(locations, task, workers):
        if outcome.status == "failed":
            dataset.put_failure(_failure(outcome))
        outcomes.append(outcome)
        progress(outcome)
    dataset.forget_failures([readable(outcome.location) for outcome in outcomes if outcome.status != "failed"])
    return outcomes


def _outcomes(locations: Sequence[str], task: Task, workers: Workers) -> Iterator[IngestResult]:
    """Yield the outcome of each report. If workers see the same files, paths that cannot be reports are refused at once."""
    left = list(locations)
    if workers.scheduler is None:
        refused = {location: outcome for location in left if (outcome := _refused(location)) is not None}
        yield from refused.values()
        left = [location for location in left if location not in refused]
    if left:
        with connected(workers) as client:
            yield from _done(client, left, task)


def _refused(location: str) -> IngestResult | None:
    """Return the outcome for a local path whose kind, size or first bytes rule out a report; None if it may be one."""
    try:
        if "://" not in location:
            require_report(Path(location))
    except ReportNotFoundError:
        return None
    except NcuroofError as error:
        return _failed(location, None, error)
    return None


def ingest_some(locations: Sequence[str], task: Task) -> list[IngestResult]:
    """Load a few reports into the dataset; errors are returned as outcomes, not raised.

    The reports are analysed together, which takes a quarter of the time of one by one. The result for a launch does not depend on
    the other reports.
    """
    outcomes = []
    waiting: dict[str, tuple[str, Reports]] = {}
    for location in locations:
        found = _read(location, task)
        if isinstance(found, IngestResult):
            outcomes.append(found)
        elif (digest := found.raw[0].sha256) in waiting:
            outcomes.append(IngestResult(location, "present", digest))
        else:
            waiting[digest] = (location, found)
    return outcomes + _put(list(waiting.values()), task)


def _read(location: str, task: Task) -> Reports | IngestResult:
    """Return a report to add, or its outcome if it is in the dataset already or cannot be read."""
    digest = None
    try:
        with _local(location) as path:
            require_report(path)
            digest = _sha256(path)
            if digest in _present(task.dataset, task.run) and not task.again:
                return IngestResult(location, "present", digest)
            return read(path, lines=False)
    except Exception as error:  # one report must not end the batch, whatever is wrong with it
        return _failed(location, digest, error)


def _put(each_read: Sequence[tuple[str, Reports]], task: Task) -> list[IngestResult]:
    """Analyse reports together and write their rows, or one by one if that fails."""
    if not each_read:
        return []
    try:
        raw, counts = (tuple(getattr(found, part)[0] for _, found in each_read) for part in ("raw", "counts"))
        analysis = Reports(raw, counts=counts).analyse()
        kernels, devices = analysis.kernels, analysis.measurements.devices
        outcomes = []
        for number, ((location, _), report) in enumerate(zip(each_read, raw, strict=True)):
            launches, findings = of_source(kernels, analysis.findings, number)
            stored = task.dataset.labels(report.sha256) if task.again else {}
            labels = {name: value for name, value in {**stored, **task.labels}.items() if value}
            origin = Origin(readable(location), labels)
            rows = fleet_rows(report, launches, findings, devices, origin)
            task.dataset.put_report(rows)
            if task.again:
                task.dataset.drop_report(report.sha256, but=rows)
            outcomes.append(IngestResult(location, "added", report.sha256, rows.height))
        return outcomes
    except Exception as error:  # as above; files written so far are written again
        if len(each_read) > 1:
            return [outcome for one in each_read for outcome in _put([one], task)]
        ((location, found),) = each_read
        return [_failed(location, found.raw[0].sha256, error)]


def _failed(location: str, digest: str | None, error: BaseException) -> IngestResult:
    if isinstance(error, NcuroofError):
        return IngestResult(location, "failed", digest, error=error.slug, message=str(error))
    return IngestResult(location, "failed", digest, error="defect", message=f"{type(error).__name__}: {error}")


@lru_cache(maxsize=4)
def _present(dataset: Dataset, run: str) -> frozenset[str]:  # noqa: ARG001  part of the cache's key, so that each run looks again
    """Return the hashes of a dataset's reports, read once per process and run."""
    return dataset.hashes()


def _sha256(path: Path) -> str:
    try:
        return sha256(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ReportNotFoundError(f"{path.name}: no such file", hint="check the path") from error
    except OSError as error:
        raise ReportAccessError(f"{path.name}: cannot be read: {error.strerror}", hint="check permissions") from error


@contextmanager
def _local(location: str) -> Iterator[Path]:
    """Yield a local path of a report; a remote one is fetched, with its counts, and deleted after the block."""
    if "://" not in location:
        yield Path(location)
        return
    fs, path = file_system(location)
    with temporary_folder() as folder:
        local = folder / Path(path).name
        counts = counts_path(local)
        beside = path.removesuffix(local.name) + counts.name
        try:
            _fetch(fs, path, local)
            if fs.exists(beside):
                _fetch(fs, beside, counts)
        except FileNotFoundError as error:
            raise ReportNotFoundError(f"{location}: no such file", hint="check the location") from error
        except OSError as error:
            raise ReportAccessError(f"{location}: cannot be read: {error}", hint="check permissions") from error
        yield local


def _fetch(fs: Any, remote: str, local: Path) -> None:
    with fs.open(remote, "rb") as source, local.open("wb") as file:
        while chunk := source.read(_CHUNK_BYTES):
            file.write(chunk)


def _done(client: Any, locations: Sequence[str], task: Task) -> Iterator[IngestResult]:
    """Yield the outcome of each report as it completes.

    If a task repeatedly kills its workers, its reports are tried one by one, so that only the one at fault fails.
    """
    from distributed import as_completed  # noqa: PLC0415  slow to import

    size = _chunk_size(len(locations), sum(client.nthreads().values()))
    chunks = [tuple(locations[start : start + size]) for start in range(0, len(locations), size)]
    chunk_by_key: dict[str, tuple[str, ...]] = {}

    def submitted(wanted: Sequence[tuple[str, ...]]) -> list[Any]:
        futures = client.map(ingest_some, wanted, task=task, pure=False)
        chunk_by_key.update(zip((future.key for future in futures), wanted, strict=True))
        return list(futures)

    completed = as_completed(submitted(chunks), loop=client.loop)
    for future in completed:
        chunk = chunk_by_key.pop(future.key)
        try:
            yield from future.result()  # waits again if the result was lost with its worker
        except (CancelledError, OSError) as error:
            raise ClusterError(
                f"lost the Dask scheduler before {chunk[0]} was done: {error}",
                hint="run the same command again: reports already in the dataset are kept",
            ) from error
        except Exception as error:  # a report that kills its workers must not end the batch either
            if len(chunk) == 1:
                yield _failed(chunk[0], None, error)
            else:
                completed.update(submitted([(location,) for location in chunk]))


def _chunk_size(n_reports: int, n_threads: int) -> int:
    """Return the number of reports per task: several, but few enough for each worker to get several tasks."""
    return max(1, min(_MOST_REPORTS, n_reports // (_LEAST_TASKS * max(n_threads, 1))))


def _failure(outcome: IngestResult) -> Mapping[str, str]:
    location = readable(outcome.location)
    return {
        "report_location": location,
        "report_file": PurePath(location).name,
        "error": outcome.error,
        "message": readable(outcome.message),
        "ncuroof_version": __version__,
    }


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
        import dask  # noqa: PLC0415  slow to import, and an optional dependency
        import distributed  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(f"ingest needs Dask: {error}", hint="pip install 'ncuroof[fleet]'") from error
    # A lost worker does not concern the user: its tasks are run again.
    logging.getLogger("distributed.client").setLevel(logging.ERROR)
    if workers.scheduler is None:
        with contextlib.ExitStack() as ending:
            scratch = ending.enter_context(temporary_folder())
            ending.enter_context(dask.config.set({"temporary-directory": str(scratch)}))
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
