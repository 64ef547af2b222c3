"""The roofline in characters: the page's chart, legible without colour, in terminals of any width."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from rich.text import Text

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.present.charts.characters import LETTER_BY_VERDICT, characters
from ncuroof.present.documents.analysis import document
from ncuroof.present.palette import verdict_colours
from tests.cli.running import run_main
from tests.present.documents import CEILINGS, kernel
from tests.present.documents import document as constructed
from tests.support import demo

WIDTHS = (40, 80, 120, 200)


@cache
def _analysis() -> Analysis:
    return ncuroof.read(demo.REPORT).analyse()


def _lines(width: int) -> list[Text]:
    return list(characters(document(_analysis()), width))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_chart_is_as_wide_as_the_terminal_and_fits_the_window(width: int) -> None:
    lines = _lines(width)
    assert max(line.cell_len for line in lines) <= width
    assert len(lines) <= 22 * max(1, 80 // width)
    assert "".join(line.plain for line in lines).isascii()


def test_a_letter_has_the_colour_of_its_verdict_on_the_page() -> None:
    styles = {
        (letter, str(span.style))
        for line in _lines(80)[1:-4]
        for span in line.spans
        if (letter := line.plain[span.start : span.end]) in LETTER_BY_VERDICT.values()
    }
    colours = {(letter, f"bold {verdict_colours()[verdict]}") for verdict, letter in LETTER_BY_VERDICT.items()}
    assert styles
    assert styles <= colours


def test_the_legend_says_what_is_drawn() -> None:
    text = " ".join(line.plain for line in _lines(120))
    assert "M memory" in text
    assert "a letter per group of equal launches" in text
    assert "/ DRAM " in text


def test_a_dot_lies_where_its_numbers_are() -> None:
    """A hundred times as many FLOPs a second for as many bytes: higher, and as far right as the intensity says."""
    point = kernel()["points"][0]
    two = [kernel(id=number, points=[point | {"flop_per_s": rate}]) for number, rate in enumerate((1e10, 1e12))]
    lines = list(characters(constructed(*two, ceilings=CEILINGS), 80))
    rows = [line.plain.partition("|")[2] for line in lines if "|" in line.plain]
    high, low = (row.index("M") for row in rows if "M" in row)
    assert high == low
    # The axis has the decades of the rate in a column of their own, a letter in the row of each.
    labels = [line.plain.partition("|")[0].strip() for line in lines if "M" in line.plain.partition("|")[2]]
    assert labels == ["1 TFLOP/s", "10 GFLOP/s"]


def test_a_run_without_a_dot_says_why() -> None:
    (line,) = characters(constructed(kernel(points=[], instructions=None), ceilings=[]), 200)
    assert "there is no chart: no kernel of this GPU has" in line.plain


@pytest.mark.long
def test_the_chart_has_no_escapes_where_output_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert run_main("report", demo.REPORT, "--chart", "--kernels", "3", "-o", "-") == 0
    printed = capfd.readouterr().out
    assert "\x1b" not in printed
    assert "FLOP roofline" in printed
    assert "bound by" in printed
    assert "What to do" not in printed
