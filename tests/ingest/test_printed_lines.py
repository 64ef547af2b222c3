"""Lines of ncu are found in notebooks, behind prefixes of launchers and logs, and in the encodings of Windows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncuroof.errors import ReportFormatError
from ncuroof.ingest import open_report
from tests.support.console import log, section
from tests.support.printed import long_table
from tests.support.printed_logs import counter_values, read_log

DURATION = "gpu__time_duration.sum"
TEXT = log(section("GPU Speed Of Light Throughput", [("DRAM Throughput", "%", "8.50"), ("Duration", "ms", "3.75")]))
TABLE = long_table([{DURATION: ("us", "3,750.00")}])

# ---- notebooks ---------------------------------------------------------------------------------------


def _stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}


def _value(text: str) -> dict[str, Any]:
    return {
        "output_type": "display_data",
        "data": {"text/plain": text.splitlines(keepends=True), "text/html": "<p>"},
        "metadata": {},
    }


def _cell(*outputs: dict[str, Any]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": ["!ncu ./a"],
        "outputs": list(outputs),
        "metadata": {},
        "execution_count": None,
    }


def _notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    return {
        "cells": [{"cell_type": "markdown", "source": "# Profile"}, *cells],
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
    }


@pytest.mark.parametrize(
    "document",
    [
        _notebook(_cell(_stream(TEXT))),
        _notebook(_cell({"output_type": "stream", "name": "stdout", "text": TEXT})),
        _notebook(_cell(_value("<Figure>"), _value(TEXT))),
        _notebook(_cell(_value(repr(TEXT)))),
        _notebook(_cell(_stream("loss 0.5\n")), _cell(*(_stream(part) for part in TEXT.splitlines(keepends=True)))),
        _notebook(_cell(_stream(TABLE))),
        {"worksheets": [{"cells": [_cell(_stream(TEXT))]}], "nbformat": 3},
        _notebook({"cell_type": "markdown", "source": ["We measured:\n", "\n", *TEXT.splitlines(keepends=True)]}),
    ],
)
def test_tables_in_a_notebooks_outputs_are_read(tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "profile.ipynb"
    path.write_text(json.dumps(document, indent=1))
    report = open_report(path)
    assert counter_values(report, DURATION) == [[3.75e6]]
    assert report.workloads["function_name"].to_list() == ["fn"]


def test_launches_of_several_cells_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "profile.ipynb"
    other = TEXT.replace("fn<int>", "other<int>").replace("3.75", "1.25")
    path.write_text(json.dumps(_notebook(_cell(_stream(TEXT)), _cell(_stream(other)))))
    report = open_report(path)
    assert report.workloads["function_name"].to_list() == ["fn", "other"]
    assert (counter_values(report, DURATION), report.warnings) == ([[3.75e6, 1.25e6]], ())


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"cells": [1, {"outputs": 2}, {"outputs": [3, {"text": 4}]}]}', '{"cells": {}}']
)
def test_a_malformed_notebook_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profile.ipynb"
    path.write_text(text)
    with pytest.raises(ReportFormatError):
        open_report(path)


# ---- prefixes ----------------------------------------------------------------------------------------

CLOCK: Callable[[int], str] = lambda number: f"12:{number // 60:02}:{number % 60:02} "  # noqa: E731


@pytest.mark.parametrize("text", [TEXT, TABLE])
@pytest.mark.parametrize(
    "prefix",
    [
        lambda _: "[1,0]<stdout>:",
        lambda _: "[1,0]<stdout>: ",
        lambda _: "[rank0]: ",
        lambda _: "[0] ",
        lambda _: "out> ",
        lambda _: "(bench pid=4711) ",
        CLOCK,
        lambda number: f"{number + 95:6d}\t",  # cat -n
        lambda number: f"{number + 5:>3}  ",
        lambda number: f"[{number + 5:2}] ",
        lambda number: f"[{CLOCK(number).strip()}] INFO - ",
        lambda number: f"Nov  3 {CLOCK(number)}node7 run.sh[812]: ",
    ],
)
def test_prefixes_of_lines_are_left_out(tmp_path: Path, text: str, prefix: Callable[[int], str]) -> None:
    prefixed = "".join(f"{prefix(number)}{line}\n" for number, line in enumerate(text.splitlines()))
    report = read_log(tmp_path, f"Started.\n{prefixed}")
    assert report.workloads["demangled_name"].to_list() == ["void ns::fn<int>(int, T1)"]
    assert counter_values(report, DURATION) == [[3.75e6]]
    assert report.damage is None


@pytest.mark.parametrize("first", [1, 5, 95, 995])
def test_numbers_of_lines_may_be_aligned(tmp_path: Path, first: int) -> None:
    twice = f"{TEXT}  other(int) {TEXT.splitlines()[1].split(') ', 1)[1]}\n" + "\n".join(TEXT.splitlines()[2:])
    lines = enumerate(twice.splitlines(), first)
    report = read_log(tmp_path, "".join(f"{number:6d}\t{line}\n" if line else "       \n" for number, line in lines))
    assert report.workloads["demangled_name"].to_list() == ["void ns::fn<int>(int, T1)", "other(int)"]
    assert counter_values(report, DURATION) == [[3.75e6] * 2]
    assert report.damage is None


def test_lines_of_several_ranks_behind_a_prefix_are_refused(tmp_path: Path) -> None:
    mixed = "".join(f"[1,{rank}]<stdout>:{line}\n" for line in TEXT.splitlines() for rank in (0, 1))
    with pytest.raises(ReportFormatError, match="lines of several ranks"):
        read_log(tmp_path, mixed)


# ---- encodings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("number", ["3.750,25", "3\u00a0750,25"])
def test_windows_writes_other_encodings_and_line_ends(tmp_path: Path, encoding: str, number: str) -> None:
    text = TEXT.replace("8.50", "8,50").replace("ms", "\u00b5s").replace("  3.75", number)
    path = tmp_path / "ncu.txt"
    path.write_bytes(f"Gr\u00f6\u00dfe\r\n{text}".replace("\n", "\r\n").encode(encoding))
    assert counter_values(open_report(path), DURATION) == [[pytest.approx(3.75025e6)]]


def test_a_mark_in_the_middle_of_joined_files_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text(f"\ufeff{TABLE}\ufeff{TABLE.replace('4242', '4243')}")
    assert counter_values(open_report(path), DURATION) == [[3.75e6, 3.75e6]]
