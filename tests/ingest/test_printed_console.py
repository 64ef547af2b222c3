"""What ncu prints on a terminal gives the same tables as what it prints as CSV, also out of logs, notes and mails."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ncuroof.cli import main
from ncuroof.errors import ReportFormatError
from ncuroof.ingest import open_report
from ncuroof.reading import read
from tests.support.console import LAUNCH, log, section, table
from tests.support.ncu import find_ncu, print_page, print_terminal_page
from tests.support.printed_logs import counter_values, read_log

SPEED_OF_LIGHT, LAUNCH_STATS, SCHEDULER = "GPU Speed Of Light Throughput", "Launch Statistics", "Scheduler Statistics"
DURATION, DRAM, MEMORY, CLOCK = (
    "gpu__time_duration.sum",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "gpc__cycles_elapsed.avg.per_second",
)
SPEED = section(
    SPEED_OF_LIGHT,
    [("SM Frequency", "Ghz", "1.41"), ("DRAM Throughput", "%", "12.50"), ("Duration", "us", "1,234.50")],
)
_MENTIONED = ("smsp__sass_average", "memory_l", "l1tex__data_")
EVERY = 9
"""Of the corpus's reports: ncu prints each of them twice."""


# ---- a log -------------------------------------------------------------------------------------------


def test_launches_their_process_their_shape_and_their_counters_are_read(tmp_path: Path) -> None:
    rows = [("Grid Size", "", "200"), ("Registers Per Thread", "register/thread", "40"), ("# SMs", "SM", "132")]
    text = (
        f"==PROF== Connected to process 4242\nEpoch 1, loss 0.5\n{log(SPEED, section(LAUNCH_STATS, rows))}"
        f"  other(float) (1, 1, 1)x(32, 1, 1), Context 1, Stream 13, Device 1, CC 9.0\n{SPEED}"
    )
    report = read_log(tmp_path, text)
    assert report.workloads.select("function_name", "demangled_name", "workload").rows() == [
        ("fn", "void ns::fn<int>(int, T1)", "kernel"),
        ("other", "other(float)", "kernel"),
    ]
    assert report.processes.rows() == [(4242, "app")] * 2
    assert counter_values(report, DURATION, DRAM, CLOCK) == [[1234500.0] * 2, [12.5] * 2, [pytest.approx(1.41e9)] * 2]
    assert counter_values(report, "launch__registers_per_thread", "launch__sm_count") == [[40.0, None], [132.0, None]]
    assert counter_values(report, "launch__grid_dim_y", "launch__block_dim_x") == [[20.0, 1.0], [256.0, 32.0]]
    assert counter_values(report, "launch__stream_id", "launch__device_id") == [[7.0, 13.0], [0.0, 1.0]]
    assert report.sections == ("SpeedOfLight", "LaunchStats")
    assert (report.damage, report.is_printed) == (None, True)


def test_old_versions_print_a_date_and_no_shape(tmp_path: Path) -> None:
    old = section("GPU Speed Of Light", [("SOL DRAM", "%", "39.60"), ("Duration", "usecond", "2.00")])
    report = read_log(tmp_path, log(old, launch="fn(int), 2020-Apr-07 17:01:05, Context 1, Stream 7"))
    assert report.workloads["demangled_name"].to_list() == ["fn(int)"]
    assert counter_values(report, DRAM, DURATION) == [[39.6], [2000.0]]


def test_the_raw_page_has_names_and_breaks_long_values(tmp_path: Path) -> None:
    width = len("Metric Value") + 2
    named = [("device__attribute_display_name", "", "NVIDIA"), ("sm__inst.sum", "inst", "7" * width)]
    broken = table(named, indent="  ").replace("NVIDIA\n", f"NVIDIA\n{' ' * 46}A100-PCIE\n", 1)
    cut = broken.replace("7" * width, f"{'7' * width}\n{' ' * 60}77")
    report = read_log(tmp_path, log(cut))
    assert report.texts["device__attribute_display_name"].to_list() == ["NVIDIA A100-PCIE"]
    assert counter_values(report, "sm__inst.sum") == [[float("7" * (width + 2))]]


