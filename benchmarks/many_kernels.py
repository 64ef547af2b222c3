"""Times reports of many kernels, beside NVIDIA's module and ncu: total, ratio, per kernel, CPU time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.reports import write_full_set
from benchmarks.timing import Spread, ncu, print_table, raw_csv, run, side_by_side, spread

if TYPE_CHECKING:
    from pathlib import Path

SIZES = (1, 100, 1000)
LARGE = 10_000


def benchmark(folder: Path, rounds: int, *, large: bool = False) -> None:
    """Print how the time grows with the number of kernels."""
    for n_kernels in (*SIZES, LARGE) if large else SIZES:
        report = write_full_set(folder / f"kernels-{n_kernels}.ncu-rep", n_kernels)
        size = report.stat().st_size / 1e6
        print(f"Kernels of a full set: {n_kernels:,} ({size:.3g} MB), {rounds} rounds\n")
        _size(report, n_kernels, rounds)
        report.unlink()


def _size(report: Path, n_kernels: int, rounds: int) -> None:
    python = [sys.executable, "-m"]
    commands = {
        "ncuroof: summary": [*python, "ncuroof", "report", report, "-o", "-"],
        "ncuroof: page": [*python, "ncuroof", "report", report, "-o", report.with_suffix(".html"), "--quiet"],
        "ncuroof: JSON document": [*python, "ncuroof", "report", report, "-o", "-", "--format", "json"],
        "ncuroof: summary, --reader nvidia": [*python, "ncuroof", "report", report, "-o", "-", "--reader", "nvidia"],
        "ncuroof: reading, native": [*python, "benchmarks.programs", "read_native", report],
        "ncuroof: reading, nvidia": [*python, "benchmarks.programs", "read_nvidia", report],
        "NVIDIA's module, every value": [*python, "benchmarks.programs", "module_all", report],
    }
    tool = ncu()
    if tool is not None:
        commands["ncu --page raw --csv"] = raw_csv(tool, report)
    runs = side_by_side({name: partial(run, command) for name, command in commands.items()}, rounds)
    ours = spread(runs["ncuroof: summary"]).median
    cpu_seconds = {name: Spread.of([one.cpu_seconds for one in done]).median for name, done in runs.items()}
    rows = []
    for name, done in runs.items():
        took = spread(done)
        memory = max(one.peak_bytes for one in done) / 1e6
        per_kernel = f"{took.median / n_kernels * 1e3:.3g} ms"
        worked = f"{cpu_seconds[name]:.3g} s", f"{cpu_seconds[name] / cpu_seconds['ncuroof: summary']:.2f}"
        rows.append([name, str(took), f"{took.median / ours:.2f}", per_kernel, *worked, f"{memory:.0f} MB"])
    header = [
        "process",
        "median (min–max)",
        "of the summary",
        "per kernel",
        "processor",
        "of the summary",
        "peak memory",
    ]
    print_table(header, rows)
    if tool is None:
        print("ncu is not installed: its row is left out\n")
    _verdict({name: spread(done).median for name, done in runs.items() if not name.startswith("ncuroof")}, ours)
    _in_process(report, rounds)


def _verdict(seconds_by_name: dict[str, float], ours: float) -> None:
    """Print which of NVIDIA's tools are faster, or how much slower they are."""
    faster = [f"{name} ({ours / seconds:.2f} times)" for name, seconds in seconds_by_name.items() if seconds < ours]
    if faster:
        print(f"Faster than the summary: {', '.join(faster)}.\n")
    else:
        slower = [f"{name} {seconds / ours:.1f} times" for name, seconds in seconds_by_name.items()]
        print(f"The summary is the fastest of them; as long take {', '.join(slower)}.\n")


def _in_process(report: Path, rounds: int) -> None:
    """Print times without start-up: with all modules imported, and for ncu its time minus that for one kernel."""
    runs_by_reader: dict[str, list[dict[str, float]]] = {"native": [], "nvidia": []}
    module, beyond_one, copied = [], [], []
    one_kernel = write_full_set(report.with_stem("one-kernel"), 1)
    tool = ncu()
    for _ in range(rounds):
        for reader, seconds in runs_by_reader.items():
            seconds.append(json.loads(_program("stages", report, reader)))
        module.append(json.loads(_program("module_all", report)))
        copied.append(_seconds_to_copy(report))
        if tool is not None:
            beyond_one.append(run(raw_csv(tool, report)).seconds - run(raw_csv(tool, one_kernel)).seconds)
    one_kernel.unlink()
    native, nvidia = (Spread.of([one["read"] for one in runs_by_reader[reader]]) for reader in runs_by_reader)
    summary = Spread.of([sum(one.values()) - one["imports"] for one in runs_by_reader["native"]])
    every = Spread.of(module)
    print(
        f"In process: reading {native}, with NVIDIA's module {nvidia}: {nvidia.median / native.median:.1f} times.\n"
        f"From the file to the text of the summary {summary}; every value with NVIDIA's module {every}: "
        f"{every.median / summary.median:.1f} times."
    )
    floor = Spread.of(copied)
    print(
        f"The floor, its bytes copied once from the disk's cache: {floor}, {report.stat().st_size / floor.median / 1e9:.1f} GB/s."
    )
    if beyond_one:
        csv = Spread.of(beyond_one)
        print(
            f"ncu --page raw --csv, less what it takes for one kernel, {csv}: {csv.median / summary.median:.1f} times."
        )
    print()


def _seconds_to_copy(report: Path) -> float:
    start = perf_counter()
    report.read_bytes()
    return perf_counter() - start


def _program(*words: str | Path) -> bytes:
    return subprocess.check_output([sys.executable, "-m", "benchmarks.programs", *words])
