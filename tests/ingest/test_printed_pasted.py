"""What people paste: output of the first versions, of other kernels without a name, with prefixes, cut off, or of another tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncuroof.ingest import RawReport, open_report
from tests.support.console import log, section
from tests.support.printed import long_table

DURATION, DRAM, MEMORY, COMPUTE, L2, L1, DRAM_CLOCK = (
    "gpu__time_duration.sum",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "dram__cycles_elapsed.avg.per_second",
)
OLD = "GPU Speed Of Light"


def _read(folder: Path, text: str) -> RawReport:
    path = folder / "ncu.log"
    path.write_text(text)
    return open_report(path)


def _values(report: RawReport, *names: str) -> list[list[float | None]]:
    return [report.counters[name].to_list() if name in report.counters.columns else [] for name in names]


# ---- the first versions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clock", "dram", "l2", "l1"),
    [
        ("Memory Frequency", "SOL FB", "SOL L2", "SOL TEX"),
        ("DRAM Frequency", "SOL DRAM", "SOL L2 Cache", "SOL L1/TEX Cache"),
    ],
)
def test_labels_of_the_first_versions_are_read(tmp_path: Path, clock: str, dram: str, l2: str, l1: str) -> None:
    rows = [
        (clock, "cycle/usecond", "850.00"), (dram, "%", "36.00"), ("Memory [%]", "%", "77.00"), (l2, "%", "12.00"),
        ("SM [%]", "%", "2.50"), (l1, "%", "97.00"),
    ]  # fmt: skip
    names = [DRAM_CLOCK, DRAM, MEMORY, L2, COMPUTE, L1]
    expected = [[pytest.approx(850e6)], [36.0], [77.0], [12.0], [2.5], [97.0]]
    assert _values(_read(tmp_path, log(section(OLD, rows))), *names) == expected
    as_csv = long_table([{label: (unit, value) for label, unit, value in rows}], section=OLD)
    assert _values(_read(tmp_path, as_csv), *names) == expected
