"""A share that two decimals leave little of becomes no number of bytes, unless the row holds the cycles themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncuroof.ingest import open_report
from ncuroof.metrics import selection
from ncuroof.reading import read
from tests.support.printed import wide_table

ACTIVE, ELAPSED = "dram__cycles_active.avg", "dram__cycles_elapsed.avg"
SHARE = f"{ACTIVE}.pct_of_peak_sustained_elapsed"
COUNTERS = {
    "gpu__time_duration.sum": ("ns", "200,000,000"),
    f"{ELAPSED}.per_second": ("cycle/second", "1,500,000,000"),
    "dram__bytes.sum.peak_sustained": ("byte/cycle", "64"),
}
CYCLES = {ACTIVE: ("cycle", "12,000"), ELAPSED: ("cycle", "300,000,000")}


def _dram_bytes(folder: Path, counters: dict[str, tuple[str, str]]) -> float | None:
    path = folder / "ncu.csv"
    path.write_text(wide_table([COUNTERS | counters]))
    found: float | None = read(path).analyse().to_dict()["kernels"][0]["traffic_bytes"]["dram"]
    return found


@pytest.mark.parametrize("share", ["0.00", "0.01", "1.00"])
def test_cycles_win_over_a_rounded_share(tmp_path: Path, share: str) -> None:
    # 12 000 cycles · 64 byte; the time is that of 300 000 000 cycles at 1.5 GHz
    assert _dram_bytes(tmp_path, {SHARE: ("%", share)} | CYCLES) == pytest.approx(768e3)
    assert _dram_bytes(tmp_path, CYCLES) == pytest.approx(768e3)


def test_a_share_of_cycles_has_a_unit_where_it_was_not_printed(tmp_path: Path) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text(wide_table([COUNTERS | CYCLES]))
    report = open_report(path, selection=selection())
    assert (report.counters[SHARE].to_list(), report.units[SHARE]) == ([pytest.approx(0.004)], "%")


@pytest.mark.parametrize("share", ["0.00", "0.01", "0.09"])
def test_a_share_of_one_digit_gives_no_number_of_bytes(tmp_path: Path, share: str) -> None:
    assert _dram_bytes(tmp_path, {SHARE: ("%", share)}) is None


@pytest.mark.parametrize(
    ("share", "n_bytes"), [("0", 0.0), ("0.0123", 0.000123 * 300e6 * 64), ("25.00", 0.25 * 300e6 * 64)]
)
def test_a_share_with_enough_digits_gives_a_number_of_bytes(tmp_path: Path, share: str, n_bytes: float) -> None:
    assert _dram_bytes(tmp_path, {SHARE: ("%", share)}) == pytest.approx(n_bytes)
