"""Reports taken in by worker processes of a cluster, while processes die: nothing lost, nothing doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.support.dask_cluster import dask_cluster, wait_for
from tests.support.many_reports import N_LAUNCHES, write_many
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.cluster

N_REPORTS = 40
FEW = 4
"""So many reports are there when something is killed: early, so that most of the work is still to be done."""


def test_a_killed_program_and_a_killed_worker_lose_and_double_nothing(tmp_path: Path) -> None:
    reports, dataset = tmp_path / "runs", tmp_path / "dataset"
    write_many(reports, N_REPORTS)
    (reports / "bad.ncu-rep").write_bytes(b"NVR\0\x02\0\0\0\x08\x07")
    with dask_cluster(tmp_path, 2) as cluster:
        command = [sys.executable, "-m", "ncuroof", "ingest", reports, "-o", dataset, "--scheduler", cluster.address]

        first = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        wait_for(lambda: n_files(dataset) >= FEW, "the first reports of the dataset")
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        n_before = n_files(dataset)
        assert FEW <= n_before < N_REPORTS

        second = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: n_files(dataset) > n_before, "more reports of the dataset")
        cluster.kill(0)
        assert n_files(dataset) < N_REPORTS, "the worker died too late to tell anything"
        _, said = second.communicate(timeout=PATIENCE_S)

    assert second.returncode == 1, said  # of the bad file alone
    assert "1 of 41 reports could not be ingested" in said
    rows = pl.read_parquet(sorted(dataset.glob("kernels/*/*.parquet")))
    assert rows.height == N_REPORTS * N_LAUNCHES
    assert rows["report_sha256"].n_unique() == N_REPORTS
    assert rows.select("report_sha256", "id").n_unique() == rows.height
    assert set(rows["report_file"]) == {f"run{number:05}.ncu-rep" for number in range(N_REPORTS)}
    assert n_files(dataset) == N_REPORTS


def test_an_interrupt_ends_it_in_one_line(tmp_path: Path) -> None:
    """Ctrl-C reaches the worker processes as well, which leave it to the program to say so."""
    write_many(tmp_path / "runs", N_REPORTS)
    command = [
        sys.executable,
        "-m",
        "ncuroof",
        "ingest",
        tmp_path / "runs",
        "-o",
        tmp_path / "dataset",
        "--workers",
        "2",
    ]
    program = subprocess.Popen([*command, "-q"], stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: n_files(tmp_path / "dataset") >= FEW, "the first reports of the dataset")
    os.killpg(program.pid, signal.SIGINT)
    _, said = program.communicate(timeout=PATIENCE_S)
    assert (program.returncode, said) == (130, "\nncuroof: interrupted\n")


def test_an_interrupt_while_the_workers_start_ends_it_in_one_line(tmp_path: Path) -> None:
    """Their first lines of Python, which no handler of theirs can guard, are not interrupted either."""
    write_many(tmp_path / "runs", FEW)
    command = [sys.executable, "-m", "ncuroof", "ingest", tmp_path / "runs", "-o", tmp_path / "dataset", "-q"]
    program = subprocess.Popen([*command, "--workers", "3"], stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: has_workers(program.pid), "the first worker")
    os.killpg(program.pid, signal.SIGINT)
    _, said = program.communicate(timeout=PATIENCE_S)
    assert (program.returncode, said) == (130, "\nncuroof: interrupted\n")


def has_workers(pid: int) -> bool:
    listed = subprocess.run(["ps", "-o", "args=", "-g", str(pid)], capture_output=True, text=True, check=False).stdout
    return "multiprocessing.spawn" in listed


def n_files(dataset: Path) -> int:
    return len(list(dataset.glob("kernels/*/*.parquet")))
