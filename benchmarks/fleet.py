"""Loads a thousand reports into a dataset: with one process, two, and a Dask cluster that loses a worker halfway."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import polars as pl

from benchmarks.timing import print_table
from tests.support.dask_cluster import DaskCluster, dask_cluster, wait_for
from tests.support.many_reports import N_LAUNCHES, write_many

N_REPORTS = 1_000
N_CLUSTER_WORKERS = 3


def benchmark(folder: Path) -> None:
    """Print how long each way takes, and the numbers of files and launches in the dataset afterwards.

    Raises:
        RuntimeError: ingest failed, or reports or launches are missing or duplicated.
    """
    reports = folder / "runs"
    write_many(reports, N_REPORTS)
    size = sum(path.stat().st_size for path in reports.iterdir())
    print(
        f"Taking {N_REPORTS} reports of {N_LAUNCHES} launches ({size / N_REPORTS:.0f} bytes each) into a dataset, once each\n"
    )
    rows = [
        _measured("one process", folder, "--workers", "1"),
        _measured("two processes", folder, "--workers", "2"),
        _measured("two processes, again: all is there", folder, "--workers", "2", dataset="two processes"),
    ]
    with dask_cluster(folder, N_CLUSTER_WORKERS) as cluster:
        arguments = ("--scheduler", cluster.address)
        rows.append(_measured(f"cluster of {N_CLUSTER_WORKERS}, one killed", folder, *arguments, kill=cluster))
    one = rows[0][1]
    cells = [
        [name, f"{seconds:.1f} s", f"{one / seconds:.2f}×", f"{N_REPORTS / seconds:.0f}", str(n_files), str(n_launches)]
        for name, seconds, n_files, n_launches in rows
    ]
    print_table(["way", "time", "of one process", "reports/s", "files", "launches"], cells)
    print(
        "\nAfter each: every report once, every launch once. A worker was killed (SIGKILL) with half of the reports done.\n"
    )


def _measured(
    name: str, folder: Path, *arguments: str, dataset: str | None = None, kill: DaskCluster | None = None
) -> tuple[str, float, int, int]:
    target = folder / (dataset or name).replace(" ", "-").replace(",", "")
    if dataset is None:
        shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "ncuroof", "ingest", folder / "runs", "-o", target, "--quiet", *arguments]
    begin = time.perf_counter()
    process = subprocess.Popen(command)
    if kill is not None:
        wait_for(lambda: len(_files(target)) >= N_REPORTS // 2, "half of the reports", patience_seconds=600)
        kill.kill(0)
    if process.wait() != 0:
        raise RuntimeError(f"{name}: exit code {process.returncode}")
    seconds = time.perf_counter() - begin
    rows = pl.read_parquet(_files(target), columns=["report_sha256", "id"])
    if rows["report_sha256"].n_unique() != N_REPORTS or rows.height != rows.n_unique():
        raise RuntimeError(
            f"{name}: lost or doubled: {rows.height} launches of {rows['report_sha256'].n_unique()} reports"
        )
    return name, seconds, len(_files(target)), rows.height


def _files(dataset: Path) -> list[Path]:
    return sorted(dataset.glob("kernels/*/*.parquet"))