def test_rules_are_read_with_what_they_promise(tmp_path: Path) -> None:
    rules = (
        "    OPT   Est. Local Speedup: 65.32%\n          Every scheduler is capable of\n          issuing one.\n"
        "    ----- ------------------\n    INF   Nothing to do.\n\n    WRN   Estimated Speedup: 5%\n          Old.\n"
    )
    report = read_log(tmp_path, log(SPEED, rules, "My notes: 3 times as fast now.\n"))
    assert report.rules.select("section", "message", "type", "speedup_frac", "scope").rows() == [
        ("SpeedOfLight", "Every scheduler is capable of issuing one.", "optimization", pytest.approx(0.6532), "local"),
        ("SpeedOfLight", "Nothing to do.", "ok", None, None),
        ("SpeedOfLight", "Old.", "warning", pytest.approx(0.05), "global"),
    ]


def test_words_after_a_rule_are_nvidias_only_if_they_are_indented(tmp_path: Path) -> None:
    report = read_log(tmp_path, log(SPEED, "    OPT   A wave is\n          full.\nI doubled the block size.\n"))
    assert report.rules["message"].to_list() == ["A wave is full."]


def test_labels_of_breakdowns_and_stalls_are_read(tmp_path: Path) -> None:
    parts = [
        ("Memory [%]", "%", "50.00"),
        ("L1: Lsu Writeback Active", "%", "49.50"),
        ("DRAM: Dram Sectors", "%", "3.00"),
    ]
    stalls = [("Stall Long Scoreboard", "inst", "10.24"), ("Stall IMC Miss", "inst", "0.50")]
    report = read_log(tmp_path, log(section(SPEED_OF_LIGHT, parts), section("Warp State Statistics", stalls)))
    suffix = "avg.pct_of_peak_sustained_elapsed"
    assert counter_values(report, MEMORY, f"l1tex__lsu_writeback_active.{suffix}", f"fbpa__dram_sectors.{suffix}") == [
        [50.0], [49.5], [3.0],
    ]  # fmt: skip
    stalled = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    assert counter_values(report, stalled.format("long_scoreboard"), stalled.format("imc_miss")) == [[10.24], [0.5]]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("waiting for a scoreboard dependency on a\n          L1TEX (local, global) operation", "long_scoreboard"),
        ("waiting for a scoreboard dependency on an MIO operation", "short_scoreboard"),
        ("waiting for the L1 instruction queue for local and global (LG) memory operations", "lg_throttle"),
        ("waiting for the MIO (memory input/output) instruction queue to be not full", "mio_throttle"),
        ("after EXIT waiting for all outstanding memory operations", "drain"),
    ],
)
def test_stalls_are_read_from_nvidias_sentence(tmp_path: Path, words: str, reason: str) -> None:
    counter = f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    said = f"    WRN   On average, each warp of this kernel spends 20.3 cycles being stalled {words}. This is about 62.6%.\n"
    other = f"  other(int) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n{SPEED}"
    report = read_log(tmp_path, log(section("Warp State Statistics", [("Selected", "inst", "1")]), said, other))
    assert counter_values(report, counter) == [[20.3, None]]
    assert [name for name in report.counters.columns if "issue_stalled" in name and name != counter] == [
        "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio"
    ]


SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.ratio"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (
            "The memory access pattern for global loads from L1TEX might not be optimal. On average, only 6.4 of the\n"
            "          32 bytes transmitted per sector are utilized by each thread.",
            {SECTOR.format("ld"): 6.4},
        ),
        (
            "The memory access pattern for global stores to L2 might not be optimal. On average, only 25,0 of the 32 bytes\n"
            "          transmitted per sector are utilized by each thread. This applies to the 50,0% of sectors missed.",
            {SECTOR.format("st"): 25.0},
        ),
        (
            "The memory access pattern for local loads from L2 might not be optimal. On average, only 3.3 of the 32 bytes\n"
            "          transmitted per sector are utilized by each thread.",
            {},
        ),
        (
            "This kernel has uncoalesced global accesses resulting in a total of 3000 excessive sectors (75% of the\n"
            "          total 4000 sectors).",
            {"memory_l2_theoretical_sectors_global": 4000.0, "memory_l2_theoretical_sectors_global_ideal": 1000.0},
        ),
        (
            "This kernel has uncoalesced shared accesses resulting in a total of 310 excessive wavefronts (97% of the\n"
            "          total 320 wavefronts).",
            {"memory_l1_wavefronts_shared": 320.0, "memory_l1_wavefronts_shared_ideal": 10.0},
        ),
        (
            "The memory access pattern for shared loads might not be optimal and causes on average a 2.0 - way bank\n"
            "          conflict across all 64 shared load requests.This results in 60 bank conflicts,  which represent 48.39%\n"
            "          of the overall 124 wavefronts for shared loads.",
            {CONFLICTS.format("ld"): 60.0, WAVEFRONTS.format("ld"): 124.0},
        ),
        ("This kernel has uncoalesced global accesses resulting in a total of 3,000 excessive sectors.", {}),
    ],
)
def test_counters_are_read_from_nvidias_sentences(tmp_path: Path, words: str, values: dict[str, float]) -> None:
    report = read_log(tmp_path, log(SPEED, f"    WRN   {words}\n"))
    found = {name: report.counters[name][0] for name in report.counters.columns if name.startswith(_MENTIONED)}
    assert found == values


@pytest.mark.long
def test_sentences_lead_to_the_cause_that_the_report_gives(tmp_path: Path) -> None:
    said = "    OPT   The memory access pattern for global loads from L1TEX might not be optimal. On average, only 4.0 of the 32\n"
    said += "          bytes transmitted per sector are utilized by each thread.\n"
    busy = [("Memory Throughput", "%", "90"), ("L1/TEX Cache Throughput", "%", "90"), ("DRAM Throughput", "%", "90")]
    speed = section(SPEED_OF_LIGHT, [*busy, ("Compute (SM) Throughput", "%", "9"), ("Duration", "us", "100")])
    path = tmp_path / "ncu.log"
    path.write_text(log(speed, said))
    (kernel,) = read(path).analyse().to_dict()["kernels"]
    assert kernel["access"]["load_bytes_per_sector"] == 4
    assert "access.load_bytes_per_sector" not in {entry["quantity"] for entry in kernel["missing"]}


def test_a_counter_that_is_printed_stands_before_the_sentence(tmp_path: Path) -> None:
    said = (
        "    WRN   On average, each warp spends 20.3 cycles being stalled waiting for sibling warps at a CTA barrier.\n"
    )
    report = read_log(tmp_path, log(section("Warp State Statistics", [("Stall Barrier", "inst", "20.34")]), said))
    assert counter_values(report, "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio") == [[20.34]]


# ---- notes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["> ", "// ", "#  ", "17: ", "│ ", ">> > "])
def test_quoted_lines_are_read(tmp_path: Path, mark: str) -> None:
    text = "".join(f"{mark}{line}\n" for line in log(SPEED).splitlines())
    assert counter_values(read_log(tmp_path, text), DURATION, DRAM) == [[1234500.0], [12.5]]


def test_numbers_of_lines_may_grow(tmp_path: Path) -> None:
    text = "".join(f"{number}: {line}\n" for number, line in enumerate(log(SPEED).splitlines(), 4))
    assert counter_values(read_log(tmp_path, text), DURATION, DRAM) == [[1234500.0], [12.5]]


