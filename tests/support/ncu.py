"""Runs NVIDIA's own ncu as the reference: it reads reports on machines without a GPU too."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from pathlib import Path


def find_ncu() -> Path | None:
    """Return the ncu named by NCUROOF_NCU, else the one on PATH, else the one unpacked in the user's cache."""
    candidates = (
        os.environ.get("NCUROOF_NCU"),
        shutil.which("ncu"),
        str(Path.home() / ".cache/nsight-compute/ncu"),
    )
    return next((Path(path) for path in candidates if path and Path(path).exists()), None)


def raw_page(ncu: Path, report: Path) -> list[dict[str, str]]:
    """Return the counters that ncu prints of a report, in base units, as a dictionary per kernel."""
    command = [str(ncu), "--import", str(report), "--page", "raw", "--csv", "--print-units", "base"]
    printed = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True).stdout
    lines = printed.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith('"ID"'))
    names, _units, *rows = csv.reader(io.StringIO("\n".join(lines[start:])))
    return [dict(zip(names, row, strict=True)) for row in rows]


def number(text: str) -> float | None:
    """Return a printed number; None if it is missing, not a number, or a list of instances."""
    try:
        return float(text.replace(",", "").split(" ")[0])
    except ValueError:
        return None


def print_page(ncu: Path, report: Path, *options: str) -> bytes:
    """Return what ncu prints of a report as CSV."""
    return subprocess.run(
        [str(ncu), "--import", str(report), "--csv", *options], capture_output=True, check=True
    ).stdout


def print_terminal_page(ncu: Path, report: Path, *options: str) -> bytes:
    """Return what ncu prints of a report for a terminal."""
    return subprocess.run([str(ncu), "--import", str(report), *options], capture_output=True, check=True).stdout
