"""Times recordings of a training script on a GPU: one step, a share of GPU time, the whole run, beside NVIDIA's full set."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import ncu, print_table
from ncuroof.collect.counting_run import RUNNER
from ncuroof.collect.report_paths import existing_reports

SCRIPT = Path(__file__).parent.parent / "examples" / "train_transformer.py"
STEP = "10"
ONE_STEP = "--step 10 --annotate"
WAYS = {
    "--cover 95%": ["--cover", "95%"],
    "whole run": [],
    ONE_STEP: ["--step", STEP, "--annotate"],
    "--step 10 --cover 95%": ["--step", STEP, "--cover", "95%"],
}
"""Options of `ncuroof profile`."""

N_FULL = 8
"""Launches of the step to record with the full set: all would take minutes, and each takes about the same time."""


@dataclass(frozen=True)
class Recorded:
    """Result of one way to record: wall-clock seconds in all, launches, passes, and what the document says of the counting run."""

    seconds: float
    n_launches: int
    n_passes: int
    n_counted: int
    covered_frac: float
    replayed_frac: float
    """Weighted GPU time of the profiled launches under ncu, divided by their time in the counting run."""


def benchmark(folder: Path) -> None:
    """Print how long each way takes, and what it records."""
    if ncu() is None or shutil.which("nvidia-smi") is None:
        print("Recording needs a GPU, its driver and ncu: left out\n")
        return
    alone = _seconds([sys.executable, SCRIPT], folder)
    print(f"A training step of {SCRIPT.name}, whole commands, once each; the script alone takes {alone:.1f} s\n")
    first_s, each_s = _full_set(folder)
    print(f"ncu --set full: {first_s:.1f} s for one launch, {each_s:.2f} s for each more", flush=True)
    ways = {}
    for number, (name, options) in enumerate(WAYS.items()):
        ways[name] = _profile(folder / f"{number}.ncu-rep", options)
        print(f"{name}: {ways[name]}", flush=True)  # kept even if the next way fails
    full_s = first_s + (ways[ONE_STEP].n_counted - 1) * each_s
    rows = [_row(name, way, full_s) for name, way in ways.items()]
    rows.append(
        [f"ncu --set full of the step, extrapolated from {1 + N_FULL} launches", f"{full_s:.0f} s", "1.00", *[""] * 5]
    )
    header = ["command", "takes", "of the full set", "recorded", "counted", "passes", "GPU time", "with replays"]
    print_table(header, rows)


def _row(name: str, way: Recorded, full_s: float) -> list[str]:
    times = [f"{way.seconds:.0f} s", f"{way.seconds / full_s:.2f}"]
    numbers = [str(way.n_launches), str(way.n_counted), str(way.n_passes)]
    return [f"ncuroof profile, {name}", *times, *numbers, f"{way.covered_frac:.1%}", f"{way.replayed_frac:.2f}"]


def _profile(report: Path, options: list[str]) -> Recorded:
    command = [sys.executable, "-m", "ncuroof", "profile", *options, "-o", report, SCRIPT]
    seconds = _seconds(command, report.parent)
    document = report.with_suffix(".json")
    ((_, found),) = existing_reports(report, of_ranks=False)
    _seconds([sys.executable, "-m", "ncuroof", "report", found, "--quiet", "-o", document], report.parent)
    analysis = json.loads(document.read_text(encoding="utf-8"))
    kernels, weighting = analysis["kernels"], analysis["summary"]["weighting"]
    of_ncu_ns, counted_ns = (
        sum(kernel[name] * kernel["n_represented"] for kernel in kernels if kernel["counted_average_ns"])
        for name in ("duration_ns", "counted_average_ns")
    )
    return Recorded(
        seconds=seconds,
        n_launches=len(kernels),
        n_passes=sum(int(kernel["passes"] or 0) for kernel in kernels),
        n_counted=weighting["n_launches"],
        covered_frac=weighting["covered_frac"],
        replayed_frac=of_ncu_ns / counted_ns,
    )


def _full_set(folder: Path) -> tuple[float, float]:
    """Return the seconds to record one launch of the step, and those for each further launch, measured with a few."""

    def seconds(count: int) -> float:
        asked = f"--set full --clock-control none --profile-from-start off --launch-count {count}".split()
        runner = [
            sys.executable,
            RUNNER,
            *f"--step {STEP} --of optimizer --stop-after --".split(),
            SCRIPT,
        ]
        return _seconds([ncu(), *asked, "--export", folder / f"full_{count}", *runner], folder)

    first, more = seconds(1), seconds(1 + N_FULL)
    return first, (more - first) / N_FULL


def _seconds(command: list[str | Path | None], folder: Path) -> float:
    """Run a command and return how long it took, in s.

    Raises:
        RuntimeError: it failed; the message holds the end of its output.
    """
    start = time.perf_counter()
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"{done.returncode} from {' '.join(map(str, command))}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return time.perf_counter() - start
