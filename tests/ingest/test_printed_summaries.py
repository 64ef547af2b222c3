"""A summary over launches (`--print-summary`) is read: each row is a mean that stands for the launches that it counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncuroof.cli import main
from ncuroof.errors import ReportFormatError
from ncuroof.ingest import open_report
from ncuroof.reading import read
from tests.support.printed import line
from tests.support.printed_logs import counter_values, read_log

DURATION, DRAM = "gpu__time_duration.sum", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
HEADER = ("Metric Name", "Metric Unit", "Minimum", "Maximum", "Average")
SHORT, LONG = "scale(float *, int) (64, 1, 1)x(128, 1, 1)", "gemm<8>(float *) (16, 16, 1)x(256, 1, 1)"


def _table(*rows: tuple[str, str, str, str, str], indent: str = "    ") -> str:
    widths = [max(len(row[place]) for row in (HEADER, *rows)) for place in range(5)]
    ruler = " ".join("-" * width for width in widths)
    lines = [ruler, *(_line(row, widths) for row in (HEADER, *rows)), ruler]
    lines.insert(2, ruler)
    return "".join(f"{indent}{each}\n" for each in ("Section: GPU Speed Of Light Throughput", *lines)) + "\n"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return " ".join(
        [f"{row[0]:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))]
    )


def _rows(shortest: str, longest: str, mean: str) -> str:
    return _table(("DRAM Throughput", "%", "20.00", "40.00", "30.00"), ("Duration", "us", shortest, longest, mean))


PER_KERNEL = (
    f"[7] app@127.0.0.1\n  {SHORT}, Device 0, CC 8.0, Invocations 30\n{_rows('9.00', '12.00', '10.00')}"
    f"  {LONG}, Device 0, CC 8.0, Invocations 4\n{_rows('1,900.00', '2,100.00', '2,000.00')}"
)
PER_GPU = (
    f"[7] app@127.0.0.1\n  Device 0, CC 8.0\n    {SHORT}, Invocations 30\n{_rows('9.00', '12.00', '10.00')}"
    f"    {LONG}, Invocations 4\n{_rows('1,900.00', '2,100.00', '2,000.00')}"
)


@pytest.mark.parametrize("text", [PER_KERNEL, PER_GPU, PER_GPU.replace("\n", "\r\n")])
def test_each_row_is_a_kernel_with_its_mean(tmp_path: Path, text: str) -> None:
    report = read_log(tmp_path, text)
    assert report.workloads["function_name"].to_list() == ["scale", "gemm"]
    assert counter_values(report, DURATION, DRAM) == [[10e3, 2e6], [30.0, 30.0]]
    assert counter_values(report, "device__attribute_compute_capability_major", "launch__device_id") == [
        [8.0] * 2,
        [0.0] * 2,
    ]
    assert report.damage is None
    assert any("gemm 1.90 ms to 2.10 ms (4 launches, mean 2.00 ms)" in remark for remark in report.remarks)
    assert set(report.counters.columns) >= {DURATION, DRAM}
    assert not any(name.endswith(("Minimum", "Maximum")) for name in report.counters.columns)


def test_a_row_stands_for_its_launches_in_every_sum(tmp_path: Path) -> None:
    path = tmp_path / "ncu.log"
    path.write_text(PER_KERNEL)
    document = read(path).analyse().to_dict()
    summary = document["summary"]
    assert (summary["n_kernels"], summary["n_launches"]) == (2, 34)
    assert summary["duration_ns"] == pytest.approx(30 * 10e3 + 4 * 2e6)
    assert summary["weighting"]["is_summary"]
    assert (summary["weighting"]["covered_frac"], summary["weighting"]["n_unmatched"]) == (1.0, 0)


def test_a_summary_mentions_no_counting_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ncu.log"
    path.write_text(PER_KERNEL)
    main(["report", str(path), "-o", "-"])
    text = capsys.readouterr().out
    assert "34 launches take 8.30 ms of GPU time" in " ".join(text.split())
    assert "without ncu" not in text
    assert "profiled" not in text


@pytest.mark.parametrize("form", ["kernel", "range"])
def test_summaries_as_csv_hold_the_same(tmp_path: Path, form: str) -> None:
    first = (
        ["Process ID", "Process Name", "Host Name"]
        if form == "kernel"
        else ["Domain", "Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"]
    )
    names = [*first, "Kernel Name", "Block Size", "Grid Size", "Device", "CC", "Invocations", "Section Name", *HEADER]
    start = ["7", "app", "127.0.0.1"] if form == "kernel" else ["<default domain>", "step"]
    launch = [
        *start,
        "scale(float *, int)",
        "(128, 1, 1)",
        "(64, 1, 1)",
        "0",
        "8.0",
        "30",
        "GPU Speed Of Light Throughput",
    ]
    path = tmp_path / "ncu.csv"
    path.write_text(
        line(names)
        + line([*launch, "DRAM Throughput", "%", "20.00", "40.00", "30.00"])
        + line([*launch, "Duration", "us", "9.00", "12.00", "10.00"])
    )
    report = open_report(path)
    assert counter_values(report, DURATION, DRAM) == [[10e3], [30.0]]
    assert report.counts is not None
    assert [(each.n_launches, each.shortest_ns, each.longest_ns) for each in report.counts.kernels] == [(30, 9e3, 12e3)]


def test_a_summary_whose_cells_are_mixed_up_is_refused(tmp_path: Path) -> None:
    names = [
        "Process ID",
        "Process Name",
        "Host Name",
        "Device",
        "CC",
        "Kernel Name",
        "Block Size",
        "Grid Size",
        "Invocations",
        *HEADER,
    ]
    path = tmp_path / "ncu.csv"
    path.write_text(
        line(names) + line(["0", "", "", "", "", "device__attribute_chip", "", "", "", "368", "0", "", "", ""])
    )
    with pytest.raises(ReportFormatError, match="no row of ncu's table is whole"):
        open_report(path)


def test_kernels_of_a_summary_without_durations_are_counted(tmp_path: Path) -> None:
    report = read_log(
        tmp_path,
        f"  {SHORT}, Device 0, CC 8.0, Invocations 5\n" + _table(("DRAM Throughput", "%", "1.00", "3.00", "2.00")),
    )
    assert report.counts is not None
    assert report.counts.n_launches == 5
