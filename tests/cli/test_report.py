"""`ncuroof report` as programs see it: exit codes, what goes to which stream, and what is left on disk."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import polars as pl
import pytest

from tests.cli.running import run_main
from tests.support import demo
from tests.support.patience import PATIENCE_S
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, write_report

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "ncuroof"]
SMALL = write_report([Kernel("saxpy", {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0})])
N_KERNELS = len(demo.PLANTED)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(demo.REPORT.read_bytes())
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.ncu-rep"
    path.write_bytes(SMALL)
    return path


def _run(
    *arguments: str | Path, stdout: int | IO[bytes] = subprocess.PIPE, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the program in a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        check=False,
    )


def _assert_one_error(capfd: pytest.CaptureFixture[str], said: str) -> None:
    """Check that one line and a hint were said on standard error, and nothing on standard output."""
    out, err = capfd.readouterr()
    assert out == ""
    message, hint = err.splitlines()
    assert message.startswith("ncuroof: ")
    assert said in message
    assert hint.startswith("  hint: ")


# ---- what a run without options leaves ---------------------------------------------------------------


def test_without_options_a_summary_and_a_page_beside_the_report(
    report: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_main("report", report) == 0
    out, err = capfd.readouterr()
    page = report.with_suffix(".html")
    assert out.startswith("ncuroof · run.ncu-rep · NVIDIA H200\n")
    assert out.splitlines()[-1] == f"page: {page}"
    assert err == ""
    assert page.read_bytes().lower().startswith(b"<!doctype html>")
    assert sorted(report.parent.iterdir()) == [page, report]


@pytest.mark.long
def test_a_second_run_replaces_the_page(report: Path) -> None:
    assert run_main("report", report) == 0
    first = report.with_suffix(".html").read_bytes()
    assert run_main("report", report) == 0
    assert report.with_suffix(".html").read_bytes() == first


@pytest.mark.long
def test_a_foreign_page_is_kept(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = small.with_suffix(".html")
    page.write_bytes(b"<!doctype html>mine")
    assert run_main("report", small) == 1
    assert "exists" in capfd.readouterr().err
    assert page.read_bytes() == b"<!doctype html>mine"
    assert run_main("report", small, "--force") == 0
    assert b"mine" not in page.read_bytes()[:100]


@pytest.mark.long
@pytest.mark.parametrize("name", ["run", "run.nsight-cuprof-report", "run.v2.ncu-repz"])
def test_the_page_is_named_after_any_report(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(SMALL)
    assert run_main("report", tmp_path / name) == 0
    assert (tmp_path / name).with_suffix(".html").is_file()
    assert (tmp_path / name).read_bytes() == SMALL


# ---- formats -----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("form", ["html", "json", "md", "csv", "parquet", "term"])
def test_a_dash_writes_to_standard_output_what_a_file_would_hold(
    report: Path, capfdbinary: pytest.CaptureFixture[bytes], form: str
) -> None:
    file = report.with_name(f"out.{form}")
    assert run_main("report", report, "-o", file, "--format", form) == 0
    assert capfdbinary.readouterr() == (b"", b"")
    for arguments in (["-o", "-", "--format", form], ["--format", form]):
        assert run_main("report", report, *arguments) == 0
        out, err = capfdbinary.readouterr()
        assert out == file.read_bytes() != b""
        assert err == b""
    assert sorted(report.parent.iterdir()) == sorted([file, report])


@pytest.mark.long
def test_the_suffix_chooses_the_format(report: Path) -> None:
    files = {suffix: report.with_name(f"out.{suffix}") for suffix in ("json", "csv", "parquet", "md", "html", "txt")}
    for file in files.values():
        assert run_main("report", report, "-o", file) == 0
    assert len(json.loads(files["json"].read_text())["kernels"]) == N_KERNELS
    assert len(list(csv.reader(io.StringIO(files["csv"].read_text())))) == N_KERNELS + 1
    assert pl.read_parquet(files["parquet"]).height == N_KERNELS
    assert files["md"].read_text().startswith("<!-- ncuroof")
    assert files["txt"].read_text().startswith("ncuroof · ")
    assert files["html"].read_bytes().lower().startswith(b"<!doctype html>")


@pytest.mark.parametrize("name", ["out.xml", "out", "out."])
def test_an_unknown_suffix_is_refused_before_the_report_is_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    assert run_main("report", tmp_path / "absent.ncu-rep", "-o", name) == 2
    _assert_one_error(capfd, ": expected a suffix of .html, ")


def test_a_copy_is_counted_once_and_said_so(small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy.ncu-rep"
    copy.write_bytes(small.read_bytes())
    assert run_main("report", small, copy, "-o", "-", "--format", "json") == 0
    said = capfd.readouterr().err
    assert f"copy.ncu-rep has the same content as {small.name}: its kernels are counted once" in said


def test_several_reports_are_one_analysis(report: Path, small: Path) -> None:
    out = report.with_name("both.json")
    assert run_main("report", report, small, "-o", out) == 0
    document = json.loads(out.read_text())
    assert [source["file"] for source in document["sources"]] == ["run.ncu-rep", "small.ncu-rep"]
    assert [kernel["id"] for kernel in document["kernels"]] == list(range(N_KERNELS + 1))


# ---- exit codes and streams --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"hello", "found another text file"),
        (SMALL[:200], "no complete kernel is left"),
        (write_report([]), "contains no profiled kernel"),
    ],
)
def test_a_bad_report_is_one_line_and_a_hint(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes | None, said: str
) -> None:
    path = tmp_path / "x.ncu-rep"
    if content is not None:
        path.write_bytes(content)
    assert run_main("report", path) == 1
    _assert_one_error(capfd, said)
    assert not path.with_suffix(".html").exists()


def test_a_file_without_read_permission_is_a_named_error_and_not_wrong_usage(
    small: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # Root may read everything, so what a user would meet is played: click asks os.access before ncuroof opens the file.
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.access", lambda *_, **__: False)
    monkeypatch.setattr("pathlib.Path.open", refused)
    assert run_main("report", small, "-o", "-") == 1
    _assert_one_error(capfd, "cannot be read: Permission denied")


def test_one_bad_report_of_two_writes_nothing(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = small.with_name("out.json")
    assert run_main("report", small, small.with_name("absent"), "-o", out) == 1
    _assert_one_error(capfd, "no such file")
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments", [["report"], ["report", "x", "--format", "xml"], ["report", "x", "--nonsense"], ["nonsense"], []]
)
def test_wrong_usage_exits_2(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run_main(*arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "Usage: ncuroof" in err
    assert "Traceback" not in err


@pytest.mark.long
def test_damage_is_a_warning_on_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(demo.REPORT.read_bytes()[:-100])
    assert run_main("report", path, "-o", "-", "--format", "json") == 0
    out, err = capfd.readouterr()
    assert len(json.loads(out)["kernels"]) == N_KERNELS - 1
    assert err.startswith("warning: cut.ncu-rep is damaged: ")
    assert len(err.splitlines()) == 1
    assert run_main("report", path, "-o", "-", "--format", "json", "--quiet") == 0
    assert capfd.readouterr() == (out, "")


@pytest.mark.long
def test_verbose_talks_on_standard_error_only(report: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("report", report, "-o", "-", "--format", "json") == 0
    plain = capfd.readouterr().out
    assert run_main("report", report, "-o", "-", "--format", "json", "--verbose") == 0
    out, err = capfd.readouterr()
    assert out == plain
    assert f"read {N_KERNELS} kernels" in err


def test_errors_contain_no_control_sequences(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("\x1b[31mred", "\u202eevil", os.fsdecode(b"\xff"), "two\nlines"):
        for path in (tmp_path / name, tmp_path / name / "inside"):
            (tmp_path / name).write_bytes(b"hello")
            assert run_main("report", path) == 1
            err = capfd.readouterr().err
            assert err.startswith("ncuroof: ")
            assert "\x1b" not in err
            assert "\u202e" not in err
            assert len(err.splitlines()) == 2


def test_a_page_with_a_hostile_name_is_announced_harmlessly(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / os.fsdecode(b"\x1b[31m\xff.ncu-rep")
    path.write_bytes(SMALL)
    assert run_main("report", path) == 0
    out = capfd.readouterr().out
    assert path.with_suffix(".html").exists()
    assert "\x1b" not in out


# ---- streams that are closed, full, or no terminal ---------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments", [[], ["-o", "-"], ["-o", "-", "--format", "json"], ["-o", "-", "--format", "csv"]]
)
def test_a_closed_pipe_is_not_an_error(report: Path, arguments: list[str]) -> None:
    readable, writable = os.pipe()
    os.close(readable)
    done = _run("report", report, *arguments, stdout=writable)
    os.close(writable)
    assert done.stderr == b""
    assert done.returncode == 0


@pytest.mark.long
def test_head_gets_one_line(report: Path) -> None:
    command = f"{sys.executable} -m ncuroof report {report} -o - --format json | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=PATIENCE_S, cwd=ROOT, check=False
    )
    assert (done.stdout, done.stderr) == (b"{\n", b"")
    assert done.returncode in (0, 141)


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "arguments", [["report", "REPORT", "-o", "-"], ["report", "REPORT", "--format", "json"], ["--help"]]
)
def test_a_full_standard_output_is_one_line_and_exit_1(small: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        arguments = [str(small) if argument == "REPORT" else argument for argument in arguments]
        done = _run(*arguments, stdout=full)
    assert done.stderr.decode().splitlines()[0] == "ncuroof: cannot write to standard output: No space left on device"
    assert done.returncode == 1


@pytest.mark.long
def test_closed_streams_cause_no_traceback(small: Path) -> None:
    run = f"{sys.executable} -m ncuroof report {small}"
    for redirection, code in (
        (f"{run} -o - --format json >&-", 1),
        (f"{run} -o - >&-", 1),
        (f"{run} --force >&-", 0),
        (f"{run} -o - --format json 2>&-", 0),
        (f"{run}.absent 2>&-", 1),
    ):
        done = subprocess.run(
            ["bash", "-c", redirection], capture_output=True, timeout=PATIENCE_S, cwd=ROOT, check=False
        )
        assert b"Traceback" not in done.stderr, redirection
        assert done.returncode == code, redirection


@pytest.mark.long
def test_an_encoding_without_our_characters_causes_no_traceback(report: Path) -> None:
    done = _run("report", report, "-o", "-", environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout.startswith(b"ncuroof . run.ncu-rep")
    assert b"\n# memory" in done.stdout
    assert b"= arithmetic" in done.stdout
    assert b"?" not in done.stdout


@pytest.mark.parametrize(("content", "said"), [(b"", "-: standard input is empty"), (b"no report", "standard input: ")])
def test_standard_input_without_a_report_is_a_named_error(
    content: bytes, said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert run_main("report", "-") == 1
    _assert_one_error(capfd, said)


def test_a_file_of_the_name_of_standard_input_is_read(
    small: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(small.parent)
    small.rename("-")
    assert run_main("report", "./-", "-o", "-") == 0
    assert capfd.readouterr().out.startswith("ncuroof · ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "environment", "has_escapes"),
    [([], {}, True), (["--no-color"], {}, False), ([], {"NO_COLOR": "1"}, False), ([], {"TERM": "dumb"}, False)],
)
def test_colour_only_where_it_is_wanted(
    small: Path, options: list[str], environment: dict[str, str], has_escapes: bool
) -> None:
    printed = _in_terminal(["report", str(small), "-o", "-", *options], {"TERM": "xterm-256color", **environment})
    assert b"small.ncu-rep" in printed
    assert (b"\x1b" in printed) == has_escapes


@pytest.mark.long
def test_without_a_terminal_there_is_no_escape(small: Path) -> None:
    done = _run("report", small, "-o", "-", environment={"TERM": "xterm-256color"})
    assert b"\x1b" not in done.stdout
    assert done.returncode == 0


@pytest.mark.long
def test_parquet_does_not_go_to_a_terminal(small: Path) -> None:
    printed = _in_terminal(["report", str(small), "--format", "parquet"], {})
    assert b"would garble the terminal" in printed
    assert b"PAR1" not in printed


def _in_terminal(arguments: list[str], environment: dict[str, str]) -> bytes:
    """Return what the program prints where all its streams are a terminal."""
    keep = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLORTERM")}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, env={**keep, **environment}
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # what Linux says when the other end is closed
            break
        if not chunk:
            break
        printed += chunk
    os.close(ours)
    process.wait(PATIENCE_S)
    return printed


# ---- interruption ------------------------------------------------------------------------------------

_INTERRUPTED_IMPORT = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from ncuroof.cli import main
main(["report", "README.md"])
"""


