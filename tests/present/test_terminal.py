"""The terminal summary fits its columns and passes no control character on, whatever the kernels are called."""

from __future__ import annotations

import html
import shlex
import shutil
import subprocess
import sys
import time
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

import ncuroof
from ncuroof import formatting
from ncuroof.analysis import Analysis
from ncuroof.present import render
from ncuroof.present.page.render import render_page
from ncuroof.present.texts.answer import answer
from ncuroof.present.texts.run_summary import run_summary
from ncuroof.present.texts.terminal import TerminalOptions, print_summary, to_text
from ncuroof.reading import Reports
from ncuroof.sidecars.counts import Counts, KernelCount
from tests.support import demo
from tests.support.constructed_counters import kernel
from tests.support.patience import PATIENCE_S
from tests.support.raw import raw_report, with_code
from tests.support.report_writer import METRICS_BY_CHIP, Device, Kernel, Session, write_report

ROOT = Path(__file__).resolve().parents[2]
METRICS = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0}
VERBOSE = TerminalOptions(is_verbose=True)
FIXTURES = sorted([*ROOT.glob("fixtures/**/*.ncu-rep"), *ROOT.glob("fixtures/**/*.ncu-repz")])
HOSTILE = {
    "template": "void at::native::" + "vectorized_elementwise_kernel<4, " * 300 + ">" * 300,
    "one word": "x" * 10_000,
    "wide": "漢字カーネル" * 500,
    "wide in a word": "a漢" * 20,
    "direction": "safe\u202egnp.exe\u2066\u2067\u200f",
    "escape": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J",
    "C1 escape": "\x9b31mred\x85\x90",
    "lines": "a\nb\r\nc\rd\x0be\x0cf\u2028g\u2029h",
    "markup": "[bold red]x[/bold red][/][link=http://a]b[/link]",
    "nothing": "",
    "nul": "a\0b",
    "combining": "e" + "\u0301" * 500,
    "emoji": "👩‍👩‍👧‍👦" * 40,
    "rubout": "\x7f\x08\x08",
}


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return ncuroof.read(demo.REPORT).analyse()


def _assert_fits(text: str, n_cells: int = 80) -> None:
    assert text.endswith("\n")
    for line in text.split("\n"):
        assert cell_len(line) <= n_cells, line
        controls = {
            unicodedata.name(c, hex(ord(c))) for c in line if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}
        }
        assert not controls
        assert not set(line) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


def _summary(
    tmp_path: Path,
    *kernels: Kernel,
    session: Session | None = None,
    file: str = "run.ncu-rep",
    view: TerminalOptions | None = None,
) -> str:
    path = tmp_path / file
    path.write_bytes(write_report(kernels, session or Session()))
    return to_text(ncuroof.read(path).analyse(), view)


def test_no_line_begins_with_a_command_of_a_workflow() -> None:
    report = raw_report({"gpu__time_duration.sum": 1e6}, names=["::error file=x::y"])
    text = to_text(Reports((report,)).analyse())
    assert "\\u003a:error file=x::y" in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]


def test_the_demo_fits_80_columns_and_says_the_essentials(analysis: Analysis) -> None:
    text = to_text(analysis)
    _assert_fits(text)
    for essential in (
        "h200-training-step.ncu-rep",
        "simulated",
        "NVIDIA H200",
        "16 launches take 21.0 ms",
        "limited by memory",
        "What to do",
        "about ",
    ):
        assert essential in text


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_kernel_names_fit_and_do_not_act(tmp_path: Path, name: str) -> None:
    known = kernel(replace(demo.PLANTED[-3].kernel, name=name))
    text = _summary(tmp_path, Kernel(name, METRICS, demangled=name), known, known, known)
    _assert_fits(text)
    assert "4 launches" in " ".join(text.split())
    for view in (VERBOSE, TerminalOptions(is_table=True)):
        _assert_fits(_summary(tmp_path, Kernel(name, METRICS, demangled=name), known, known, known, view=view))


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_sessions_fit_and_do_not_act(tmp_path: Path, name: str) -> None:
    session = Session(ncu_version=name, command_line=name, devices=(Device(0, name),), processes=((4242, name),))
    metrics = {**METRICS, "device__attribute_display_name": name}
    _assert_fits(_summary(tmp_path, Kernel("k", metrics, nvtx=(name,), sections=(name,)), session=session))


