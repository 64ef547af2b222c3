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
from tests.support.printed import long_table, wide_table

COUNTERS = {
    "gpu__time_duration.sum": ("usecond", "12.34"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "1.234,5"),
    "dram__bytes.sum": ("Kbyte", "1,234.56"),
    "device__attribute_display_name": ("", "NVIDIA"),
}


def seeds() -> dict[str, str]:
    """Return small whole tables of either form."""
    wide = wide_table([COUNTERS] * 2)
    return {
        "wide": wide,
        "long": long_table([COUNTERS] * 2, rules=True),
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
