"""What people paste: output of the first versions, of other kernels without a name, with prefixes, cut off, or of another tool."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ncuroof.errors import ReportFormatError
from tests.support.console import LAUNCH, log, section
from tests.support.console import table as console_table
from tests.support.printed import long_table
from tests.support.printed_logs import counter_values, read_log

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
    assert counter_values(read_log(tmp_path, log(section(OLD, rows))), *names) == expected
    as_csv = long_table([{label: (unit, value) for label, unit, value in rows}], section=OLD)
    assert counter_values(read_log(tmp_path, as_csv), *names) == expected


def test_tables_of_the_first_versions_have_no_header_but_are_read_by_their_rulers(tmp_path: Path) -> None:
    rows = [
        ("Elapsed Cycles", "cycle", "13 181 137"),
        ("Some New Label", "%", "1,50"),
        ("Duration", "msecond", "10,50"),
    ]
    report = read_log(tmp_path, log(section(OLD, rows, has_header=False), "My Own Label      %     3\n"))
    assert counter_values(report, "gpc__cycles_elapsed.max", DURATION) == [[13181137.0], [10.5e6]]
    assert report.remarks[-1] == "labels left out because they do not name a single counter: Some New Label"
    assert report.damage is None


@pytest.mark.parametrize("line", ["Elapsed Cycles cycle 13 181 137", "Elapsed Cycles   13 181 137 cycle  <- long"])
def test_blanks_may_separate_thousands(tmp_path: Path, line: str) -> None:
    lines = f"    {line}\n    SM Active Cycles  cycle  12 837 852,30\n    Block Limit SM   block  32\n    Waves Per SM  1 024,50\n"
    report = read_log(tmp_path, log(f"    Section: {OLD}\n", lines))
    assert counter_values(report, "gpc__cycles_elapsed.max", "sm__cycles_active.avg") == [[13181137.0], [12837852.3]]
    assert counter_values(report, "launch__occupancy_limit_blocks", "launch__waves_per_multiprocessor") == [
        [32.0],
        [1024.5],
    ]


def test_nvtx_ranges_between_a_name_and_its_sections_do_not_end_the_launch(tmp_path: Path) -> None:
    old = section(OLD, [("SOL FB", "%", "36.00")], has_header=False)
    ranges = "==PROF==   0: Step of training (4, 1)\n"
    launch = "  step_kernel_3, 2020-Feb-20 10:11:12, Context 1, Stream 7\n"
    report = read_log(tmp_path, f"{launch}\n{ranges}{old}{launch.replace('_3', '_4')}\n{ranges}{old}")
    assert report.workloads["function_name"].to_list() == ["step_kernel_3", "step_kernel_4"]
    assert (counter_values(report, DRAM), report.damage) == ([[36.0, 36.0]], None)


# ---- launches without a name below one that has a name ------------------------------------------------

LAUNCH_STATS = "Launch Statistics"
ROWS = [("DRAM Throughput", "%", "12.50"), ("SM Frequency", "Ghz", "1.40"), ("Duration", "us", "100.00")]
SPEED = section("GPU Speed Of Light Throughput", ROWS)
OTHER_SPEED = section(
    "GPU Speed Of Light Throughput", [*ROWS[:2], ("Duration", "us", "30.00"), ("L2 Cache Throughput", "%", "7.00")]
)
REGISTERS = section(LAUNCH_STATS, [("Registers Per Thread", "register/thread", "40")])
REGISTERS_NAME, MAJOR = "launch__registers_per_thread", "device__attribute_compute_capability_major"
REPEATED = "with other values and without a kernel's name: read as of"
UNNAMED = f"a section that repeats {REPEATED} a kernel without a name, on the same GPU"


@pytest.mark.parametrize("between", ["", "\n", "```\n\n```\n", "$ srun -n 1 ncu ./other\n"])
def test_a_section_that_repeats_with_other_values_is_of_a_launch_without_a_name(tmp_path: Path, between: str) -> None:
    report = read_log(tmp_path, f"{log(SPEED)}{between}{OTHER_SPEED}{REGISTERS}")
    assert report.workloads["function_name"].to_list() == ["fn", None]
    assert counter_values(report, DURATION, DRAM, L2) == [[100e3, 30e3], [12.5, 12.5], [None, 7.0]]
    assert counter_values(report, REGISTERS_NAME, "launch__block_dim_x", MAJOR) == [
        [None, 40.0],
        [256.0, None],
        [9.0] * 2,
    ]
    assert (report.warnings, report.damage) == ((UNNAMED,), None)
    assert report.processes.rows() == [(4242, "app"), (None, None)]


def test_a_section_that_repeats_with_the_same_values_is_a_quotation(tmp_path: Path) -> None:
    longer = section("GPU Speed Of Light Throughput", [*ROWS, ("L2 Cache Throughput", "%", "7.00")])
    report = read_log(tmp_path, f"{log(SPEED)}```\nAs said above:\n```\n{longer}{REGISTERS}")
    assert report.workloads["function_name"].to_list() == ["fn"]
    assert counter_values(report, DURATION, L2, REGISTERS_NAME) == [[100e3], [7.0], [40.0]]
    assert report.warnings == ()


def test_launches_without_a_name_are_counted_and_not_told_apart(tmp_path: Path) -> None:
    second = "other(int) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
    text = f"{log(SPEED)}{second}{SPEED}```\n```\n{OTHER_SPEED}{REGISTERS}```\n```\n{SPEED}"
    report = read_log(tmp_path, text)
    assert report.workloads["function_name"].to_list() == ["fn", "other", None, None]
    assert counter_values(report, DURATION) == [[100e3, 100e3, 30e3, 100e3]]
    assert report.warnings == (f"2 sections that repeat {REPEATED} kernels without a name, on the same GPU",)


# ---- cut texts ---------------------------------------------------------------------------------------

SECOND = "  other(int) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
EMPTY, CUT = "a launch is named without any value", "it ends within a table"


@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize(
    ("n_lines", "damage"), [(0, EMPTY), (1, EMPTY), (4, f"{EMPTY}; {CUT}"), (5, CUT), (6, CUT), (7, CUT), (8, None)]
)
def test_a_truncated_text_is_damaged(tmp_path: Path, n_lines: int, damage: str | None, *, has_header: bool) -> None:
    lines = section("GPU Speed Of Light Throughput", ROWS, has_header=has_header).splitlines(keepends=True)
    n_kept = n_lines if has_header or n_lines < 4 else n_lines - 2
    assert read_log(tmp_path, f"{log(SPEED)}{SECOND}{''.join(lines[:n_kept])}\n").damage == damage


def test_the_table_of_the_raw_page_has_no_last_ruler(tmp_path: Path) -> None:
    lines = console_table([(DURATION, "us", "100.00")], indent="  ").splitlines(keepends=True)
    report = read_log(tmp_path, log(*lines[1:-1]))
    assert (counter_values(report, DURATION), report.damage) == ([[100e3]], None)


def test_a_launch_with_only_a_rule_is_not_lost(tmp_path: Path) -> None:
    report = read_log(tmp_path, f"{log(SPEED)}{SECOND}    Section: Occupancy\n    OPT   Launch more blocks.\n")
    assert (report.rules["message"].to_list(), report.damage) == (["Launch more blocks."], None)


# ---- lines that are no values ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "$ sudo /opt/ncu --metrics l1tex__t_bytes.sum.per_second ./sum_matrix 32",
        "ncu --metrics dram__bytes_write.sum ./sum_matrix byte 32",
        "[me@host ~]$ srun -n 1 nv-nsight-cu-cli --metrics dram__bytes_write.sum 32",
        "--metrics gpu__time_duration.sum,dram__bytes_write.sum 32",
        "--metrics=dram__bytes_write.sum 32",
        "./my__program 32",
        "Kernel time: gpu__time_duration.sum = 12.5",
    ],
)
def test_lines_of_counters_without_a_value_are_left_out(tmp_path: Path, line: str) -> None:
    text = f"{log(SPEED)}{line}\n[4243] app@127.0.0.1\n{SECOND}{SPEED}"
    report = read_log(tmp_path, text)
    assert set(report.counters.columns) == set(read_log(tmp_path, f"{log(SPEED)}{SECOND}{SPEED}").counters.columns)
    assert (report.warnings, report.damage) == ((), None)


# ---- prefixes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prefix",
    [
        "2025-07-01T12:00:00.1234567Z ",
        "[2025-07-01 12:00:00,123] ",
        "2025-07-01T12:00:00+02:00 ",
        "trainer-1  | ",
        "\x1b[32m",
        "\x1b]0;a title\x07",
        "\x1b]0;a title\x1b\\",
    ],
)
def test_times_containers_and_colours_before_each_line_are_left_out(tmp_path: Path, prefix: str) -> None:
    text = "".join(f"{prefix}{line}\n" for line in log(SPEED, REGISTERS).splitlines())
    report = read_log(tmp_path, text)
    assert report.workloads["demangled_name"].to_list() == ["void ns::fn<int>(int, T1)"]
    assert report.processes.rows() == [(4242, "app")]
    assert counter_values(report, DURATION, REGISTERS_NAME) == [[100e3], [40.0]]
    assert report.damage is None


def test_times_before_lines_of_csv_are_left_out(tmp_path: Path) -> None:
    table = long_table([{DURATION: ("us", "100.00")}])
    text = "".join(f"2025-07-01T12:00:00.1234567Z {line}\n" for line in table.splitlines())
    assert counter_values(read_log(tmp_path, text), DURATION) == [[100e3]]


def test_lines_of_several_containers_are_refused(tmp_path: Path) -> None:
    lines = "".join(f"trainer-1  | {line}\ntrainer-2  | {line}\n" for line in log(SPEED).splitlines())
    with pytest.raises(ReportFormatError, match="lines of several ranks") as raised:
        read_log(tmp_path, lines)
    assert "docker compose logs" in (raised.value.hint or "")


def test_a_number_before_a_line_may_have_any_length(tmp_path: Path) -> None:
    report = read_log(tmp_path, f"{'9' * 5000}: a program's output\n{log(SPEED)}")
    assert counter_values(report, DURATION) == [[100e3]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{SECOND}[4242] app@127.0.0.1\n{SPEED}", "found names and, apart from them, tables"),
    ],
)
def test_names_and_tables_that_cannot_be_joined_are_refused_with_what_was_found(
    tmp_path: Path, text: str, found: str
) -> None:
    with pytest.raises(ReportFormatError, match=re.escape(found)):
        read_log(tmp_path, text)


# ---- rules -------------------------------------------------------------------------------------------


def test_rules_of_the_first_versions_and_tiny_speedups_are_read(tmp_path: Path) -> None:
    rules = (
        "    OK    The kernel is busy.\n          All is well.\n\n    OPT   Est. Speedup: 1.193e-05%\n          Hardly anything.\n"
        "OK 5 tests passed\n"
    )
    report = read_log(tmp_path, log(SPEED, rules))
    assert report.rules.select("message", "type", "speedup_frac", "scope").rows() == [
        ("The kernel is busy. All is well.", "ok", None, None),
        ("Hardly anything.", "optimization", pytest.approx(1.193e-7), "global"),
    ]


# ---- tabs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pasted",
    [
        lambda line: re.sub(r"(?<=\S) {2,}(?=\S)", "\t", line),  # of a spreadsheet or a chat
        lambda line: re.sub(r" {2,}", "\t", line.strip()),
        lambda line: "".join(
            re.sub(r" +$", "\t", f"{line[at : at + 8]:8}") for at in range(0, len(line), 8)
        ),  # unexpand -a
    ],
)
def test_columns_may_be_separated_by_tabs(tmp_path: Path, pasted: Callable[[str], str]) -> None:
    text = log(
        SPEED, section(LAUNCH_STATS, [("Registers Per Thread", "register/thread", "40"), ("Block Size", "", "256")])
    )
    report = read_log(tmp_path, "".join(f"{pasted(line)}\n" for line in text.splitlines()))
    assert counter_values(report, DURATION, DRAM, REGISTERS_NAME) == [[100e3], [12.5], [40.0]]
    assert report.workloads["function_name"].to_list() == ["fn"]
    assert report.damage is None


# ---- Markdown and web pages ---------------------------------------------------------------------------

TEXT = log(
    SPEED, section(LAUNCH_STATS, [("Registers Per Thread", "register/thread", "40"), ("Waves Per SM", "", "2.37")])
)


@pytest.mark.parametrize(
    "pasted",
    [
        lambda text: text.replace("<", "&lt;").replace(">", "&gt;"),
        lambda text: text.replace("_", r"\_").replace("%", r"\%").replace("<", r"\<").replace("# ", r"\# "),
        lambda text: text.replace("    Section: ", "### Section: "),
    ],
)
def test_escapes_of_markdown_and_web_pages_are_read(tmp_path: Path, pasted: Callable[[str], str]) -> None:
    report = read_log(tmp_path, pasted(TEXT))
    assert report.workloads["demangled_name"].to_list() == ["void ns::fn<int>(int, T1)"]
    assert counter_values(report, DURATION, DRAM, REGISTERS_NAME) == [[100e3], [12.5], [40.0]]
    assert report.damage is None


def test_escaped_names_of_counters_are_read(tmp_path: Path) -> None:
    rows = [
        ("gpu\\_\\_time\\_duration.sum", "us", "100.00"),
        ("gpu\\_\\_dram\\_throughput.avg.pct\\_of\\_peak\\_sustained\\_elapsed", r"\%", "12.50"),
    ]
    assert counter_values(read_log(tmp_path, log(console_table(rows))), DURATION, DRAM) == [[100e3], [12.5]]


@pytest.mark.parametrize("quote", ["", "> "])
@pytest.mark.parametrize("has_heading", [True, False])
def test_tables_of_markdown_are_read(tmp_path: Path, quote: str, *, has_heading: bool) -> None:
    heading = (
        "Section: GPU Speed Of Light Throughput\n\n| Metric Name | Metric Unit | Metric Value |\n"
        if has_heading
        else ""
    )
    rows = "| Duration | us | 1,100.00 |\n| DRAM Throughput | % | 12.50 |\n| Waves Per SM | | 2.37 |\n"
    text = f"{LAUNCH}\n{heading}|---|:---:|---:|\n{rows}"
    report = read_log(tmp_path, "".join(f"{quote}{line}\n" for line in text.splitlines()))
    assert counter_values(report, DURATION, DRAM, "launch__waves_per_multiprocessor") == [[1.1e6], [12.5], [2.37]]
    assert report.damage is None


@pytest.mark.parametrize("separator", ["\u2019", " ", "'", "\u202f", ","])
@pytest.mark.parametrize("has_rulers", [True, False])
def test_thousands_may_be_separated_by_any_character(tmp_path: Path, separator: str, *, has_rulers: bool) -> None:
    rows = [("Duration", "us", f"1{separator}234.50"), ("Elapsed Cycles", "cycle", f"1{separator}234{separator}567")]
    text = section("GPU Speed Of Light Throughput", rows)
    lines = [line for line in text.splitlines() if has_rulers or "---" not in line]
    report = read_log(tmp_path, log("\n".join(lines)))
    assert counter_values(report, DURATION, "gpc__cycles_elapsed.max") == [[1234.5e3], [1234567.0]]
    assert report.damage is None


# ---- progress of another ncu --------------------------------------------------------------------------

PROGRESS = '==PROF== Profiling "other" - 1: 0%....50%....100% - 8 passes\n'


@pytest.mark.parametrize("n_lines", range(2, 21))
def test_progress_among_the_tables_of_a_launch_loses_nothing(tmp_path: Path, n_lines: int) -> None:
    text = log(SPEED, "    OPT   This kernel waits\n          for memory.\n\n", REGISTERS)
    lines = text.splitlines(keepends=True)
    assert len(lines) > n_lines
    report = read_log(tmp_path, "".join([*lines[:n_lines], PROGRESS, *lines[n_lines:]]))
    assert report.workloads["function_name"].to_list() == ["fn"]
    assert counter_values(report, DURATION, DRAM, REGISTERS_NAME) == [[100e3], [12.5], [40.0]]
    assert report.rules["message"].to_list() == ["This kernel waits for memory."]
    assert (report.damage, report.warnings) == (None, ())


def test_progress_within_the_raw_page_loses_nothing(tmp_path: Path) -> None:
    rows = [
        ("gpu__time_duration.sum", "us", "100.00"),
        (REGISTERS_NAME, "register/thread", "40"),
        ("sm__a.sum", "", "1"),
    ]
    lines = log(console_table(rows)).splitlines(keepends=True)
    for n_lines in range(2, len(lines)):
        report = read_log(tmp_path, "".join([*lines[:n_lines], PROGRESS, *lines[n_lines:]]))
        assert counter_values(report, DURATION, REGISTERS_NAME, "sm__a.sum") == [[100e3], [40.0], [1.0]]