@pytest.mark.parametrize("file", ["\x1b[31m.ncu-rep", "漢" * 80, "x" * 250, "a\nb.ncu-rep"])
def test_hostile_file_names_fit_and_do_not_act(tmp_path: Path, file: str) -> None:
    _assert_fits(_summary(tmp_path, Kernel("k", METRICS), file=file))


@pytest.mark.long
def test_the_number_of_launches_is_not_what_gets_cut(tmp_path: Path) -> None:
    for name in (HOSTILE["wide"], HOSTILE["one word"]):
        text = _summary(tmp_path, *([Kernel(name, METRICS)] * 7), view=TerminalOptions(is_table=True))
        (line,) = (line for line in text.splitlines() if "… ×7 " in line)
        assert cell_len(line) <= 80


def test_hundreds_of_kernels_stay_a_summary(tmp_path: Path) -> None:
    kernels = [Kernel(f"kernel_{i}", {**METRICS, "gpu__time_duration.sum": 1000.0 * i}) for i in range(300)]
    text = _summary(tmp_path, *kernels)
    _assert_fits(text)
    assert "300 launches take" in text
    assert len(text.splitlines()) <= MOST_LINES
    assert "290 of 300 kernels not shown: --kernels all" in _summary(
        tmp_path, *kernels, view=TerminalOptions(is_table=True, n_kernels=10)
    )
    assert "not shown" not in _summary(tmp_path, *kernels, view=TerminalOptions(is_table=True))


def test_the_options_that_would_tell_why_are_not_cut(tmp_path: Path) -> None:
    pct = ".avg.pct_of_peak_sustained_elapsed"
    idle = {f"gpu__compute_memory_throughput{pct}": 20.0, f"sm__throughput{pct}": 20.0}
    occupied = {"sm__warps_active.avg.pct_of_peak_sustained_active": 90.0, "launch__waves_per_multiprocessor": 8.0}
    text = _summary(tmp_path, Kernel("k", {"gpu__time_duration.sum": 1e6} | idle | occupied, block=(256, 1, 1)))
    assert "To know why, collect --section WarpStateStats --section SchedulerStats\n" in text


def test_what_several_kernels_would_ask_for_is_asked_for_once(tmp_path: Path) -> None:
    kernels = [
        Kernel(f"kernel_{i}", {"gpu__time_duration.sum": 1e6}, grid=(4096, 1, 1), block=(256, 1, 1)) for i in range(3)
    ]
    text = _summary(tmp_path, *kernels, view=TerminalOptions(is_table=True))
    _assert_fits(text)
    assert "→ For 3 kernels without advice: to know why, collect --section SpeedOfLight\n" in text
    assert text.count("collect --section") == 1


