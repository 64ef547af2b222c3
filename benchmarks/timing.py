"""Times programs and functions side by side: every round runs each of them once, so that a busy machine affects all alike."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True)
class Run:
    """One run of a program: wall-clock seconds, CPU seconds, and peak resident memory."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Spread:
    """Median, minimum and maximum of several measurements, in seconds."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        return cls(statistics.median(seconds), min(seconds), max(seconds))

    def __str__(self) -> str:
        unit, factor = ("s", 1) if self.median >= 1 else ("ms", 1e3)
        return f"{self.median * factor:.3g} {unit} ({self.least * factor:.3g}–{self.most * factor:.3g})"


def run(command: Sequence[str | Path]) -> Run:
    """Run a program to its end and discard its output.

    Raises:
        RuntimeError: it failed.
    """
    starter = [sys.executable, "-S", "-E", Path(__file__).with_name("launch.py")]
    printed = subprocess.run([*starter, *command], capture_output=True, text=True, check=True).stdout
    seconds, cpu_seconds, peak_bytes, exit_code = printed.split()
    if exit_code != "0":
        raise RuntimeError(f"{exit_code} from {' '.join(map(str, command))}")
    return Run(float(seconds), float(cpu_seconds), int(peak_bytes))


def side_by_side(tasks: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, list[Run]]:
    """Return each task's runs, one per round, after a first round that only warms the disk cache."""
    runs: dict[str, list[Run]] = {name: [] for name in tasks}
    for number in range(rounds + 1):
        for name, task in tasks.items():
            done = task()
            if number:
                runs[name].append(done)
    return runs


def spread(runs: Sequence[Run]) -> Spread:
    """Return how long the runs took."""
    return Spread.of([one.seconds for one in runs])


def cpu_spread(runs: Sequence[Run]) -> Spread:
    """Return how long processors worked for the runs, which a busy machine changes less."""
    return Spread.of([one.cpu_seconds for one in runs])


@cache
def ncu() -> Path | None:
    """Return the path of ncu: from NCUROOF_NCU, PATH, or the cache folder; None if there is none."""
    named = os.environ.get("NCUROOF_NCU") or shutil.which("ncu")
    path = Path(named) if named else Path.home() / ".cache" / "nsight-compute" / "ncu"
    return path if path.exists() else None


def raw_csv(tool: Path, report: Path) -> list[str | Path]:
    """Return the command with which ncu prints every counter of a report."""
    return [tool, "--import", report, "--page", "raw", "--csv"]


def machine() -> str:
    """Return what the numbers depend on: cores, versions and load, but nothing that identifies the machine."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parts = [f"{n_cores} cores", f"Python {platform.python_version()}", f"polars {pl.__version__}"]
    tool = ncu()
    if tool is not None:
        printed = subprocess.run([str(tool), "--version"], capture_output=True, text=True, check=False).stdout
        version = next((line.split()[1] for line in printed.splitlines() if line.startswith("Version")), "")
        parts.append(f"ncu {version}".rstrip())
    return " · ".join([*parts, f"load {os.getloadavg()[0]:.1f} at the start"])


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with the first column aligned left, the others right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, ["-" * width for width in widths], *rows):
        first, *others = row
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))]
        print("  ".join(cells).rstrip())
    print()