def test_blanks_may_be_lost(tmp_path: Path) -> None:
    occupancy = section("Occupancy", [("Block Limit SM", "block", "32"), ("Theoretical Occupancy", "%", "50")])
    waves = section(LAUNCH_STATS, [("# SMs", "SM", "132"), ("Waves Per SM", "", "2.37")])
    text = "\n".join(" ".join(line.split()) for line in log(SPEED, occupancy, waves).splitlines())
    report = read_log(tmp_path, text)
    assert counter_values(report, DURATION, "launch__occupancy_limit_blocks", "launch__sm_count") == [
        [1234500.0],
        [32.0],
        [132.0],
    ]
    assert counter_values(report, "launch__waves_per_multiprocessor") == [[2.37]]


@pytest.mark.parametrize("remark", ["   <- hardly any", "  # low", "  ← locked", "    16 at most"])
def test_remarks_after_values_are_left_out(tmp_path: Path, remark: str) -> None:
    text = re.sub(r"(12\.50|1\.41)$", rf"\1{remark}", log(SPEED), flags=re.MULTILINE)
    report = read_log(tmp_path, text)
    assert counter_values(report, DRAM, CLOCK) == [[12.5], [pytest.approx(1.41e9)]]
    assert report.damage is None


def test_tables_without_headers_and_rulers_are_read_by_their_labels(tmp_path: Path) -> None:
    bare = (
        "    Section: Launch Statistics\n    Registers Per Thread   register/thread    106\n    Waves Per SM    2.37\n"
        "Waves Per SM went from 9 to 2\n    Function Cache Configuration   CachePreferNone\n"
    )
    report = read_log(tmp_path, log(SPEED, bare))
    assert counter_values(report, "launch__registers_per_thread", "launch__waves_per_multiprocessor") == [
        [106.0],
        [2.37],
    ]
    assert not report.texts.width


def test_a_label_without_its_section_belongs_to_the_only_section_that_has_it(tmp_path: Path) -> None:
    bare = "```\nand the scheduler:\n```\n" + table([("Eligible Warps Per Scheduler", "warp", "3.14")])
    report = read_log(tmp_path, log(SPEED, bare, "    sm__inst_executed.sum    inst    1024\n"))
    assert counter_values(report, "smsp__warps_eligible.avg.per_cycle_active", "sm__inst_executed.sum") == [
        [3.14],
        [1024.0],
    ]


def test_the_same_label_in_a_chart_has_its_own_meaning(tmp_path: Path) -> None:
    chart = section("GPU Speed Of Light Roofline Chart", [("SM Frequency", "Ghz", "1.98")])
    assert CLOCK not in read_log(tmp_path, log(chart, section(LAUNCH_STATS, [("Grid Size", "", "1")]))).counters.columns


def test_a_launch_may_be_broken_over_two_lines_and_lines_left_out(tmp_path: Path) -> None:
    broken = LAUNCH.replace(", Context", ", \n      Context")
    text = log(SPEED, launch=broken).replace("    DRAM Throughput", "    // of its peak\n    ...\n    DRAM Throughput")
    report = read_log(tmp_path, text)
    assert report.workloads["function_name"].to_list() == ["fn"]
    assert counter_values(report, DRAM, DURATION) == [[12.5], [1234500.0]]
    assert report.damage is None


def test_a_warning_among_the_sections_does_not_end_the_launch(tmp_path: Path) -> None:
    text = log("==WARNING== Failed to detect compute capability, assuming 50\n", SPEED)
    assert counter_values(read_log(tmp_path, text), DURATION, DRAM) == [[1234500.0], [12.5]]


@pytest.mark.parametrize("gap", ["  ", " ", ""])
def test_units_may_stand_after_their_numbers(tmp_path: Path, gap: str) -> None:
    lines = (
        f"    DRAM Throughput      12.50{gap}%\n    SM Frequency  1.41{gap}Ghz  <- locked\n    Waves Per SM      2.37\n"
    )
    report = read_log(tmp_path, log(SPEED.replace("DRAM Throughput", "Something"), lines, "DRAM Throughput was 99 %\n"))
    assert counter_values(report, DRAM, "launch__waves_per_multiprocessor") == [[12.5], [2.37]]
    assert report.damage is None


