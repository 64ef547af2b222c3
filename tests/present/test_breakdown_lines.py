"""Time by family and range as texts: in the terminal, Markdown and the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

import ncuroof
from ncuroof.present.sentences.breakdowns import NO_RANGE, by_family, by_outer_range, differing, extremes
from ncuroof.present.texts.markdown import to_markdown
from ncuroof.present.texts.terminal import TerminalOptions, to_text
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, Session, write_report


def part(key: str | None, duration_ns: float | None = 1000.0) -> dict[str, object]:
    """Return an entry of `summary.by_…`."""
    return {"key": key, "n_launches": 2, "duration_ns": duration_ns, "share_frac": None, "recoverable_ns": None}


def group(low: float | None, high: float | None, spread: float | None) -> dict[str, object]:
    """Return the spread of a group."""
    return {"min_duration_ns": low, "max_duration_ns": high, "duration_cv": spread}


def run(tmp_path: Path, *launches: tuple[str, tuple[str, ...], float]) -> ncuroof.Analysis:
    """Return the analysis of launches by name, open ranges and duration."""
    path = tmp_path / "run.ncu-rep"
    metrics = METRICS_BY_CHIP["GA100"]
    kernels = [
        Kernel(name, {**metrics, "gpu__time_duration.sum": duration}, demangled=name, nvtx=ranges)
        for name, ranges, duration in launches
    ]
    path.write_bytes(write_report(kernels, Session()))
    return ncuroof.read(path).analyse()


def test_families_have_names_for_people() -> None:
    names = [line.name for line in by_family({"by_family": [part("cublas"), part("user"), part("cub")]})]
    assert names == ["cuBLAS", "own code", "CUB, Thrust"]


def test_ranges_are_shown_where_they_branch() -> None:
    branches = {"by_nvtx": [part("step")], "by_nvtx_branch": [part("step/forward"), part("step/backward"), part(None)]}
    assert [line.name for line in by_outer_range(branches)] == ["step/forward", "step/backward", NO_RANGE]


def test_a_run_without_ranges_has_none_to_show() -> None:
    assert by_outer_range({"by_nvtx_branch": [part(None)]}) == ()


def test_what_is_not_known_is_a_dash() -> None:
    (line,) = by_family({"by_family": [part("user", None)]})
    assert (line.share, line.duration, line.recoverable, line.launches) == ("—", "—", "—", "2")


@pytest.mark.parametrize(
    ("spread", "expected"),
    [
        (group(1000.0, 3000.0, 0.5), "1.00 µs to 3.00 µs each (±50.0 %)"),
        (group(1000.0, 1000.0, 0.0), "1.00 µs each"),
        (group(1000.0, 1010.0, 0.005), "1.00 µs to 1.01 µs each"),
        (group(1000.0, 1000.0, None), ""),
        (group(None, None, None), ""),
    ],
)
def test_the_times_of_a_groups_launches(spread: dict[str, object], expected: str) -> None:
    assert extremes(spread) == expected


def test_a_spread_of_less_than_a_twentieth_is_not_worth_a_word() -> None:
    assert differing(group(1.0, 1.0, 0.0499)) == ""
    assert differing(group(1.0, 1.0, 0.05)) == "5.0 %"


def test_the_terminal_divides_the_time_in_four_lines_at_most(tmp_path: Path) -> None:
    launches = [(f"kernel_{n}", (f"漢字 range {n} " + "x" * 90,), 1000.0 * (n + 1)) for n in range(6)]
    text = to_text(run(tmp_path, *launches, ("ampere_sgemm_128x64_nn", (), 9000.0)), TerminalOptions(is_verbose=True))
    lines = text.splitlines()
    (first,) = (number for number, line in enumerate(lines) if line.startswith("code "))
    assert "own code" in lines[first]
    assert "cuBLAS" in lines[first + 1]
    assert lines[first + 2] == ""
    (first,) = (number for number, line in enumerate(lines) if line.startswith("NVTX "))
    assert lines[first + 3].strip() == "and 4 more"
    assert lines[first + 4] == ""
    assert max(map(cell_len, lines)) <= 80


def test_the_terminal_says_nothing_of_one_family_and_no_range(tmp_path: Path) -> None:
    lines = to_text(run(tmp_path, ("a", (), 1000.0), ("b", (), 2000.0)), TerminalOptions(is_verbose=True)).splitlines()
    assert not any(line.startswith(("code", "NVTX")) for line in lines)


def test_a_group_says_how_much_its_launches_differ(tmp_path: Path) -> None:
    analysis = run(tmp_path, ("a", (), 1000.0), ("a", (), 3000.0))
    assert "a ×2 ±50.0 %" in to_text(analysis, TerminalOptions(is_verbose=True))
    assert r"| 2, 1.00 µs to 3.00 µs each \(±50.0 %\) |" in to_markdown(analysis)


@pytest.mark.long
def test_markdown_has_a_table_of_families_and_one_of_ranges_where_there_are_any(tmp_path: Path) -> None:
    text = to_markdown(run(tmp_path, ("a", ("x|y",), 1000.0), ("ampere_sgemm_128x64_nn", (), 3000.0)))
    assert "| own code | 25.0 % | 1.00 µs | " in text
    assert r"| x\|y | 25.0 % | 1.00 µs | " in text
    only_one = to_markdown(run(tmp_path, ("a", ("x|y",), 1000.0), ("b", ("x|y",), 1000.0)))
    assert "| code |" not in only_one
    assert "NVTX" not in only_one
