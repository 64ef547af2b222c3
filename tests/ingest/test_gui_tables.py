"""Tables that Nsight Compute's user interface saved as CSV are read as those that ncu prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncuroof.errors import ReportFormatError
from ncuroof.ingest import RawReport, open_report
from tests.support.printed import line
from tests.support.printed_logs import counter_values

DURATION, REGISTERS = "gpu__time_duration.sum", "launch__registers_per_thread"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
NAMES = [
    "ID", "Function Name", "Demangled Name", "Process", "Device Name", "Grid Size", "Block Size [block]",
    f"{DURATION} [ms]", f"{SM} [%]", f"{REGISTERS} [register/thread]",
]  # fmt: skip
ROWS = [
    [
        "0",
        "axpy",
        "void axpy<float>(int, float *)",
        "[812] bench",
        "NVIDIA L4",
        "(640, 2, 1)",
        "(256, 1, 1)",
        "1.25",
        "31.50",
        "18",
    ],
    [
        "1",
        "dot",
        "dot(int, const float *)",
        "[812] bench",
        "NVIDIA L4",
        "(58, 1, 1)",
        "(512, 1, 1)",
        "0.04",
        "9.75",
        "32",
    ],
]


def _read(folder: Path, text: str, encoding: str = "utf-8") -> RawReport:
    path = folder / "export.csv"
    path.write_bytes(text.encode(encoding))
    return open_report(path)


def _upright(separator: str = ",") -> str:
    return "".join(map(line, [NAMES, *ROWS])).replace('","', f'"{separator}"')


def _transposed(*, is_quoted: bool) -> str:
    columns = [list(cells) for cells in zip(NAMES, *ROWS, strict=True)][1:]
    if is_quoted:
        return "".join(map(line, columns))
    return "".join(
        ",".join(cell.strip("()").replace(", ", ",") for cell in cells) + "\n"
        for cells in columns
        if "Demangled" not in cells[0]
    )


def _assert_read(report: RawReport) -> None:
    assert report.workloads["function_name"].to_list() == ["axpy", "dot"]
    assert counter_values(report, DURATION, SM, REGISTERS) == [
        [pytest.approx(1.25e6), pytest.approx(4e4)],
        [31.5, 9.75],
        [18.0, 32.0],
    ]
    assert counter_values(report, "launch__grid_dim_x", "launch__block_dim_x") == [[640.0, 58.0], [256.0, 512.0]]
    assert report.texts["device__attribute_display_name"].to_list() == ["NVIDIA L4"] * 2
    assert report.processes.rows() == [(812, "bench")] * 2
    assert report.damage is None


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (_upright(), "utf-8"),
        (_upright(), "utf-8-sig"),
        (_upright(), "utf-16"),
        (_upright(";"), "utf-8"),
        (_upright().replace("\n", "\r\n"), "utf-8-sig"),
        (
            _upright(";")
            .replace("1.25", "1,25")
            .replace("0.04", "0,04")
            .replace("31.50", "31,50")
            .replace("9.75", "9,75"),
            "utf-8",
        ),
        (_transposed(is_quoted=True), "utf-8"),
        (_transposed(is_quoted=False), "utf-8"),
    ],
)
def test_a_raw_page_of_the_gui_is_read(tmp_path: Path, text: str, encoding: str) -> None:
    _assert_read(_read(tmp_path, text, encoding))


def test_units_may_stand_in_a_row_of_their_own(tmp_path: Path) -> None:
    names = [name.partition(" [")[0] for name in NAMES]
    units = ["", "", "", "", "", "", "block", "ms", "%", "register/thread"]
    _assert_read(_read(tmp_path, "".join(map(line, [names, units, *ROWS]))))


def test_the_summary_of_the_gui_is_read(tmp_path: Path) -> None:
    names = [
        "ID",
        "Function Name",
        "Duration [us]",
        "Compute Throughput [%]",
        "Memory Throughput [%]",
        "# Registers [register/thread]",
    ]
    report = _read(tmp_path, line(names) + line(["4", "axpy", "12.50", "31.50", "80.25", "18"]))
    assert counter_values(report, DURATION, SM, REGISTERS) == [[12500.0], [31.5], [18.0]]


def test_a_row_with_a_different_number_of_cells_is_lost(tmp_path: Path) -> None:
    report = _read(tmp_path, _upright() + line(["2", "cut"]))
    assert report.damage == "1 of its rows are truncated or malformed and lost"


def test_the_source_page_is_named(tmp_path: Path) -> None:
    text = (
        line(["Kernel Name", "k(int)"])
        + line(["Address", "Source", "Warp Stall Sampling (All Cycles)"])
        + line(["0x7f", "MOV R1", "3"])
    )
    with pytest.raises(ReportFormatError, match="found ncu's source page"):
        _read(tmp_path, text)


@pytest.mark.parametrize("text", ["Function Name,k\n", "name,Function Name\na,b\n", "a__b,1\nc__d,2\n"])
def test_tables_of_different_programs_are_not_recognised(tmp_path: Path, text: str) -> None:
    with pytest.raises(ReportFormatError, match="found another text file"):
        _read(tmp_path, text)
