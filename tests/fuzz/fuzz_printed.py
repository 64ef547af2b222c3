"""`python -m tests.fuzz.fuzz_printed [OPTIONS OF LIBFUZZER] FOLDER`: damaged tables against the reader of what ncu prints."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["ncuroof.ingest"]):
    from ncuroof.ingest import open_report
    from ncuroof.ingest.printed.report import read_printed

from ncuroof.errors import NcuroofError
from ncuroof.metrics import measure, selection
from tests.support.console import log, section
from tests.support.printed import long_table, wide_table

COUNTERS = {
    "gpu__time_duration.sum": ("usecond", "12.34"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "1.234,5"),
    "dram__bytes.sum": ("Kbyte", "1,234.56"),
    "device__attribute_display_name": ("", "NVIDIA"),
}
RULE = "    OPT   Est. Speedup: 1.1e-05%\n          Text.\n"


def seeds() -> dict[str, str]:
    """Return small whole tables of either form, and terminal output with and without names."""
    wide = wide_table([COUNTERS] * 2)
    speed = section("GPU Speed Of Light", [("SOL FB", "%", "36,50"), ("Duration", "us", "1 234,50")], has_header=False)
    return {
        "wide": wide,
        "long": long_table([COUNTERS] * 2, rules=True),
        "terminal": f"{log(speed, RULE)}```\n$ ncu ./b\n{speed}2025-07-01T12:00:00Z fn(int), Context 1\n",
        "unnamed": f"trainer-1  | {speed}    Elapsed Cycles cycle 13 181 137\n",
        "noisy": f"==PROF== Connected\nhello\n{wide}it's done\n{wide}",
    }


def main() -> None:
    """Fuzz until libFuzzer's limits: whatever is no named error is a crash."""
    folder = Path(sys.argv[-1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in seeds().items():
        (folder / f"seed-{name}").write_text(content, encoding="utf-8")
    path = Path(tempfile.mkdtemp()) / "fuzzed.csv"
    choices = (selection(), None)

    def read(content: bytes) -> None:
        path.write_bytes(content)
        for choice in choices:
            with contextlib.suppress(NcuroofError):
                read_printed(path, path.name, choice)
        with contextlib.suppress(NcuroofError):
            measure([open_report(path, selection=choices[0])])

    atheris.Setup(sys.argv, read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