def test_a_known_label_with_an_unreadable_number_is_damage(tmp_path: Path) -> None:
    report = read_log(tmp_path, log(SPEED, "    Eligible Warps Per Scheduler    3.14 or so\n    L2 Hit Rate    9\n"))
    assert report.damage == "2 of its rows are truncated or malformed and lost"


OTHER = LAUNCH.replace("fn", "other")


def test_tables_without_a_name_are_remarked_if_there_are_several_kernels(tmp_path: Path) -> None:
    registers = section(LAUNCH_STATS, [("Registers Per Thread", "register/thread", "40")])
    eligible = section(SCHEDULER, [("Eligible Warps Per Scheduler", "warp", "3.14")])
    named = f"```\n{log(SPEED)}```\n```\n{OTHER}\n{SPEED}{registers}```\n"
    apart = f"and the scheduler:\n```\n{eligible}```\n"
    assert read_log(tmp_path, named).warnings == ()
    report = read_log(tmp_path, named + apart)
    assert counter_values(report, "smsp__warps_eligible.avg.per_cycle_active") == [[None, 3.14]]
    assert report.warnings == (
        "tables apart from any kernel's name are assigned to the last kernel named before them: 1 for other",
    )
    assert read_log(tmp_path, f"```\n{log(SPEED)}```\n{apart}").warnings == ()  # no other kernel to mean
    prompt = read_log(
        tmp_path, f"{log(SPEED)}{OTHER}\n{SPEED}[me@host ~]$ /opt/ncu --section SchedulerStats\n{eligible}"
    )
    assert "1 for other" in prompt.warnings[0]


@pytest.mark.long
def test_warnings_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "note.md"
    path.write_text(SPEED)
    main(["report", str(path), "-o", "-"])
    shown = capsys.readouterr()
    assert "warning: note.md: no line names a kernel" in shown.err
    assert "(no name)" in shown.out


def test_a_text_that_names_no_launch_is_one_of_a_kernel_without_a_name(tmp_path: Path) -> None:
    registers = section(LAUNCH_STATS, [("Registers Per Thread", "register/thread", "40"), ("Block Size", "", "256")])
    report = read_log(tmp_path, f"My kernel:\n```\n{SPEED}```\nand\n```\n{registers}```\n")
    assert report.workloads.select("function_name", "demangled_name", "workload").rows() == [(None, None, "kernel")]
    assert counter_values(report, DURATION, "launch__registers_per_thread") == [[1234500.0], [40.0]]
    assert report.warnings == ("no line names a kernel: the sections are read as one launch",)
    twice = read_log(tmp_path, f"before\n{SPEED}{registers}after\n{SPEED.replace('12.50', '25.00')}")
    assert counter_values(twice, DRAM, "launch__registers_per_thread") == [[12.5, 25.0], [40.0, None]]
    assert twice.warnings == (
        "no line names a kernel: the sections are read as 2 launches, a new one from each section that repeats",
    )


# ---- what belongs to nothing --------------------------------------------------------------------------


def test_sections_below_a_process_without_a_launch_are_damage(tmp_path: Path) -> None:
    rows = [("Registers Per Thread", "register/thread", "40"), ("Block Size", "", "256")]
    lost = f"[4242] app@127.0.0.1\n{section(LAUNCH_STATS, rows)}"
    report = read_log(tmp_path, f"{log(SPEED)}```\n{lost}```\nBlock Size 64\n[4242] app@127.0.0.1\n{OTHER}\n{SPEED}")
    assert report.damage == "2 of its rows are truncated or malformed and lost"
    assert "launch__registers_per_thread" not in report.counters.columns


