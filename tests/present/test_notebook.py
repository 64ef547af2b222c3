"""What a notebook shows of an analysis: HTML without scripts, and never an escape code."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from ncuroof.present.texts.answer import answer
from ncuroof.present.texts.notebook import to_html
from tests.collect.making import stand_in
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


@pytest.mark.long
def test_a_real_kernel_shows_html_and_writes_plain_text(tmp_path: Path) -> None:
    """rich found the kernel, displayed the text in it, and returned escape codes instead."""
    cells = [
        f"import ncuroof; analysis = ncuroof.read({str(demo.REPORT)!r}).analyse(); analysis",
        f"analysis.write({str(tmp_path / 'x.txt')!r})",
        f"ncuroof.compare({str(demo.REPORT)!r}, {str(demo.REPORT)!r})",
    ]
    shown = _executed(cells, ROOT)
    assert [output.output_type for output in shown] == ["execute_result"] * len(cells)
    assert "What to do" in shown[0].data["text/html"]
    assert "ncuroof · compare" in shown[2].data["text/html"]
    assert "\x1b" not in str(shown)
    written = (tmp_path / "x.txt").read_text(encoding="utf-8")
    assert written.startswith("ncuroof · ")
    assert "\x1b" not in written


# ---- the cell magic ------------------------------------------------------------------------------------------------------------


class _Shell:
    """What of IPython's shell the extension uses."""

    def __init__(self) -> None:
        self.magics: dict[str, Callable[[str, str], Any]] = {}

    def register_magic_function(self, function: Callable[[str, str], Any], *, magic_kind: str, magic_name: str) -> None:
        assert magic_kind == "cell"
        self.magics[magic_name] = function


@pytest.fixture
def magic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Any]:
    """The magic in a folder with an ncu that works."""
    monkeypatch.setenv("NCUROOF_NCU", str(stand_in(tmp_path)))
    monkeypatch.setenv("STAND_IN_REPORT", str(demo.REPORT))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    shell = _Shell()
    ncuroof.load_ipython_extension(shell)
    return shell.magics["ncuroof"]


@pytest.mark.long
def test_a_cell_is_profiled_in_a_process_of_its_own(
    magic: Callable[[str, str], Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "beside.py").write_text("NAME = 'from beside'\n", encoding="utf-8")
    (tmp_path / "kept").mkdir()
    found = magic("--no-per-shape -o kept/", f"import os, beside\nprint(beside.NAME, os.getpid() == {os.getpid()})")
    assert "from beside False\n" in capsys.readouterr().out
    assert "What to do" in found._repr_html_()
    assert (tmp_path / "kept/cell.ncu-rep").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beside.py", "kept", "ncu"]  # no page, no script


@pytest.mark.long
@pytest.mark.parametrize(
    ("ncu", "line", "said"),
    [
        ("/nowhere/ncu", "", "NCUROOF_NCU is set to /nowhere/ncu"),
        (None, "--xyzzy", "No such option '--xyzzy'"),
        (None, "'", "cannot be split into words"),
    ],
)
def test_a_cell_that_cannot_be_profiled_shows_the_named_error(
    ncu: str | None,
    line: str,
    said: str,
    magic: Callable[[str, str], Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if ncu:
        monkeypatch.setenv("NCUROOF_NCU", ncu)
    assert magic(line, "print(1)") is None
    printed = "".join(capsys.readouterr())
    assert said in printed
    assert "Traceback" not in printed


@pytest.mark.long
def test_a_real_kernel_profiles_a_cell(magic: object, tmp_path: Path) -> None:
    shown = _executed(["%load_ext ncuroof", "%%ncuroof --no-per-shape\nprint('trained')"], tmp_path)
    assert [output.output_type for output in shown if output.output_type != "stream"] == ["execute_result"]
    assert "What to do" in shown[-1].data["text/html"]
    assert "trained" in "".join(output.text for output in shown if output.output_type == "stream")


@pytest.mark.long
def test_a_real_kernel_without_ncu_shows_the_named_error(
    magic: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCUROOF_NCU", "/nowhere/ncu")
    shown = _executed(["%load_ext ncuroof", "%%ncuroof\nprint('trained')"], tmp_path)
    assert {output.output_type for output in shown} == {"stream"}  # neither a traceback nor a result
    said = "".join(output.text for output in shown)
    assert "NCUROOF_NCU is set to /nowhere/ncu" in said
    assert "  hint: " in said


def _executed(cells: Sequence[str], folder: Path) -> list[Any]:
    """Run cells in a real kernel and return their outputs."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(
        notebook, timeout=PATIENCE_S, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return [output for cell in notebook.cells for output in cell.outputs]