@pytest.mark.parametrize(
    ("waves", "words"),
    [
        (
            0.56,
            "(about 19 %, at most 44.0 % per unit of work, if more blocks run at once; "
            "to know the rest, collect --section WarpStateStats)",
        ),  # of 90 % above the roofline
        (0.54, "(about 20 %, at most 46.0 % per unit of work, if more blocks run at once)"),
    ],
)
def test_a_cause_that_leaves_most_of_the_time_says_what_would_tell_why(
    tmp_path: Path, waves: float, words: str
) -> None:
    pct, fused = (
        ".avg.pct_of_peak_sustained_elapsed",
        "smsp__sass_thread_inst_executed_op_f{}_pred_on.sum.per_cycle_elapsed",
    )
    idle = {f"gpu__compute_memory_throughput{pct}": 20.0, f"sm__throughput{pct}": 20.0}
    dram = {
        "dram__bytes.sum.per_second": 1e9,
        "dram__bytes.sum.peak_sustained": 10.0,
        "dram__cycles_elapsed.avg.per_second": 1e9,
    }
    work = {fused.format("add"): 0.0, fused.format("mul"): 0.0, fused.format("fma"): 1.0}
    peak = {"sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 100.0}
    clocks = {"smsp__cycles_elapsed.avg.per_second": 1e9, "sm__cycles_elapsed.avg.per_second": 1e9}
    counters = (
        {"gpu__time_duration.sum": 1e6, "launch__waves_per_multiprocessor": waves} | idle | dram | work | peak | clocks
    )
    text = _summary(tmp_path, Kernel("k", counters, block=(256, 1, 1)), view=TerminalOptions(is_table=True))
    assert words in " ".join(text.split())


@pytest.mark.long
def test_a_damaged_report_says_so(tmp_path: Path) -> None:
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(demo.REPORT.read_bytes()[:-100])
    text = to_text(ncuroof.read(path).analyse())
    _assert_fits(text)
    assert "Note: cut.ncu-rep is damaged" in text


def test_plain_means_no_escape_even_where_colour_is_forced(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b" not in to_text(analysis)
    print_summary(analysis, color=False)
    assert "\x1b" not in capsys.readouterr().out
    print_summary(analysis)
    assert "\x1b" in capsys.readouterr().out


MOST_LINES = 22
"""Of a window of 24 lines, one is for the page's path and one for the prompt."""


@pytest.mark.long
@pytest.mark.parametrize("path", FIXTURES[::5], ids=lambda path: path.name)
def test_the_first_screen_of_a_recording_fits_a_window_at_any_width(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ncuroof.read(path).analyse()
    text = to_text(found)
    _assert_fits(text)
    assert len(text.splitlines()) <= MOST_LINES
    assert any(line and "ncuroof" not in line for line in text.splitlines()[2:4])  # the answer comes first
    for n_columns in (40, 60, 120, 200):
        monkeypatch.setenv("COLUMNS", str(n_columns))
        print_summary(found, color=False)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(cell_len, lines)) <= n_columns
        assert len(lines) <= MOST_LINES * max(1, 80 // n_columns)


@pytest.mark.parametrize("n_columns", [1, 10, 40, 79, 100, 300])
def test_any_width_of_terminal_is_kept(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], n_columns: int
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setenv("COLUMNS", str(n_columns))
    print_summary(analysis, color=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= min(n_columns, 120)


@pytest.mark.parametrize("n_columns", [12, 30, 40, 60, 80, 120])
def test_advice_and_what_would_give_most_are_never_cut(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], n_columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(n_columns))  # and no terminal
    print_summary(analysis, view=VERBOSE)
    lines = capsys.readouterr().out.splitlines()
    assert n_columns - 10 < max(map(cell_len, lines)) <= n_columns
    text = "".join("".join(lines).split())  # without blanks, as long words are parted on a narrow terminal
    summary = run_summary(analysis)
    assert max(len(line.advice) for line in summary.kernels) > n_columns
    for line in summary.kernels:
        assert f"→{_unspaced(line.advice)}" in text
        assert not line.gain or f"({_unspaced(line.gain)})" in text
    for action in answer(analysis).actions:
        for said in (action.saves, action.kernels, action.where):
            assert _unspaced(said) in text


def _unspaced(sentence: str) -> str:
    return "".join(sentence.split())


_IDLE = (
    "the run takes 4.07 ms from first kernel to last; the GPU is idle for 15.7 % of it",
    "  15.7 %  idle: for an unknown reason (320 gaps, 2.00 µs on average)",
    "            before vectorized_elementwise_kernel 4.5 %, unrolled_elementwise_kernel 2.8 %",
    "          → Look at these gaps in the profiler's own timeline.",
)


@pytest.mark.parametrize(
    ("n_columns", "expected"),
    [
        (
            80,
            [
                "the run takes 4.07 ms from first kernel to last; the GPU is idle for 15.7 % of",
                "it",
                "  15.7 %  idle: for an unknown reason (320 gaps, 2.00 µs on average)",
                "            before vectorized_elementwise_kernel 4.5 %, unrolled_elementwise_ke…",
                "          → Look at these gaps in the profiler's own timeline.",
            ],
        ),
        (
            30,
            [
                "the run takes 4.07 ms from",
                "first kernel to last; the GPU",
                "is idle for 15.7 % of it",
                "  15.7 %  idle: for an unknown",
                "          reason (320 gaps,",
                "          2.00 µs on average)",
                "            before vectorized…",
                "          → Look at these gaps",
                "            in the profiler's",
                "            own timeline.",
            ],
        ),
    ],
)
def test_sentences_on_wall_clock_time_are_wrapped_and_only_places_are_cut(
    analysis: Analysis,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    n_columns: int,
    expected: list[str],
) -> None:
    monkeypatch.setattr(
        "ncuroof.present.texts.terminal_detail.run_summary",
        lambda analysed: replace(run_summary(analysed), wall_time=_IDLE),
    )
    monkeypatch.setenv("COLUMNS", str(n_columns))
    print_summary(analysis, color=False, view=VERBOSE)
    lines = capsys.readouterr().out.splitlines()
    start = lines.index(expected[0])
    assert lines[start : start + len(expected) + 1] == [*expected, ""]


@pytest.mark.parametrize("columns", [None, "", "0", "-3", "wide", "²", "٣", "9" * 5000])
def test_without_a_terminal_or_columns_lines_are_80_wide_and_advice_is_whole(
    columns: str | None, analysis: Analysis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    print_summary(analysis, color=False, view=VERBOSE)
    printed = capsys.readouterr().out
    _assert_fits(printed)
    assert max(map(cell_len, printed.split("\n"))) == 80
    longest = max((line.advice for line in run_summary(analysis).kernels), key=len)
    assert len(longest) > 80
    assert " ".join(longest.split()) in " ".join(printed.split())
    assert to_text(analysis, VERBOSE) == printed


def test_wrapped_remarks_leave_no_blanks_at_the_ends_of_lines(analysis: Analysis) -> None:
    """rich kept the blank at which it wrapped a line that begins with an exclamation mark."""
    lines = to_text(analysis, VERBOSE).splitlines()
    assert any(line.startswith("!") for line in lines)
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.long
def test_names_are_whole_where_there_is_room_and_numbers_stand_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report((Kernel("k" * 40, METRICS), Kernel("short", METRICS)), Session()))
    for n_columns, cells in (("80", f"{'k' * 27}…  4.10 µs"), ("120", f"{'k' * 40}  4.10 µs")):
        monkeypatch.setenv("COLUMNS", n_columns)
        print_summary(ncuroof.read(path).analyse(), color=False, view=TerminalOptions(is_table=True))
        assert cells in capsys.readouterr().out


# ---- a real terminal ---------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
@pytest.mark.parametrize(("n_columns", "n_rows"), [(80, 24), (120, 40)])
def test_in_a_real_terminal_the_summary_is_readable(tmp_path: Path, n_columns: int, n_rows: int) -> None:
    report = tmp_path / "demo.ncu-rep"
    report.write_bytes(demo.REPORT.read_bytes())
    program = f"env -u COLUMNS -u LINES {shlex.quote(sys.executable)} -m ncuroof report {shlex.quote(str(report))} -o -"
    screen = _screen(tmp_path, f"cd {shlex.quote(str(ROOT))} && {program}; echo rc=$?", n_columns, n_rows)
    assert "rc=0" in screen
    assert screen[0].startswith("ncuroof · demo.ncu-rep")
    assert any(line.startswith("16 launches take 21.0 ms") for line in screen)
    (bar,) = (line for line in screen if line.startswith("█" * 20))
    assert cell_len(bar) == n_columns
    assert max(map(cell_len, screen)) <= n_columns
    assert len([line for line in screen if line]) < n_rows  # nothing of it has scrolled away


@pytest.mark.long
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_a_narrow_terminal_advice_is_whole(tmp_path: Path, analysis: Analysis) -> None:
    report = tmp_path / "demo.ncu-rep"
    report.write_bytes(demo.REPORT.read_bytes())
    program = (
        f"env -u COLUMNS -u LINES {shlex.quote(sys.executable)} -m ncuroof report {shlex.quote(str(report))} -v -o -"
    )
    screen = _screen(tmp_path, f"cd {shlex.quote(str(ROOT))} && {program}; echo rc=$?", 36, 24)
    assert max(map(cell_len, screen)) <= 36
    text = _unspaced("".join(screen))
    for line in run_summary(analysis).kernels:
        assert f"→{_unspaced(line.advice)}" in text


def _screen(folder: Path, command: str, n_columns: int, n_rows: int) -> list[str]:
    """Return what a terminal of that size shows, with what has scrolled away, when the command has printed `rc=`."""
    tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
    size = ["-x", str(n_columns), "-y", str(n_rows)]
    subprocess.run([*tmux, "new-session", "-d", *size, f"{command}; exec sleep 100"], check=True, timeout=PATIENCE_S)
    try:
        for _ in range(600):
            shown = subprocess.run(
                [*tmux, "capture-pane", "-p", "-S", "-200"],
                check=True,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
            ).stdout.splitlines()
            if any(line.startswith("rc=") for line in shown):
                return shown
            time.sleep(0.1)
    finally:
        subprocess.run([*tmux, "kill-server"], check=True, timeout=PATIENCE_S)
    return shown


@pytest.mark.long
def test_debug_builds_are_told_with_their_share_of_the_time_as_on_the_page():
    reports = ncuroof.read(demo.REPORT)
    (raw,) = reports.raw
    n = raw.workloads.height
    longest = max(reports.analyse().to_dict()["kernels"], key=lambda each: each["duration_ns"] or 0.0)
    marked = with_code(raw, is_debug_build=[number == longest["id"] for number in range(n)])
    analysis = replace(reports, raw=(marked,)).analyse()
    share = formatting.share(longest["duration_ns"] / analysis.summary.duration_ns)
    (note,) = (note for note in run_summary(analysis).notes if "debugging" in note)
    assert note.startswith(f"1 of {n} kernels was compiled for debugging")
    assert f", and takes {share} of GPU time: " in note
    assert note[1:] in html.unescape(render_page(analysis.to_dict()))


@pytest.mark.long
def test_kernels_counted_at_0_ns_are_shown_without_shares_of_their_time(analysis: Analysis) -> None:
    """PyTorch's profiler has written whole microseconds, in which short launches are 0."""
    launches = analysis.kernels.select("name", "grid", "block").iter_rows()
    counts = Counts(tuple(KernelCount(name, tuple(grid), tuple(block), 4, 0.0) for name, grid, block in launches))
    counted = Reports(analysis.reports, counts=(counts,)).analyse()
    assert "up to —" not in to_text(counted)
    for form in ("json", "html", "md", "csv", "parquet"):
        assert render(counted, form)


def test_launches_that_failed_are_named(analysis: Analysis) -> None:
    for text in (to_text(analysis, VERBOSE), render(analysis, "md").decode()):
        said = " ".join(text.replace("\\", "").split())
        assert "a launch failed to profile and is in no sum: ncclDevKernel_AllReduce_Sum_bf16_RING_LL; see" in said
