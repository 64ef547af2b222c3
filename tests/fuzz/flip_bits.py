"""`python -m tests.fuzz.flip_bits [FLIPS] [SEED]`: random bits of the simulated report flipped, then read with our own reader.

Half of the reports get one flip, the others up to a thousand. Whatever is no named error, takes long, or gives a number that no
counter can have is printed, with what brings it back.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections import Counter

from ncuroof.errors import NcuroofError
from ncuroof.ingest.embedded_charts import read_charts
from ncuroof.ingest.framing import walk
from ncuroof.ingest.native.reader import read_native
from ncuroof.ingest.raw_report import GREATEST_VALUE, DeclinedError
from ncuroof.ingest.report_files import workload_processes
from ncuroof.ingest.session import read_session
from ncuroof.metrics import selection
from tests.support.demo import REPORT

LONGEST_S = 5.0


def main(n_flips: int, seed: int) -> int:
    """Flip so many bits; return how many reports did what none may do."""
    whole, wanted = REPORT.read_bytes(), selection()
    ends: Counter[str] = Counter()
    n_done = n_reports = n_wrong = 0
    slowest = 0.0
    while n_done < n_flips:
        chance = random.Random(f"{seed}/{n_reports}")
        n_here = chance.choice([1, 1, 1, 10, 100, 1000])
        content = bytearray(whole)
        for _ in range(n_here):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        begin = time.perf_counter()
        try:
            ends[_read(bytes(content), wanted)] += 1
        except Exception as error:
            print(f"seed {seed}/{n_reports}: {error!r}")
            n_wrong += 1
        took = time.perf_counter() - begin
        slowest = max(slowest, took)
        n_wrong += took > LONGEST_S
        n_done += n_here
        n_reports += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{n_done} flips in {n_reports} reports: {dict(ends)}; slowest {slowest:.2f} s, peak {peak:.0f} MB, {n_wrong} wrong"
    )
    return n_wrong


def _read(content: bytes, wanted: object) -> str:
    try:
        framing = walk(content)
        read_charts(content, framing)
        session = read_session(block.header for block in framing.blocks)
        tables = read_native(content, framing, wanted, "flipped")  # type: ignore[arg-type]
    except NcuroofError as error:
        return type(error).__name__
    except DeclinedError:
        return "declined"
    workload_processes(framing, session.processes, tables.workloads.height)
    largest = [column.abs().max() for column in tables.counters]
    if any(value is not None and not value <= GREATEST_VALUE for value in largest):
        raise ValueError("a number that no counter can have")
    return "cut" if framing.damage else "whole"


if __name__ == "__main__":
    sys.exit(main(*map(int, [*sys.argv[1:], *("1000000", "0")[len(sys.argv) - 1 :]])) > 0)
