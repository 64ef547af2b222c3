"""The Markdown summary keeps its shape: what a report says is text in it, and never markup."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ncuroof
from ncuroof.present.texts.markdown import to_markdown
from tests.support import demo
from tests.support.report_writer import METRICS_BY_CHIP, Device, Kernel, Session, write_report

METRICS = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0}
_BAR = re.compile(r"(?<!\\)(?:\\\\)*\|")
HOSTILE = [
    "a | b | c",
    "[click](javascript:alert(1))",
    "![x](http://tracker.invalid/x.png)",
    "<script>alert(1)</script>",
    "<!-- hidden",
    "`code` **bold** _it_ ~~no~~",
    "# heading\n# heading\n\n- item",
    "line\r\n| row | row |\n|---|---|",
    "&lt;b&gt; &amp;",
    "\\| \\",
    "\\` \\| ``",
    "f<float, (int)4>(T*)",
    "\x1b[31m\u202e",
]


def _markdown(tmp_path: Path, text: str) -> str:
    path = tmp_path / "run.ncu-rep"
    metrics = {**METRICS, "device__attribute_display_name": text}
    session = Session(ncu_version=text, devices=(Device(0, text),))
    path.write_bytes(write_report([Kernel(text, metrics, demangled=text)], session))
    return to_markdown(ncuroof.read(path).analyse())


def _shape(markdown: str) -> list[str]:
    """Return what each line is: its first character, and the number of its unescaped bars."""
    return [f"{line[:1]} {len(_BAR.findall(line))}" for line in markdown.splitlines()]


@pytest.mark.long
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_do_not_change_the_shape(tmp_path: Path, text: str) -> None:
    markdown = _markdown(tmp_path, text)
    assert _shape(markdown) == _shape(_markdown(tmp_path, "plain"))
    assert not re.search(r"(?<!\\)(?:\\\\)*[<\[\]`*_~&]", markdown.split("\n", 1)[1]), markdown
    assert "\x1b" not in markdown
    assert "\u202e" not in markdown


@pytest.mark.long
def test_the_demo_has_its_tables() -> None:
    lines = to_markdown(ncuroof.read(demo.REPORT).analyse()).splitlines()
    assert lines[0].startswith("<!-- ncuroof ")
    assert lines[1] == r"# h200-training-step.ncu-rep"
    assert "**Simulated: written by ncuroof, not recorded on a GPU.**" in lines
    rows = [line for line in lines if line.startswith("| 1")]
    assert any(r"sgemm\_naive\_vec4" in row and "11.7 ms" in row and "memory · L1" in row for row in rows)
    header = next(line for line in lines if line.startswith("| # |"))
    assert all(_shape(row) == _shape(header) for row in rows)


@pytest.mark.long
def test_what_one_row_would_repeat_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    one, *others = (
        Kernel(f"k{n}", METRICS | {"gpu__time_duration.sum": 1e6}, grid=(4096, 1, 1), sections=("SpeedOfLight",))
        for n in range(11)
    )
    path.write_bytes(write_report([one]))
    markdown = to_markdown(ncuroof.read(path).analyse())
    assert "| bound by | share of time |" not in markdown
    assert " · 1 section collected\n" in markdown
    path.write_bytes(write_report([one, *others]))  # the verdict of the eleventh stands in no row
    markdown = to_markdown(ncuroof.read(path).analyse())
    assert "| unknown | 100 % | 11 |" in markdown
    assert markdown.endswith("\n1 more group of kernels is not shown.\n")
    assert markdown.count("collect ") == 1
    assert "\n\nFor 10 kernels without advice: to know why, collect --section SpeedOfLight" in markdown


@pytest.mark.long
def test_an_unknown_version_is_no_line(tmp_path: Path) -> None:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([Kernel("k", METRICS)], Session(ncu_version="")))
    lines = to_markdown(ncuroof.read(path).analyse()).splitlines()
    assert not any(line.startswith("- Nsight Compute") or line == "- " for line in lines)


@pytest.mark.long
def test_a_damaged_report_says_so(tmp_path: Path) -> None:
    path = tmp_path / "cut_short.ncu-rep"
    path.write_bytes(demo.REPORT.read_bytes()[:-100])
    markdown = to_markdown(ncuroof.read(path).analyse())
    assert r"- cut\_short.ncu-rep is damaged" in markdown
