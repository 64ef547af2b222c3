"""`python -m tests.fuzz.fuzz_analysis [SECONDS] [SEED] [FOLDER]`: damaged reports, analysed and written, for so many seconds.

Whatever ends in anything but a document or a named error, takes long, or gives a number that cannot be is printed with what brings
it back, and kept in FOLDER if one is named. Each core runs one: with seeds of their own.
"""

from __future__ import annotations

import json
import math
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ncuroof.errors import NcuroofError
from ncuroof.present.documents.json_text import json_text
from ncuroof.present.texts.terminal import TerminalOptions, to_text
from ncuroof.reading import read
from tests.fuzz.damage import flipped, restructured
from tests.support import demo
from tests.support.lined import lined_report
from tests.support.report_writer import METRICS_BY_CHIP, Instances, Kernel, Rule, write_report

LONGEST_S, LONGEST_S_PER_MB = 3.0, 0.25
"""Processor time for a report, and for each MB of it."""

_NEVER_NEGATIVE = ("_ns", "_hz", "_bytes", "_per_s", "waves", "flop")
_DIFFERENCES = ("delta", "excess")


def seeds() -> list[bytes]:
    """Return whole reports with every kind of message that is read."""
    timed = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0, "dram__bytes.sum.per_second": 1e12}
    rule = Rule("r", "rule", "s", "title", "message", speedup=("global", 50.0))
    several = {**timed, "i": Instances((1.0, 2.0), total=3.0)}
    kinds = [
        Kernel("k", several, nvtx=("step", "aten::mm"), rules=(rule,), sections=("s",)),
        Kernel("g", timed, kind="graph"),
        Kernel("r", timed, kind="range"),
        Kernel("c", timed, kind="cmdlist", rules=(rule,)),
    ]
    return [demo.REPORT.read_bytes(), lined_report(), write_report(kinds, kernels_per_block=2)]


def case(number: int, seed: int, whole: list[bytes]) -> bytes:
    """Return a damaged report; the same one for the same number and seed."""
    chance = random.Random(f"{seed}/{number}")
    damaged = chance.choice([flipped, restructured, restructured, restructured])
    return damaged(chance.choice(whole), chance)


def ended(path: Path) -> str:
    """Return how the analysis of a report ends: "whole", "cut", or the name of a named error.

    Raises:
        Exception: something that no report may bring about.
    """
    begin = time.process_time()
    try:
        found = read(path)
        analysis = found.analyse()
        document = json.loads(json_text(analysis.to_dict()), parse_constant=_refuse)
        to_text(analysis, TerminalOptions(is_verbose=True)).encode()
    except NcuroofError as error:
        return type(error).__name__
    for name, value in _numbers(document):
        if value < 0 and name.endswith(_NEVER_NEGATIVE) and not name.startswith(_DIFFERENCES):
            raise ValueError(f"{name} = {value}")
    total, parts = document["summary"]["duration_ns"], document["summary"]["by_verdict"].values()
    if total is not None and not math.isclose(total, sum(each["duration_ns"] or 0 for each in parts), rel_tol=1e-9):
        raise ValueError(f"verdicts take {[each['duration_ns'] for each in parts]} of {total} ns")
    took_s = time.process_time() - begin
    if took_s > LONGEST_S + LONGEST_S_PER_MB * path.stat().st_size / 1e6:
        raise TimeoutError(f"took {took_s:.1f} s")
    return "cut" if found.raw[0].damage else "whole"


def _refuse(constant: str) -> None:
    raise ValueError(f"the document has {constant}")


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, name)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, value


def main(seconds: float, seed: int, kept: Path | None) -> int:
    """Analyse damaged reports for so long; return how many did what none may do."""
    whole, ends, n_wrong, slowest = seeds(), Counter[str](), 0, (0.0, 0)
    end = time.monotonic() + seconds
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.ncu-rep"
        while time.monotonic() < end:
            path.write_bytes(case(number, seed, whole))
            begin = time.process_time()
            try:
                ends[ended(path)] += 1
            except Exception as error:
                n_wrong += 1
                print(f"seed {seed}/{number}: {error!r:.300}", flush=True)
                if kept is not None:
                    kept.mkdir(parents=True, exist_ok=True)
                    (kept / f"{seed}-{number}.ncu-rep").write_bytes(path.read_bytes())
            slowest = max(slowest, (time.process_time() - begin, number))
            number += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    took_s, which = slowest
    print(f"{number} reports: {dict(ends)}; slowest {which} with {took_s:.2f} s, peak {peak:.0f} MB, {n_wrong} wrong")
    return n_wrong


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    sys.exit(main(float(given.get(0, 60)), int(given.get(1, 0)), Path(given[2]) if 2 in given else None) > 0)
