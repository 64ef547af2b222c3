"""A line that names a launch is found wherever it is wrapped, and without the parts that people leave out."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.support.console import section
from tests.support.printed_logs import counter_values, read_log

SPEED = section("GPU Speed Of Light Throughput", [("DRAM Throughput", "%", "12.50"), ("Duration", "us", "7.25")])
OTHER = section("GPU Speed Of Light Throughput", [("DRAM Throughput", "%", "62.50"), ("Duration", "ms", "1.75")])
NAME = "void ns::sweep<float, 4>(const float *, float *, unsigned int)"
REST = "Context 1, Stream 7, Device 0, CC 8.9"
SHAPE = "(12, 5, 1)x(64, 2, 1)"
DURATION = "gpu__time_duration.sum"
WIDE = f"  {NAME} {SHAPE}, {REST}"


@pytest.mark.parametrize(
    "header",
    [
        WIDE,
        f"  {NAME} \n  {SHAPE}, {REST}",
        f"  {NAME}\n{SHAPE}, {REST}",
        f"  {NAME} {SHAPE},\n  {REST}",
        f"  {NAME} {SHAPE}\n  , {REST}",
        f"  {NAME} {SHAPE}, Context 1, Stream 7,\n  Device 0, CC 8.9",
        f"  {NAME} {SHAPE}, Context 1, Stream 7, Device\n  0, CC 8.9",
        WIDE.replace("x(64, 2", "x(64,\n   2"),
        WIDE.replace("float *, unsigned", "float *,\n      unsigned"),
        WIDE.replace("<float, 4>", "<float,\n  4>").replace("unsigned int) ", "unsigned int)\n  "),
        "\n".join(WIDE[start : start + 80] for start in range(0, len(WIDE), 80)),  # a terminal of 80 columns
        "\n".join(WIDE[start : start + 76] for start in range(0, len(WIDE), 76)),
        WIDE.replace("unsigned int) ", "unsigned int)\r\n  "),
    ],
)
def test_a_wrapped_launch_has_its_name_and_its_shape(tmp_path: Path, header: str) -> None:
    report = read_log(tmp_path, f"Done in 3 s.\n\n{header}\n{SPEED}\n  last(int) (1, 1, 1)x(32, 1, 1), {REST}\n{OTHER}")
    assert report.workloads["demangled_name"].to_list() == [NAME, "last(int)"]
    assert counter_values(report, "launch__grid_dim_x", "launch__block_dim_y", DURATION) == [
        [12.0, 1.0], [2.0, 1.0], [7250.0, 1.75e6],
    ]  # fmt: skip
    assert counter_values(report, "device__attribute_compute_capability_minor") == [[9.0, 9.0]]
    assert report.damage is None


@pytest.mark.parametrize("indent", ["", "  "])
@pytest.mark.parametrize(
    "break_", ["1), ", "Context ", "Context 1, ", "Stream ", "Stream 7, ", "Device ", "Device 0, ", "CC "]
)
@pytest.mark.parametrize("name", [NAME, "sweep(int)"])
def test_a_launch_may_be_wrapped_anywhere_behind_its_shape(tmp_path: Path, name: str, break_: str, indent: str) -> None:
    before, after = f"  {name} {SHAPE}, {REST}".rsplit(break_, 1)
    header = f"{before}{break_.rstrip()}\n{indent}{after}"
    report = read_log(tmp_path, f"{WIDE.replace('sweep', 'first')}\n{OTHER}\n{header}\n{SPEED}\n")
    assert report.workloads["demangled_name"].to_list() == [NAME.replace("sweep", "first"), name]
    assert counter_values(report, "device__attribute_compute_capability_minor", DURATION) == [
        [9.0] * 2,
        [1.75e6, 7250.0],
    ]
    assert report.damage is None


def test_pages_wrapped_between_words_keep_their_kernels(tmp_path: Path) -> None:
    rows = [("A label that is as long as the longest of those of ncu, and then some", "byte/block", "0")]
    page = f"{WIDE}\n{SPEED}{section('Launch Statistics', rows)}\n  last(int) {SHAPE}, {REST}\n{OTHER}"
    lines = (textwrap.wrap(line, 80, break_long_words=False) or [""] for line in page.splitlines())
    report = read_log(tmp_path, "\n".join(line for wrapped in lines for line in wrapped))
    assert report.workloads["demangled_name"].to_list() == [NAME, "last(int)"]
    assert counter_values(report, DURATION) == [[7250.0, 1.75e6]]
    assert report.damage is None


@pytest.mark.parametrize("rest", ["", ", Context 1", ", Stream 13", ", Device 0, CC 8.9", ", Context 1, Stream 13"])
@pytest.mark.parametrize("name", ["sweep", NAME, "sweep<4>"])
def test_a_launch_may_lack_its_context(tmp_path: Path, name: str, rest: str) -> None:
    header = f"  {name} {SHAPE}{rest}\n"
    report = read_log(tmp_path, f"{header}{SPEED}{header.replace('sweep', 'swap')}{OTHER}")
    assert report.workloads["demangled_name"].to_list() == [name, name.replace("sweep", "swap")]
    assert counter_values(report, "launch__grid_dim_x", DURATION) == [[12.0] * 2, [7250.0, 1.75e6]]


@pytest.mark.parametrize("prose", ["We launched it with (12, 5, 1)x(64, 2, 1)", "grid and block (12, 5, 1)x(64, 2, 1)"])
def test_prose_with_a_shape_names_no_launch(tmp_path: Path, prose: str) -> None:
    report = read_log(tmp_path, f"{WIDE}\n{SPEED}{prose}\n")
    assert report.workloads["demangled_name"].to_list() == [NAME]


def test_the_text_above_a_launch_is_not_part_of_its_name(tmp_path: Path) -> None:
    report = read_log(tmp_path, f"Result of the run (new version:\n  last(int) (1, 1, 1)x(32, 1, 1), {REST}\n{SPEED}")
    assert report.workloads["demangled_name"].to_list() == ["last(int)"]
