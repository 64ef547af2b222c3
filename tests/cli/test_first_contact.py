"""What a newcomer types: mistyped commands, bare files, one kernel, and output as wide as the window."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from rich.cells import cell_len

from ncuroof.cli.options import either
from ncuroof.cli.program import program
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
def test_a_word_that_is_not_a_command_suggests_one(word: str, meant: str, capfd: pytest.CaptureFixture[str]) -> None:
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
    assert "warning: there is no gate, so this comparison cannot fail" in capfd.readouterr().err
    assert run_main("compare", report, report, "-o", "junit.xml", "--gate", "time:+5%") == 0
    assert "there is no gate" not in capfd.readouterr().err


def test_an_empty_answer_says_so() -> None:
    assert table_text(["name"], []) == table_markdown(["name"], []) == "no rows\n"


# ---- words of the command -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--step", "10", "profile", "train.py"), "--step is an option of ncuroof profile, after the command's name"),
        (("report", "--gate", "x", "run.ncu-rep"), "--gate is an option of ncuroof compare"),
        (("help", "compar"), "did you mean: ncuroof compare?"),
        (("gpus", "--xyzzy"), "No such option '--xyzzy'"),
    ],
)
def test_a_misplaced_option_names_its_command(
    words: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_main(*words) == 2
    printed = capfd.readouterr().err
    assert said in printed
    assert ("is an option of" in printed) == ("is an option of" in said)


def test_help_and_version_have_the_usual_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("help", "gpus") == 0
    assert capfd.readouterr().out.startswith("Usage: ncuroof gpus ")
    assert run_main("help") == 0
    assert "Commands:" in capfd.readouterr().out
    assert run_main("-V") == 0
    assert capfd.readouterr().out.startswith("ncuroof, version ")


@pytest.mark.parametrize(
    ("words", "is_remarked"),
    [
        (("train.py", "--step", "10"), True),
        (("--", "train.py", "--step", "10"), False),  # the user says whose it is
        (("train.py", "--launch-count=3"), False),  # the script has an option of that name
        (("--step", "10", "train.py", "--epochs", "1"), False),
    ],
)
def test_an_option_behind_the_script_is_remarked(
    words: tuple[str, ...],
    is_remarked: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import sys  # --launch-count", encoding="utf-8")
    assert run_main("profile", "--dry-run", *words) == 0
    assert ("note: --step goes to train.py" in capfd.readouterr().err) == is_remarked


# ---- what is read ----------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_folder_stands_for_every_report_below_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs/a").mkdir(parents=True)
    (tmp_path / "runs/a/one.ncu-rep").write_bytes(demo.REPORT.read_bytes())
    (tmp_path / "runs/two.ncu-rep").write_bytes(demo.REPORT.read_bytes())
    (tmp_path / "runs/note.txt").write_text("no report", encoding="utf-8")
    assert run_main("report", tmp_path / "runs", "-o", "-") == 0
    out, err = capfd.readouterr()
    assert out.startswith("ncuroof · one.ncu-rep")
    assert "warning: two.ncu-rep has the same content as one.ncu-rep" in err


def test_a_folder_without_reports_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "raw.csv").write_text("a,b", encoding="utf-8")
    assert run_main("report", tmp_path) == 1
    assert "expected reports in this folder or below it, found none" in capfd.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("command", [("report", "-"), ("brief", "-"), ("whatif", "-", "--gpu", "h100-sxm")])
def test_standard_input_is_read_if_it_is_named(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(demo.REPORT.read_bytes())))
    assert run_main(*command) == 0
    assert "standard input" in capfd.readouterr().out
    assert list(tmp_path.iterdir()) == []  # no page beside it


def test_standard_input_is_read_once(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("report", "-", "-") == 2
    assert "standard input can be read only once" in capfd.readouterr().err


# ---- what is written -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ("report", "absent", "-o", "none/a.json"),
        ("brief", "absent", "-o", "none/a.json"),
        ("compare", "absent", "absent", "-o", "none/a.json"),
        ("compare", "absent", "absent", "--save-baseline", "none/a.json"),
        ("whatif", "absent", "--gpu", "b200", "-o", "none/a.json"),
        ("calibrate", "-o", "none/a.json"),
        ("model", "gemm", "8", "8", "8", "-o", "none/a.json"),
    ],
)
def test_the_place_of_an_output_is_checked_before_the_work(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "absent").touch()  # no report: reading it would fail
    assert run_main(*command) == 1
    assert "none/a.json: cannot be written: No such file or directory" in (said := capfd.readouterr().err)
    assert "hint: create its folder: mkdir -p none" in said


@pytest.mark.parametrize(("browser", "opens"), [("firefox", True), ("", False)])
def test_the_page_opens_where_there_is_a_browser(
    browser: str, opens: bool, report: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BROWSER", browser)
    assert run_main("report", report, "-o", page := report.with_name("a.html"), "--open") == 0
    assert opened == ([page.resolve().as_uri()] if opens else [])
    assert ("no browser here" in capfd.readouterr().err) != opens
    assert run_main("report", report, "-o", "-", "--open") == 2


def test_several_filters_of_a_kind_are_any_of_them() -> None:
    assert either([]) is None
    assert either(["gemm"]) == "gemm"
    assert either(["a|b", "(?i)c"]) == "(?:a|b)|(?:(?i)c)"


# ---- completion ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "begun", "proposed"),
    [
        ([], "comp", {"compare"}),
        (["whatif", "run.ncu-rep", "--gpu"], "b2", {"b200"}),
        (["gpus"], "h200", {"h200-nvl", "h200-sxm"}),
        (["model", "gemm", "8", "8", "8", "--gpu"], "b2", {"b200"}),
        (["explain"], "tail_", {"tail_wave"}),
        (["explain"], "recoverable_", {"recoverable_ns"}),
        (["report"], "--ch", {"--chart"}),
    ],
)
def test_a_shell_completes_commands_options_and_names(words: list[str], begun: str, proposed: set[str]) -> None:
    found = ShellComplete(program, {}, "ncuroof", "_NCUROOF_COMPLETE").get_completions(words, begun)
    assert {item.value for item in found} == proposed


# ---- gates, and tables in narrow windows ---------------------------------------------------------------------------------------


def test_a_malformed_gate_names_its_file(
    report: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (report.parent / "pyproject.toml").write_text('[tool.ncuroof]\ngates = ["tiem:+5%"]\n', encoding="utf-8")
    monkeypatch.chdir(report.parent)
    assert run_main("compare", report, report) == 2
    assert "ncuroof: pyproject.toml: not a gate: 'tiem:+5%'" in capfd.readouterr().err


def test_a_failed_gate_of_findings_names_some(report: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("compare", report, report, "--gate", "findings.high==0") == 3
    said = " ".join(capfd.readouterr().out.split())
    assert "15 findings of high severity: " in said
    assert re.search(r"severity: \w+ \([a-z0-9_]+\)", said)


@pytest.mark.parametrize("n_columns", [40, 80, 200])
def test_the_tables_of_a_fleet_fit_the_window(n_columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(n_columns))
    columns = ["kernel", "program", "time", "where it was recorded"]
    row = dict(zip(columns, ("a" * 30, "python", "1.5 ms", "b" * 20), strict=True))
    lines = table_text(columns, [row] * 2).splitlines()
    assert ("kernel" in lines[0]) == (n_columns > 66)
    assert all("time" in line or n_columns > 66 for line in lines[1::2])


def test_a_comparison_fits_the_window(
    report: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run_main("compare", report, report) == 0
    assert max(map(cell_len, capfd.readouterr().out.splitlines())) <= 60
