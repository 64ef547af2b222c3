"""Times a report of one kernel from the command to the summary on the terminal; the goal is 0.6 s on two cores."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.reports import REPORT, write_full_set
from benchmarks.timing import Spread, ncu, print_table, raw_csv, run, side_by_side, spread
from ncuroof.ingest import open_report
from ncuroof.metrics import selection

GOAL_SECONDS = 0.6


def benchmark(folder: Path, rounds: int) -> None:
    """Print how long one kernel takes, beside a bare interpreter and NVIDIA's tools, and how long each stage takes."""
    one = write_full_set(folder / "one.ncu-rep", 1)
    print(f"One kernel of a full set, whole processes, {rounds} rounds; the goal for the summary is {GOAL_SECONDS} s\n")
    _processes(one, rounds)
    print("The committed report of 17 kernels\n")
    _processes(Path(shutil.copy(REPORT, folder)), rounds)
    print("One kernel, stage by stage\n")
    _stages(one, rounds)


def _processes(report: Path, rounds: int) -> None:
    counters = report.with_suffix(".txt")
    counters.write_text("\n".join(open_report(report, selection=selection()).counters.columns), encoding="utf-8")
    python = [sys.executable, "-m"]
    commands = {
        "ncuroof: summary": [*python, "ncuroof", "report", report, "-o", "-"],
        "ncuroof: summary and page": [*python, "ncuroof", "report", report, "--force"],
        "bare interpreter (python -c pass)": [sys.executable, "-c", "pass"],
        "import polars": [sys.executable, "-c", "import polars"],
        "NVIDIA's module, same counters": [*python, "benchmarks.programs", "module_same", report, counters],
    }
    tool = ncu()
    if tool is not None:
        commands["ncu --page raw --csv"] = raw_csv(tool, report)
    runs = side_by_side({name: partial(run, command) for name, command in commands.items()}, rounds)
    ours = spread(runs["ncuroof: summary"]).median
    rows = []
    for name, done in runs.items():
        took = spread(done)
        memory = max(one.peak_bytes for one in done) / 1e6
        rows.append([name, str(took), f"{took.median / ours:.2f}", f"{memory:.0f} MB"])
    print_table(["process", "median (min–max)", "of the summary", "peak memory"], rows)
    if tool is None:
        print("ncu is not installed: its row is left out\n")


def _stages(report: Path, rounds: int) -> None:
    command = [sys.executable, "-m", "benchmarks.programs", "stages", str(report)]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(rounds)]
    rows = [[stage, str(Spread.of([seconds[stage] for seconds in runs]))] for stage in runs[0]]
    rows.append(["all stages", str(Spread.of([sum(seconds.values()) for seconds in runs]))])
    print_table(["stage", "median (min–max)"], rows)
