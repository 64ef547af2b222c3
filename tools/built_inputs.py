"""Inputs that `tools/output_digests.py` builds: reports of every GPU and lack of counters, damaged ones, and what ncu prints."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import zstandard

from tests.support import demo
from tests.support.console import log, section
from tests.support.constructed_counters import GROUPS, kernel
from tests.support.constructed_gpus import GPUS
from tests.support.every_unit import every_unit
from tests.support.lined import lined_report
from tests.support.many_reports import small_report
from tests.support.printed import long_table, wide_table
from tests.support.report_writer import METRICS_BY_CHIP, Instances, Kernel, Rule, write_report

_TIMED = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0}
_N_FLIPPED = 12


def write_inputs(folder: Path) -> None:
    """Write all of them to a folder; the same bytes every time."""
    for place, content in (*_constructed(), *_damaged(), *_printed()):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _constructed() -> Iterator[tuple[str, bytes]]:
    """Yield reports of each GPU, of each group of counters left out, with source lines, with rules, and of other workloads."""
    for name, gpu in GPUS.items():
        operations = sorted(gpu.tensor_operations)
        launches = [replace(every_unit(name, path), name=f"on_{path}", tensor={path: 1e7}) for path in operations]
        yield f"constructed/{name}.ncu-rep", write_report([kernel(launch) for launch in launches])
    planted = [each.kernel for each in demo.PLANTED]
    for group in GROUPS:
        yield f"constructed/without_{group}.ncu-rep", write_report([kernel(each, [group]) for each in planted])
    rule = Rule("SOLBottleneck", "rule", "SpeedOfLight", "title", "A message.", speedup=("global", 50.0))
    spread = Instances((1.0, 2.0), total=3.0)
    mixed = [
        Kernel("ranged", _TIMED, kind="range"),
        Kernel("graphed", _TIMED, kind="graph"),
        Kernel("listed", _TIMED, kind="cmdlist", rules=(rule,)),
        Kernel("hostile\x1b[31m<script>alert(1)</script>", {**_TIMED, "i": spread}, nvtx=("a", "b/c"), rules=(rule,)),
        Kernel("failed", {**_TIMED, "gpu__time_duration.sum": math.nan}),
        Kernel("endless", {**_TIMED, "gpu__time_duration.sum": math.inf}),
    ]
    yield "constructed/mixed.ncu-rep", write_report(mixed, kernels_per_block=2)
    yield "constructed/none.ncu-rep", write_report([])
    yield "constructed/lined.ncu-rep", lined_report()
    yield "constructed/small.ncu-rep", small_report()
    yield "constructed/small_later.ncu-rep", small_report(3, times_us=(100.0, 260.0, 300.0))


def _damaged() -> Iterator[tuple[str, bytes]]:
    whole = demo.report()
    yield "damaged/cut.ncu-rep", whole[: len(whole) // 2]
    yield "damaged/cut_early.ncu-rep", whole[:1000]
    yield "damaged/cut_late.ncu-rep", whole[:-7]
    yield "damaged/magic_only.ncu-rep", whole[:4]
    yield "damaged/empty.ncu-rep", b""
    yield "damaged/zeros.ncu-rep", bytes(1000)
    yield "damaged/text.ncu-rep", b"no report\n" * 10
    yield "damaged/doubled.ncu-rep", whole + whole
    yield "damaged/zeros_behind.ncu-rep", whole + bytes(1000)
    yield "damaged/zeros_within.ncu-rep", whole[:50_000] + bytes(2000) + whole[52_000:]
    yield "damaged/compressed_cut.ncu-repz", zstandard.compress(whole)[:-1000]
    yield "damaged/not_compressed.ncu-repz", whole
    for number in range(_N_FLIPPED):
        chance = random.Random(number)  # noqa: S311  the same flips every time
        flipped = bytearray(whole)
        for _ in range(10 ** (number % 4)):
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        yield f"damaged/flipped_{number:02}.ncu-rep", bytes(flipped)


def _printed() -> Iterator[tuple[str, bytes]]:
    """Yield tables and logs as ncu prints them, and as they are pasted, cut and mixed with other output."""
    counters = {
        "gpu__time_duration.sum": ("usecond", "12.34"),
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "1.234,5"),
        "dram__bytes.sum": ("Kbyte", "1,234.56"),
        "device__attribute_display_name": ("", "NVIDIA A100-SXM4-80GB"),
    }
    speed = section(
        "GPU Speed Of Light Throughput",
        [
            ("SM Frequency", "Ghz", "1.41"), ("Memory Throughput", "%", "84.25"), ("DRAM Throughput", "%", "84.25"),
            ("Duration", "us", "1,234.50"), ("Compute (SM) Throughput", "%", "22.18"),
        ],
    )  # fmt: skip
    old = section("GPU Speed Of Light", [("SOL FB", "%", "36,50"), ("Duration", "us", "1 234,50")], has_header=False)
    rule = "    OPT   Est. Speedup: 12.5%\n          This kernel grid is too small to fill the available resources.\n"
    wide, long = wide_table([counters] * 3), long_table([counters] * 2, rules=True)
    other = "other(float) (1, 1, 1)x(32, 1, 1), Context 1, Stream 13, Device 1, CC 9.0"
    connected, nothing = "==PROF== Connected to process 5 (/app)\n", "==WARNING== No kernels were profiled.\n"
    denied = (
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n"
    )
    texts = {
        "wide.csv": wide,
        "long.csv": long,
        "windows.csv": wide.replace("\n", "\r\n"),
        "cut.csv": wide[:-40],
        "noisy.csv": f"{connected}hello\n{wide}it's done\n{wide}",
        "no_rows.csv": wide_table([counters]).partition("\n")[0],
        "nan.csv": wide.replace("12.34", "nan"),
        "other.csv": "a,b\n1,2\n",
        "terminal.log": log(speed, rule),
        "several.log": f"{connected}Epoch 1\n{log(speed)}  {other}\n{speed}",
        "old.log": log(old, launch="fn(int), 2020-Apr-07 17:01:05, Context 1, Stream 7"),
        "unnamed.log": speed + rule,
        "quoted.log": "".join(f"> {line}\n" for line in log(speed, rule).splitlines()),
        "cut.log": log(speed)[:-200],
        "no_tables.log": log(),
        "nothing.log": connected + nothing,
        "denied.log": connected + denied + nothing,
        "progress.log": f"{connected}==PROF== Report: /data/run.ncu-rep\n",
        "nvprof.log": "==4711== NVPROF is profiling process 4711, command: ./a\n",
        "text.txt": "Epoch 1\nDuration us 5\n",
    }
    yield from ((f"printed/{name}", text.encode()) for name, text in texts.items())
    yield "printed/utf16.csv", wide.encode("utf-16")
    yield "printed/bytes.log", bytes(range(256)) * 4
