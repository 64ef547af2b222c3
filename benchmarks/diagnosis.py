"""Times the analysis alone, in memory, for up to 100 000 kernels; the goal is five seconds."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.reports import REPORT
from benchmarks.timing import Spread, print_table
from ncuroof.diagnosis import diagnose, group_launches, summarise, unit_weights
from ncuroof.metrics import measure
from ncuroof.reading import read
from ncuroof.roofline import roofline

if TYPE_CHECKING:
    from ncuroof.ingest import RawReport

SIZES = (1_000, 10_000, 100_000)
GOAL_SECONDS = 5


def benchmark(rounds: int) -> None:
    """Print how long each stage of the analysis takes, and whether the time grows in proportion to the number of kernels."""
    (raw,) = read(REPORT).raw
    reports = {n_kernels: repeated(raw, n_kernels) for n_kernels in SIZES}
    runs_by_size: dict[int, list[dict[str, float]]] = {n_kernels: [] for n_kernels in SIZES}
    for number in range(rounds + 1):
        for n_kernels, report in reports.items():
            seconds = _analyse(report)
            if number:
                runs_by_size[n_kernels].append(seconds)
    print(f"Analysis of tables in memory, {rounds} rounds; the goal for {SIZES[-1]:,} kernels is {GOAL_SECONDS} s\n")
    whole = {n: Spread.of([sum(seconds.values()) for seconds in runs]) for n, runs in runs_by_size.items()}
    rows = []
    for n_kernels, runs in runs_by_size.items():
        stages = [f"{Spread.of([seconds[stage] for seconds in runs]).median * 1e3:.0f} ms" for stage in runs[0]]
        per_kernel = f"{whole[n_kernels].median / n_kernels * 1e6:.3g} µs"
        rows.append([f"{n_kernels:,}", str(whole[n_kernels]), per_kernel, *stages])
    print_table(["kernels", "median (min–max)", "per kernel", *runs_by_size[SIZES[0]][0]], rows)
    before, last = SIZES[-2:]
    growth = whole[last].median / whole[before].median
    print(
        f"From {before:,} to {last:,} kernels the time grows {growth:.1f} times, the work {last / before:.0f} times.\n"
    )


def repeated(raw: RawReport, n_kernels: int) -> RawReport:
    """Return a report of `n_kernels` launches that repeats those of `raw`."""
    n_times = -(-n_kernels // raw.workloads.height)

    def again(table: pl.DataFrame) -> pl.DataFrame:
        return pl.concat([table] * n_times).head(n_kernels).rechunk()

    rows = {name: again(getattr(raw, name)) for name in ("workloads", "processes", "counters", "texts", "code")}
    return replace(raw, **rows)


def _analyse(raw: RawReport) -> dict[str, float]:
    """Return the seconds of each stage."""
    marks = [time.perf_counter()]
    measurements = measure([raw])
    marks.append(time.perf_counter())
    placed = roofline(measurements)
    marks.append(time.perf_counter())
    weights = unit_weights(measurements.kernels)
    diagnosis = diagnose(measurements, placed, weights)
    marks.append(time.perf_counter())
    summarise(measurements.kernels, placed.bounds, diagnosis.verdicts, weights)
    marks.append(time.perf_counter())
    group_launches(measurements.kernels, placed.bounds, diagnosis.verdicts, diagnosis.findings, weights)
    marks.append(time.perf_counter())
    stages = ("measure", "roofline", "diagnose", "summarise", "group")
    return {stage: after - before for stage, (before, after) in zip(stages, pairwise(marks), strict=True)}