@pytest.mark.parametrize(
    "between",
    [
        "==PROF== Connected to process 9\nSelected device 0\nGrid Size 4096\nDRAM Throughput % 99\n",  # of the next run
        "[9] app@127.0.0.1\nWaves Per SM 7\nDRAM Throughput % 99\n",
        "  two(int) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7`\n" + SPEED.replace("12.50", "99.00"),
        "    Metric Name          Metric Unit Minimum Maximum Average\n    DRAM Throughput      %   99   99   99\n",
        "DRAM Throughput 99\nSM Frequency device 9\nWaves Per SM" + " " * 20_000 + "x\n",
    ],
)
def test_text_between_launches_does_not_belong_to_the_launch_before(tmp_path: Path, between: str) -> None:
    bare = section(LAUNCH_STATS, [("Registers Per Thread", "register/thread", "40")])
    report = read_log(tmp_path, log(bare) + between)
    assert report.workloads.height == 1
    assert DRAM not in report.counters.columns
    assert CLOCK not in report.counters.columns
    assert "launch__waves_per_multiprocessor" not in report.counters.columns


def test_a_launch_without_values_is_damage(tmp_path: Path) -> None:
    mixed = f"{LAUNCH}\n{LAUNCH.replace('fn', 'of_rank_1')}\n{SPEED}"
    assert read_log(tmp_path, mixed).damage == "a launch is named without any value"


def test_lines_of_several_ranks_are_refused(tmp_path: Path) -> None:
    lines = "".join(f"0: {line}\n1: {line}\n" for line in log(SPEED).splitlines())
    with pytest.raises(ReportFormatError, match="lines of several ranks"):
        read_log(tmp_path, lines)


# ---- what is none ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found", "hint"),
    [
        ("Epoch 1\nDuration us 5\n", "found another text file", "--page raw --csv"),
        (
            "Epoch 1\nDuration us 5\nDRAM Throughput % 72.72\n",
            "found values without (Duration, DRAM Throughput)",
            "or the heading of their section",
        ),
        (log(), "values, found kernels' names without any", "sections with their tables"),
        (f"    Section: {SPEED_OF_LIGHT}\n", "values, found sections without any", "sections with their tables"),
        (
            f"We ran fn (1, 1, 1)x(32, 1, 1)\n{SPEED}",
            "expected a line with the kernel's name and context above its sections",
            "Context 1",
        ),
    ],
)
def test_other_texts_are_refused(tmp_path: Path, text: str, found: str, hint: str) -> None:
    with pytest.raises(ReportFormatError, match=re.escape(found)) as raised:
        read_log(tmp_path, text)
    assert hint in (raised.value.hint or "")


def test_a_summary_is_made_of_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "slurm-17.out"
    path.write_text(log(SPEED))
    main(["report", str(path), "-o", "-"])
    assert "fn   1.23 ms" in capsys.readouterr().out


@pytest.mark.oracle
@pytest.mark.corpus
@pytest.mark.parametrize("page", ["details", "raw"])
def test_the_terminals_page_holds_what_the_csv_holds(tmp_path: Path, corpus: list[Path], page: str) -> None:
    ncu = find_ncu()
    if ncu is None:
        pytest.skip("no ncu command-line tool here")
    n_values = 0
    for path in corpus[::EVERY]:
        files = tmp_path / "page.csv", tmp_path / "page.txt"
        for file, printed in zip(files, (print_page, print_terminal_page), strict=True):
            file.write_bytes(printed(ncu, path, "--page", page, "--print-units", "base"))
        as_csv, on_terminal = map(open_report, files)
        assert on_terminal.damage is None
        assert as_csv.workloads.equals(on_terminal.workloads)
        assert as_csv.processes.equals(on_terminal.processes)
        assert set(as_csv.counters.columns) == set(on_terminal.counters.columns)
        assert as_csv.counters.equals(on_terminal.counters.select(as_csv.counters.columns))
        n_values += as_csv.counters.count().sum_horizontal()[0]
    assert n_values > 500
