"""What a newcomer types: mistyped commands, bare files, one kernel, and output as wide as the window."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from ncuroof.present.texts.fleet import table_markdown, table_text
from tests.cli.running import run_main
from tests.support import demo


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(demo.REPORT.read_bytes())
    return path


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("compar", "did you mean: ncuroof compare?"),
        ("Report", "did you mean: ncuroof report?"),
        ("run.ncu-rep", "did you mean: ncuroof report run.ncu-rep?"),
        ("my run.ncu-repz", "did you mean: ncuroof report 'my run.ncu-repz'?"),
        ("train.py", "did you mean: ncuroof profile train.py?"),
        ("xyzzy", "ncuroof --help lists them"),
    ],
)
def test_a_word_that_is_no_command_leads_to_one(word: str, meant: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main(word) == 2
    assert meant in capfd.readouterr().err


@pytest.mark.long
def test_several_kernels_can_be_chosen_by_expression_and_by_number(
    report: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before, all but the last -k were ignored in silence."""
    assert run_main("report", report, "--kernels", "all", "-o", "-") == 0
    rows = {line.split()[0]: line for line in capfd.readouterr().out.splitlines() if line[:4].strip().isdecimal()}
    number, other = list(rows)[:2]
    assert run_main("report", report, "-k", number, "-k", "sgemm", "--kernels", "all", "-o", "-") == 0
    printed = capfd.readouterr().out
    assert f"\n{rows[number]}\n" in printed
    assert "sgemm_naive_vec4" in printed
    assert run_main("report", report, "-k", other, "-o", "-") == 0
    assert "\nreached " in capfd.readouterr().out


@pytest.mark.long
def test_the_table_has_as_many_kernels_as_are_asked_for(report: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def n_rows(*options: str | Path) -> int:
        assert run_main("report", *options, "-o", "-") == 0
        return sum(line[:4].strip().isdecimal() for line in capfd.readouterr().out.splitlines())

    assert n_rows("--kernels", "3", report) == 3
    assert n_rows("--kernels", report) == 10  # the report is no number
    assert n_rows(report, "--kernels", "all") > 10
    assert run_main("report", report, "--kernels=some") == 2


@pytest.mark.parametrize("n_columns", [40, 80])
@pytest.mark.parametrize("words", [("explain", "memory"), ("explain", "small_grid"), ("explain",), ("doctor",)])
def test_explanations_and_checks_wrap_to_the_window(
    words: tuple[str, ...], n_columns: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(n_columns))
    run_main(*words)
    assert max(map(cell_len, capfd.readouterr().out.splitlines())) <= n_columns


def test_a_gate_above_the_working_directory_counts(
    report: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before, gates of a pyproject.toml counted in its own folder alone, and everything passed below it."""
    folder = report.parent / "sub/folder"
    folder.mkdir(parents=True)
    (report.parent / "pyproject.toml").write_text('[tool.ncuroof]\ngates = ["findings.high==9"]\n', encoding="utf-8")
    (folder / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")  # has no gates, and hides none
    monkeypatch.chdir(folder)
    assert run_main("compare", report, report) == 3
    assert "1 of 1 gates failed" in capfd.readouterr().err


def test_a_ci_file_without_a_gate_is_remarked(
    report: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(report.parent)
    assert run_main("compare", report, report, "-o", "junit.xml") == 0
    assert "warning: there is no gate, so that this comparison cannot fail" in capfd.readouterr().err
    assert run_main("compare", report, report, "-o", "junit.xml", "--gate", "time:+5%") == 0
    assert "there is no gate" not in capfd.readouterr().err


def test_an_empty_answer_says_so() -> None:
    assert table_text(["name"], []) == table_markdown(["name"], []) == "no rows\n"
