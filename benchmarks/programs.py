# ruff: noqa: PLC0415  a program imports what it needs while it is timed
"""Programs that the benchmarks time as processes: `python -m benchmarks.programs NAME REPORT [COUNTERS]`.

This module imports nothing else, so that a program's imports are part of its time.
"""

from __future__ import annotations

import sys
import time


def stages(report: str, reader: str = "auto") -> None:
    """Analyse a report like `ncuroof report REPORT -o -`; print the seconds of each stage as JSON."""
    import json

    seconds = {}
    last = time.perf_counter()

    def done(stage: str) -> None:
        nonlocal last
        now = time.perf_counter()
        seconds[stage] = now - last
        last = now

    from ncuroof.cli.program import collect_rarely

    collect_rarely()
    import ncuroof.cli.report  # noqa: F401  the command's own module
    from ncuroof.analysis import Analysis
    from ncuroof.diagnosis import diagnose, load_rules, summarise, unit_weights
    from ncuroof.metrics import load_catalogue, measure
    from ncuroof.present.texts.terminal import to_text
    from ncuroof.reading import read
    from ncuroof.roofline import roofline

    done("imports")
    load_catalogue()
    load_rules()
    done("catalogue and rules")
    reports = read(report, reader=reader)
    done("read")
    measurements = measure(reports.raw)
    done("measure")
    placed = roofline(measurements)
    done("roofline")
    weights = unit_weights(measurements.kernels)
    diagnosis = diagnose(measurements, placed, weights)
    summary = summarise(measurements.kernels, placed.bounds, diagnosis.verdicts, weights)
    done("diagnose")
    to_text(Analysis(reports.raw, measurements, placed, diagnosis, summary, weights))
    done("present")
    print(json.dumps(seconds))


def read_native(report: str) -> None:
    """Read the counters that ncuroof needs, with its own reader."""
    from ncuroof import read

    read(report, reader="native")


def read_nvidia(report: str) -> None:
    """Read the same counters into the same tables, with NVIDIA's module."""
    from ncuroof import read

    read(report, reader="nvidia")


def module_all(report: str) -> None:
    """Read every value of every kernel with NVIDIA's module; print the seconds, without its import, as JSON."""
    import ncu_report

    begun = time.perf_counter()
    for action in _actions(ncu_report.load_report(report)):
        _ = {name: action.metric_by_name(name).value() for name in action.metric_names()}
    print(time.perf_counter() - begun)


def module_same(report: str, counters: str) -> None:
    """Read the counters that ncuroof needs, named one per line in the file `counters`, with NVIDIA's module alone."""
    from pathlib import Path

    import ncu_report

    wanted = Path(counters).read_text(encoding="utf-8").split()
    for action in _actions(ncu_report.load_report(report)):
        metrics = {name: action.metric_by_name(name) for name in wanted}
        _ = {name: metric.value() for name, metric in metrics.items() if metric is not None}


def _actions(context):
    for profiled in (context.range_by_idx(i) for i in range(context.num_ranges())):
        for index in range(profiled.num_actions()):
            yield profiled.action_by_idx(index)


if __name__ == "__main__":
    programs = (stages, read_native, read_nvidia, module_all, module_same)
    {program.__name__: program for program in programs}[sys.argv[1]](*sys.argv[2:])
