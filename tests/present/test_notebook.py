"""What a notebook shows of an analysis: HTML without scripts, and never an escape code."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

import ncuroof
from ncuroof.present.texts.answer import answer
from ncuroof.present.texts.notebook import to_html
from tests.support import demo
from tests.support.constructed_counters import kernel
from tests.support.patience import PATIENCE_S
from tests.support.report_writer import Session, write_report

ROOT = Path(__file__).resolve().parents[2]
POINTER_CHASE = ROOT / "fixtures/h200/pointer_chase.roofline.ncu-repz"


def _text(written: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", written)).split())


def test_a_notebook_is_told_the_answer_and_what_to_do() -> None:
    found = ncuroof.read(demo.REPORT).analyse()
    told, written = answer(found), found._repr_html_()
    for said in (told.lead, told.actions[0].advice, told.actions[0].saves, "simulated: written by ncuroof"):
        assert " ".join(said.split()) in _text(written)
    assert "<script" not in written
    assert "\x1b" not in written


@pytest.mark.skipif(not POINTER_CHASE.exists(), reason="the recordings are not in this checkout")
def test_a_single_kernel_is_told_with_its_place_on_the_roofline() -> None:
    text = _text(to_html(ncuroof.read(POINTER_CHASE).analyse()))
    assert "latency-bound: one warp at most does all" in text
    assert "reached DRAM 377 MB/s" not in text  # less than a percent of the peak says nothing
    assert "occupancy 2 % of 50 %" in text


def test_names_of_a_report_are_no_markup(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([kernel(replace(demo.PLANTED[-3].kernel, name=name))] * 2, Session()))
    written = ncuroof.read(path).analyse()._repr_html_()
    assert "<script" not in written
    assert "alert(1)" in html.unescape(written)


def test_a_real_kernel_shows_html_and_writes_plain_text(tmp_path: Path) -> None:
    """rich found the kernel, displayed the text in it, and returned escape codes instead."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [
        f"import ncuroof; analysis = ncuroof.read({str(demo.REPORT)!r}).analyse(); analysis",
        f"analysis.write({str(tmp_path / 'x.txt')!r})",
        f"ncuroof.compare({str(demo.REPORT)!r}, {str(demo.REPORT)!r})",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(
        notebook, timeout=PATIENCE_S, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.outputs]
    assert [output.output_type for output in shown] == ["execute_result"] * len(cells)
    assert "What to do" in shown[0].data["text/html"]
    assert "ncuroof · compare" in shown[2].data["text/html"]
    assert "\x1b" not in str(shown)
    written = (tmp_path / "x.txt").read_text(encoding="utf-8")
    assert written.startswith("ncuroof · ")
    assert "\x1b" not in written
