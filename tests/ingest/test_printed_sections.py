"""Labels that ncu prints in sections other than those of ncu 2024.1: of rooflines, of spills, and waves in Speed of Light."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ncuroof.ingest import RawReport, open_report
from ncuroof.ingest.printed.labels import load_printed_breakdowns
from ncuroof.reading import read
from tests.support.console import log, section
from tests.support.ncu import find_ncu, print_page, print_terminal_page
from tests.support.printed import long_table
from tests.support.printed_logs import counter_values, read_log
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, Section, write_report

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
def test_the_roofline_section_is_enough_to_place_the_kernel(tmp_path: Path, form: str) -> None:
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


@pytest.mark.parametrize(
    ("label", "counter"),
    [
        ("L1: M L1tex2xbar Req Cycles Active", "l1tex__m_l1tex2xbar_req_cycles_active"),
        ("L1: M Xbar2l1tex Read Sectors", "l1tex__m_xbar2l1tex_read_sectors"),
        ("L1: Texin Sm2tex Req Cycles Active", "l1tex__texin_sm2tex_req_cycles_active"),
        ("L2: Lts2xbar Cycles Active", "lts__lts2xbar_cycles_active"),
        ("SOL L2: Xbar2lts Cycles Active", "lts__xbar2lts_cycles_active"),
        ("SM: Mio2rf Writeback Active", "sm__mio2rf_writeback_active"),
        ("SM: Pipe Fp64 Cycles Active", "sm__pipe_fp64_cycles_active"),
        ("SM: Pipe Tensor Cycles Active V2", "sm__pipe_tensor_cycles_active_v2"),
        ("SYSLTS: Xbar2syslts Cycles Active", "syslts__xbar2syslts_cycles_active"),
    ],
)
def test_a_digit_within_a_word_of_a_breakdown_is_followed_by_a_small_letter(
    tmp_path: Path, label: str, counter: str
) -> None:
    report = _csv(tmp_path, {label: ("%", "12.50")}, "GPU Speed Of Light Throughput")
    assert counter_values(report, f"{counter}.avg.pct_of_peak_sustained_elapsed") == [[12.5]]


def test_shared_memory_of_the_details_page_holds_what_the_driver_reserves(tmp_path: Path) -> None:
    path = tmp_path / "ncu.csv"
    counters = {
        "Driver Shared Memory Per Block": ("Kbyte/block", "1.02"),
        "Dynamic Shared Memory Per Block": ("byte/block", "0"),
        "Static Shared Memory Per Block": ("Kbyte/block", "32.77"),
    }
    path.write_text(long_table([counters], section="Launch Statistics"))
    launch = read(path).analyse().to_dict()["kernels"][0]["launch"]
    assert launch["shared_bytes_per_block"] == 33_790  # 33 792, of which two decimals of a Kbyte leave this


@pytest.mark.oracle
@pytest.mark.parametrize("form", ["csv", "log"])
def test_every_part_of_speed_of_light_is_read_as_ncu_prints_it(tmp_path: Path, form: str) -> None:
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("NVIDIA's ncu is not found")
    breakdowns = load_printed_breakdowns()
    members = [member for each in breakdowns for member in each.members]
    values = {member: number + 0.5 for number, member in enumerate(members)}
    listings = {each.listing: ",".join(each.members) for each in breakdowns}
    part = Section("SpeedOfLight", "GPU Speed Of Light Throughput", breakdowns=tuple(listings))
    metrics = METRICS_BY_CHIP["GH100"] | values | listings
    written, printed = tmp_path / "written.ncu-rep", tmp_path / f"printed.{form}"
    written.write_bytes(write_report([Kernel("every_part", metrics, sections=(part,))]))
    print_any = print_page if form == "csv" else print_terminal_page
    printed.write_bytes(print_any(ncu, written, "--print-details", "all"))
    report = open_report(printed)
    assert {name: report.counters[name].to_list() for name in members if name in report.counters.columns} == {
        name: [value] for name, value in values.items()
    }
