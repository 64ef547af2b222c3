"""Labels that ncu prints in sections other than those of ncu 2024.1: of rooflines, of spills, and waves in Speed of Light."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ncuroof.ingest import RawReport, open_report
from ncuroof.reading import read
from tests.support.console import log, section
from tests.support.printed import long_table
from tests.support.printed_logs import counter_values, read_log

CHART = "GPU Speed Of Light Roofline Chart"
ROOFLINE = {
    "Theoretical Predicated-On FFMA Thread Instructions Executed": ("inst/cycle", "2560"),
    "Predicated-On FFMA Thread Instructions Executed Per Cycle": ("inst/cycle", "200"),
    "Predicated-On FADD Thread Instructions Executed Per Cycle": ("inst/cycle", "60"),
    "Predicated-On FMUL Thread Instructions Executed Per Cycle": ("inst/cycle", "40"),
    "SM Frequency": ("Ghz", "1.50"),
    "DRAM Frequency": ("Ghz", "7.00"),
    "Theoretical DRAM Bytes Accessible": ("byte/cycle", "64"),
    "DRAM Bandwidth": ("Gbyte/s", "112"),
}


def _csv(folder: Path, counters: dict[str, tuple[str, str]], name: str) -> RawReport:
    path = folder / "ncu.csv"
    path.write_text(long_table([counters], section=name))
    return open_report(path)


@pytest.mark.parametrize("form", ["csv", "log"])
def test_a_roofline_section_alone_places_the_kernel(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"ncu.{form}"
    rows = [(label, unit, value) for label, (unit, value) in ROOFLINE.items()]
    path.write_text(long_table([ROOFLINE], section=CHART) if form == "csv" else log(section(CHART, rows)))
    analysis = read(path).analyse()
    # (60 + 40 + 2 · 200) inst/cycle · 1.5 GHz = 750 Gflop/s, of 2 · 2560 · 1.5 GHz = 7.68 Tflop/s; 112 GB/s of 64 · 7 GHz
    work = analysis.measurements.work.filter(pl.col("precision") == "fp32")
    assert work.select("flop_per_s", "peak_flop_per_s").rows() == [(pytest.approx(7.5e11), pytest.approx(7.68e12))]
    dram = analysis.measurements.bandwidth.filter(pl.col("level") == "dram")
    assert dram.select("bytes_per_s", "peak_bytes_per_s").rows() == [(pytest.approx(1.12e11), pytest.approx(4.48e11))]


def test_the_clock_of_a_roofline_is_not_that_of_speed_of_light(tmp_path: Path) -> None:
    chart = _csv(tmp_path, {"SM Frequency": ("Mhz", "900")}, CHART)
    assert set(chart.counters.columns) >= {"sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second"}
    assert "gpc__cycles_elapsed.avg.per_second" not in chart.counters.columns
    speed = _csv(tmp_path, {"SM Frequency": ("Mhz", "900")}, "GPU Speed Of Light Throughput")
    assert speed.counters["gpc__cycles_elapsed.avg.per_second"].to_list() == [9e8]


def test_waves_in_speed_of_light_are_waves(tmp_path: Path) -> None:
    counters = {"Duration": ("ms", "1.20"), "Waves Per SM": ("", "0.14")}
    report = _csv(tmp_path, counters, "GPU Speed Of Light Throughput")
    assert report.counters["launch__waves_per_multiprocessor"].to_list() == [0.14]
    rows = [(label, unit, value) for label, (unit, value) in counters.items()]
    of_log = read_log(tmp_path, log(section("GPU Speed Of Light Throughput", rows)))
    assert counter_values(of_log, "launch__waves_per_multiprocessor") == [[0.14]]


def test_a_label_of_several_counters_in_other_sections_stays_unknown(tmp_path: Path) -> None:
    report = _csv(tmp_path, {"Memory Throughput": ("%", "50"), "Duration": ("us", "5")}, "My Section")
    assert report.counters["gpu__time_duration.sum"].to_list() == [5000.0]
    assert not any("memory_throughput" in name or name.startswith("dram__") for name in report.counters.columns)
    assert any("Memory Throughput" in remark for remark in report.remarks)


def test_spills_are_read_with_their_share_of_local_memory(tmp_path: Path) -> None:
    path = tmp_path / "ncu.csv"
    counters = {
        "Local Memory Spilling Requests": ("", "2,345,678"),
        "Local Memory Spilling Request Overhead": ("%", "41.50"),
        "Memory Throughput": ("Gbyte/s", "80.00"),
    }
    path.write_text(long_table([counters], section="Memory Workload Analysis"))
    access = read(path).analyse().to_dict()["kernels"][0]["access"]
    assert (access["spill_requests"], access["spill_frac"]) == (2345678.0, pytest.approx(0.415))
