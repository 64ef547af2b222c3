"""Times a report of one kernel from the command to the summary on the terminal; the goal is 0.6 s on two cores."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.reports import write_full_set, write_recorded
from benchmarks.timing import Spread, cpu_spread, ncu, print_table, raw_csv, run, side_by_side, spread
from ncuroof.ingest import open_report
from ncuroof.metrics import selection

GOAL_SECONDS = 0.6
_NCU = "ncu --page raw --csv"


def benchmark(folder: Path, rounds: int) -> None:
    """Print how long one kernel takes, beside a bare interpreter and NVIDIA's tools, and how long each stage takes."""
    one = write_full_set(folder / "one.ncu-rep", 1)
    print(f"One kernel of a full set, whole processes, {rounds} rounds; the goal for the summary is {GOAL_SECONDS} s\n")
    _processes(one, rounds)
    for recorded in write_recorded(folder):
        n_kernels = open_report(recorded, selection=selection()).workloads.height
        print(f"{recorded.stem}, recorded on an H200: {n_kernels} launches, {recorded.stat().st_size / 1e6:.2g} MB\n")
        _processes(recorded, rounds)
    print("One kernel, stage by stage\n")
    _stages(one, rounds)


def _processes(report: Path, rounds: int) -> None:
    counters = report.with_suffix(".txt")
    counters.write_text("\n".join(open_report(report, selection=selection()).counters.columns), encoding="utf-8")
    python = [sys.executable, "-m"]
    commands = {
        "ncuroof: summary": [*python, "ncuroof", "report", report, "-o", "-"],
        "ncuroof: summary and page": [*python, "ncuroof", "report", report, "--force"],
        "ncuroof: JSON document": [*python, "ncuroof", "report", report, "-o", "-", "--format", "json"],
        "ncuroof: --help": [*python, "ncuroof", "report", "--help"],
        "bare interpreter (python -c pass)": [sys.executable, "-c", "pass"],
        "import polars": [sys.executable, "-c", "import polars"],
    }
    if importlib.util.find_spec("ncu_report") is not None:
        commands["NVIDIA's module, same counters"] = [*python, "benchmarks.programs", "module_same", report, counters]
    tool = ncu()
    if tool is not None:
        commands[_NCU] = raw_csv(tool, report)
    runs = side_by_side({name: partial(run, command) for name, command in commands.items()}, rounds)
    base = "ncuroof: summary" if tool is None else _NCU
    of, of_processor = spread(runs[base]).median, cpu_spread(runs[base]).median
    rows = []
    for name, done in runs.items():
        took, worked = spread(done), cpu_spread(done)
        memory = max(one.peak_bytes for one in done) / 1e6
        ratios = f"{took.median / of:.2f}", f"{worked.median / of_processor:.2f}"
        rows.append([name, str(took), ratios[0], str(worked), ratios[1], f"{memory:.0f} MB"])
    header = ["process", "median (min–max)", f"of {base}", "processor", f"of {base}", "peak memory"]
    print_table(header, rows)
    if tool is None:
        print("ncu is not installed: its row is left out\n")


def _stages(report: Path, rounds: int) -> None:
    command = [sys.executable, "-m", "benchmarks.programs", "stages", str(report)]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(rounds)]
    rows = [[stage, str(Spread.of([seconds[stage] for seconds in runs]))] for stage in runs[0]]
    rows.append(["all stages", str(Spread.of([sum(seconds.values()) for seconds in runs]))])
    print_table(["stage", "median (min–max)"], rows)