@pytest.mark.parametrize(
    "module",
    ["ncuroof.cli.report", "polars.series", "polars.lazyframe", "ncuroof.tables", "ncuroof.present.formats"],
)
def test_interrupting_while_a_command_is_loaded_exits_130(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_IMPORT, module],
        cwd=ROOT,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"ncuroof: interrupted")


@pytest.mark.long
def test_interrupting_exits_130_and_leaves_nothing(
    small: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for step in ("ncuroof.reading.measure", "ncuroof.present.documents.analysis.document", "pathlib.Path.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(step, interrupted)
            assert run_main("report", small, "-o", small.with_name("out.json")) == 130
        out, err = capfd.readouterr()
        assert (out, err.strip()) == ("", "ncuroof: interrupted")
        assert list(small.parent.iterdir()) == [small]


def _has_loaded(pid: int, library: bytes) -> bool:
    """Return whether a process, or one that it started, has loaded a library."""
    with suppress(FileNotFoundError, ProcessLookupError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return any(library in Path(f"/proc/{each}/maps").read_bytes() for each in (pid, *children))
    return False


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc here")
@pytest.mark.parametrize("name", ["small", "report"], ids=["here", "in processes of its own"])
def test_a_signal_while_reports_are_read_exits_130(name: str, request: pytest.FixtureRequest) -> None:
    report: Path = request.getfixturevalue(name)
    out = report.with_name("out.json")
    # Read so often that the signal, sent when the first was opened, comes long before the last.
    with subprocess.Popen(
        [*COMMAND, "report", "--reader", "nvidia", *([str(report)] * 2000), "-o", str(out)],
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        try:
            while not _has_loaded(process.pid, b"_ncu_report"):
                assert process.poll() is None, "no report was opened"
                time.sleep(0.02)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()  # where the test fails, nothing goes on reading
    assert process.returncode == 130, err
    # A signal inside a destructor makes the interpreter print a note of its own first.
    assert err.strip().endswith(b"ncuroof: interrupted"), err
    assert list(report.parent.iterdir()) == [report]


@pytest.mark.long
@pytest.mark.parametrize("flags", [["--quiet", "report"], ["report", "--quiet"], ["-q", "report"]])
def test_flags_hold_before_and_after_the_command(tmp_path: Path, flags: list[str]) -> None:
    report = tmp_path / "cut.ncu-rep"
    whole = write_report(
        [Kernel("one", {"gpu__time_duration.sum": 1.0}), Kernel("two", {"gpu__time_duration.sum": 1.0})]
    )
    report.write_bytes(whole[:-3])
    result = subprocess.run(
        [sys.executable, "-m", "ncuroof", *flags, str(report), "-o", "-"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0
    assert "warning" not in result.stderr


@pytest.mark.parametrize("flags", [["-q", "-v", "report"], ["-q", "report", "-v"], ["report", "-v", "-q"]])
def test_quiet_and_verbose_exclude_each_other(flags: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main(*flags, demo.REPORT, "-o", "-") == 2
    out, said = capfd.readouterr()
    assert "--quiet and --verbose exclude each other" in said
    assert out == ""


def test_several_outputs_are_all_written(tmp_path: Path) -> None:
    outputs = [tmp_path / "told.md", tmp_path / "told.json", tmp_path / "told.csv"]
    assert run_main("report", str(demo.REPORT), "-q", *(word for each in outputs for word in ("-o", str(each)))) == 0
    assert [each.exists() for each in outputs] == [True, True, True]
    assert json.loads(outputs[1].read_bytes())["schema"] == "ncuroof.analysis/1"


# ---- a part of the run -------------------------------------------------------------------------------


@pytest.mark.long
def test_a_part_of_the_run_has_a_page_of_its_own(report: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("report", report) == 0
    whole = report.with_suffix(".html").read_bytes()
    capfd.readouterr()
    assert run_main("report", report, "--launch-skip", "1", "--launch-count", "1") == 0
    out, _ = capfd.readouterr()
    part = report.with_suffix(".part.html")
    assert out.splitlines()[-1] == f"page: {part}"
    assert "(without the first, at most 1): 1 of" in " ".join(out.split())
    assert part.is_file()
    assert report.with_suffix(".html").read_bytes() == whole


@pytest.mark.long
def test_kernels_by_name_keep_their_numbers_in_the_report(
    report: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def kernels(*options: str) -> list[dict[str, Any]]:
        assert run_main("report", report, "--format", "json", *options) == 0
        found: list[dict[str, Any]] = json.loads(capfdbinary.readouterr().out)["kernels"]
        return found

    every = kernels()
    name = every[-1]["name"]
    wanted = [kernel for kernel in every if name in kernel["name"]]
    assert 0 < len(wanted) < len(every)
    found = kernels("-k", re.escape(name))
    assert [kernel["id"] for kernel in found] == [kernel["id"] for kernel in wanted]
    assert [kernel["findings"] for kernel in found] == [kernel["findings"] for kernel in wanted]


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-k", "no such kernel"], "no kernel matches 'no such kernel'"),
        (["-k", "("], "expected a regular expression for the kernel, found '('"),
        (["--nvtx", "no such range"], "no NVTX range matches 'no such range'"),
        (["--launch-skip", "100000"], "expected launches after the first 100000"),
    ],
)
def test_filters_that_no_launch_passes_are_refused_before_anything_is_written(
    report: Path, capfd: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert run_main("report", report, *options) == 2
    _assert_one_error(capfd, said)
    assert list(report.parent.iterdir()) == [report]
