"""-o, --format and --quiet mean the same in every command that shows a result in several formats."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path

import pytest

from ncuroof.batch.dataset import Dataset
from tests.cli.running import run_main, run_with_closed_output
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report

COMMANDS = {
    "report": ("report", "RUN"),
    "compare": ("compare", "RUN", "RUN"),
    "history": ("compare", "--history", "RUN", "RUN"),
    "whatif": ("whatif", "RUN", "--change", "bytes:0.5"),
    "model": ("model", "linear", "8", "16", "32"),
    "fleet": ("fleet", "DATASET"),
    "fleet rows": ("fleet", "DATASET", "--sql", "SELECT name FROM kernels"),
}


# The report stands for all of them in `make test`; what differs is what they show.
PARAMETERS = [name if name == "report" else pytest.param(name, marks=pytest.mark.long) for name in COMMANDS]


@pytest.fixture(params=PARAMETERS)
def command(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    run = Kernel("saxpy", {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0, "dram__bytes.sum": 1e6})
    Path("run.ncu-rep").write_bytes(write_report([run]))
    Dataset.at("dataset").prepare()
    places = {"RUN": "run.ncu-rep", "DATASET": "dataset"}
    return [places.get(word, word) for word in COMMANDS[request.param]]


def test_a_file_has_what_its_suffix_names_and_nothing_is_printed(command: list[str], capfdbinary) -> None:
    assert run_main(*command, "-o", "a.json", "-o", "a.txt") == 0
    assert capfdbinary.readouterr() == (b"", b"")
    assert json.loads(Path("a.json").read_bytes())
    assert not Path("a.txt").read_bytes().startswith(b"{")


@pytest.mark.long
def test_a_dash_is_standard_output_beside_files_too(command: list[str], capfdbinary) -> None:
    assert run_main(*command, "-o", "a.txt", "-o", "a.json", "-o", "-") == 0
    assert capfdbinary.readouterr().out == Path("a.txt").read_bytes() != b""
    assert run_main(*command, "-o", "b.txt", "-o", "-", "--format", "json") == 0
    assert capfdbinary.readouterr().out == Path("a.json").read_bytes()
    assert not Path("-").exists()


@pytest.mark.long
def test_format_applies_to_standard_output_and_to_names_without_a_suffix(command: list[str], capfdbinary) -> None:
    assert run_main(*command, "--format", "json") == 0
    printed = capfdbinary.readouterr().out
    assert json.loads(printed)
    assert run_main(*command, "-o", "plain", "-o", "a.txt", "--format", "json") == 0
    assert capfdbinary.readouterr().out == b""
    assert Path("plain").read_bytes() == printed
    assert not Path("a.txt").read_bytes().startswith(b"{")  # --format does not override a suffix


def test_a_format_that_applies_to_no_output_is_wrong_usage(command: list[str], capfd) -> None:
    assert run_main(*command, "-o", "a.txt", "--format", "json") == 2
    assert (
        "--format json applies to no output: the suffix of each file sets its format; add -o -"
        in capfd.readouterr().err
    )
    assert not Path("a.txt").exists()
    assert run_main(*command, "-o", "a.json", "--format", "json") == 0


def test_a_wrong_suffix_among_right_ones_writes_nothing(command: list[str], capfd) -> None:
    assert run_main(*command, "-o", "a.json", "-o", "a.pdf") == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "a.pdf: expected a suffix of " in err
    assert ", found .pdf" in err
    assert "hint: rename the file, or add --format" in err
    assert not Path("a.json").exists()


def test_a_folder_is_not_taken_for_a_file(command: list[str], capfd) -> None:
    assert run_main(*command, "-o", "a.json/") == 1
    said = "a.json/: expected a file, found a folder's name\n  hint: name a file in it: a.json/NAME\n"
    assert said in capfd.readouterr().err
    assert not Path("a.json").exists()


def test_a_file_named_dash_is_not_standard_output(command: list[str], capfdbinary) -> None:
    assert run_main(*command, "-o", "a.json", "-o", "./-", "--format", "json") == 0
    assert capfdbinary.readouterr() == (b"", b"")
    assert Path("./-").read_bytes() == Path("a.json").read_bytes()


@pytest.mark.long
def test_quiet_affects_only_standard_error(command: list[str], capfd) -> None:
    assert run_main(*command) == 0
    printed = capfd.readouterr().out
    assert run_main(*command, "--quiet") == 0
    assert capfd.readouterr() == (printed, "")


@pytest.mark.long
def test_standard_output_that_is_closed_is_an_error(command: list[str]) -> None:
    code, said = run_with_closed_output(*command, "-o", "-")
    assert code == 1
    assert said.startswith(b"ncuroof: standard output is closed\n  hint: ")


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ("--help",), ("--version",), ("gpus",), ("gpus", "b200"), ("explain",), ("explain", "memory"), ("doctor",),
        ("profile", "--dry-run", "s.py"), ("profile", "--remote-plan", "-", "s.py"),
    ],
)  # fmt: skip
def test_every_command_refuses_a_closed_standard_output(words: tuple[str, ...]) -> None:
    code, said = run_with_closed_output(*words)
    assert code == 1
    assert said.endswith(b"ncuroof: standard output is closed\n  hint: redirect it to a file: > FILE\n")


@pytest.mark.long
def test_writing_to_a_file_needs_no_standard_output(command: list[str]) -> None:
    assert run_with_closed_output(*command, "-o", "a.json", "--quiet") == (0, b"")
    assert Path("a.json").stat().st_size
    assert run_with_closed_output("profile", "-q", "--remote-plan", "p.sh", "train.py") == (0, b"")
    assert Path("p.sh").stat().st_size


def test_a_suffix_of_a_different_commands_format_is_always_refused(tmp_path: Path, capfd) -> None:
    run = write_report([Kernel("saxpy", {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0})])
    (tmp_path / "run.ncu-rep").write_bytes(run)
    assert run_main("report", tmp_path / "run.ncu-rep", "-o", tmp_path / "a.xml", "--format", "json") == 2
    assert "found .xml\n  hint: rename the file\n" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run.ncu-rep"]


@pytest.mark.parametrize(("gone", "exit_code"), [({errno.EINVAL}, 0), (set(), 1)])
def test_windows_reports_a_closed_pipe_as_an_invalid_argument(
    gone: set[int], exit_code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    module = sys.modules["ncuroof.cli.program"]
    monkeypatch.setattr(module, "_READER_IS_GONE", gone)
    monkeypatch.setattr(module, "_abandon_output", lambda: None)
    monkeypatch.setattr(module.program, "main", fail)
    assert run_main("gpus") == exit_code
