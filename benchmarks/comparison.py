"""Compares two runs of 1 000 and 10 000 kernels in memory: a third unchanged, a third renamed, a third fused in pairs."""

from __future__ import annotations

import time

from benchmarks.timing import Spread, print_table
from ncuroof.comparison import Run, compare, judge, parse_gate
from ncuroof.present.documents.comparison import comparison_document
from tests.comparison.runs import launch, run

SIZES = (1_000, 10_000)
GOAL_SECONDS = 5


def benchmark(rounds: int) -> None:
    """Print how long comparing takes, including gates and document, and how the kernels were matched."""
    print(
        f"Comparing two runs in memory, {rounds} rounds; the goal for {SIZES[-1]:,} kernels each is {GOAL_SECONDS} s\n"
    )
    gates = [parse_gate("time:+5%"), parse_gate("kernel(.*).time:+5%"), parse_gate("findings.high==0")]
    rows = []
    for n_kernels in SIZES:
        before, after = _sides(n_kernels)
        seconds = []
        for _ in range(rounds):
            begin = time.perf_counter()
            comparison = compare(before, after)
            comparison_document(comparison, judge(gates, comparison))
            seconds.append(time.perf_counter() - begin)
        how = [found.how.value for found in comparison.matching.matches]
        counts = ", ".join(f"{how.count(name)} {name}" for name in sorted(set(how)))
        rows.append([f"{n_kernels:,}", str(Spread.of(seconds)), counts])
    print_table(["kernels", "median (min–max)", "matched as"], rows)


def _sides(n_kernels: int) -> tuple[Run, Run]:
    """Return two runs: of every six kernels, two stay, two get another number at the end of their name, and two become one."""
    old, new = [], []
    for number in range(n_kernels // 6):
        word = "".join(chr(97 + int(digit)) for digit in str(number))
        for part in "ab":
            old.append(launch(f"same_{word}_{part}"))
            new.append(launch(f"same_{word}_{part}", 103.0))
            old.append(launch(f"renamed_{word}_{part}_17"))
            new.append(launch(f"renamed_{word}_{part}_{number}"))
        old += [launch(f"first_{word}"), launch(f"second_{word}")]
        new.append(launch(f"fused_{word}_{word}", 120.0, **{"work.fp32.flop": 2e9}))
    return run(*old), run(*new)
