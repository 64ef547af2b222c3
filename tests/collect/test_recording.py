"""A recording from beginning to end, with a program that behaves as ncu does."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from ncuroof.cli.recorded import holds_kernel
from ncuroof.collect.arguments import LaunchFilter
from ncuroof.collect.counting_run import CountingRun
from ncuroof.collect.journal import steps_hint
from ncuroof.collect.ncu_run import WithoutProgress, run_ncu
from ncuroof.collect.processes import forwarding_signals
from ncuroof.collect.programs import Program, find_program
from ncuroof.collect.recording import Recorder, with_backups
from ncuroof.collect.report_paths import free_report, report_named
from ncuroof.collect.request import Steps
from ncuroof.errors import CountsError, NcuNotFoundError, OutputError, ProfileRequestError, ProfilingError
from ncuroof.interrupts import interrupted_by_signals
from ncuroof.ncu.settings import load_settings
from ncuroof.sidecars.counts import Counts, KernelCount, counts_path, read_counts
from ncuroof.sidecars.traces.temporal_breakdown import CountedSteps, Part, TemporalBreakdown
from tests.collect.making import DEMO, PLAN, ROOT, put_torch, request, stand_in
from tests.support.patience import PATIENCE_S

HELLO = (sys.executable, "-c", "import sys; print('hello'); print('dear', file=sys.stderr)")


def recorder(
    folder: Path,
    words: tuple[str, ...] = HELLO,
    *,
    said: list[str] | None = None,
    nsys: Path | None = None,
    **more: Any,
) -> Recorder:
    asked = request(words=words, **{"report": folder / "run.ncu-rep", **more})
    program = find_program(words, load_settings(), python=sys.executable, find=lambda _: None)
    say = said.append if said is not None else lambda _: None
    return Recorder(
        asked,
        PLAN,
        program,
        load_settings(),
        stand_in(folder),
        (2024, 1, 1),
        nsys,
        shows_progress=False,
        say=say,
        holds_kernel=holds_kernel,
    )


@pytest.fixture(autouse=True)
def report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_REPORT", str(DEMO))


def test_a_recording_leaves_the_report_and_the_programs_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = recorder(tmp_path).record()
    assert found.reports == (tmp_path / "run.ncu-rep",)
    assert found.reports[0].read_bytes() == DEMO.read_bytes()
    assert (found.exit_status, found.is_interrupted, found.counts) == (0, False, None)
    output = capfd.readouterr()
    assert (output.out, output.err) == ("hello\n", "dear\n")


def test_the_programs_status_is_kept_beside_its_report(tmp_path: Path) -> None:
    found = recorder(tmp_path, (sys.executable, "-c", "raise SystemExit(3)")).record()
    assert found.exit_status == 3
    assert found.reports[0].exists()


def test_ncus_words_are_read(tmp_path: Path) -> None:
    outcome = run_ncu(lambda log: recorder(tmp_path).command(log=log), shows_progress=False)
    assert (outcome.status, outcome.progress.n_done, outcome.progress.passes) == (0, 3, 23)
    assert outcome.progress.reports == (str(tmp_path / "run.ncu-rep"),)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", r"ERR_NVGPUCTRPERM\) \(no-permission\)"),
        ("==ERROR== Out of memory.", "out-of-memory"),
        ("", "no-kernels"),
    ],
)
def test_a_failure_is_a_named_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, message: str) -> None:
    monkeypatch.delenv("STAND_IN_REPORT")
    monkeypatch.setenv("STAND_IN_LINES", lines)
    with pytest.raises(ProfilingError, match=message):
        recorder(tmp_path).record()


def test_steps_that_were_never_reached_are_a_named_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STAND_IN_REPORT")
    (tmp_path / "textwrap2.py").write_text("def f(): pass\n", encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text("import textwrap\nfor _ in range(2): textwrap.dedent('x')\n", encoding="utf-8")
    with pytest.raises(ProfilingError) as error:
        recorder(tmp_path, (str(script),), steps=Steps(5, 6, of="textwrap:dedent"), per_shape=False).record()
    assert error.value.hint is not None
    assert error.value.hint.startswith("the script made 2 steps (textwrap:dedent) and never reached --step 5:6")


def test_a_first_step_without_pytorch_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STAND_IN_REPORT")
    script = tmp_path / "script.py"
    script.write_text("import textwrap\nfor _ in range(2): textwrap.dedent('x')\n", encoding="utf-8")
    steps = Steps(1, 1, of="textwrap:dedent", stops_after=False)
    with pytest.raises(ProfilingError) as error:
        recorder(tmp_path, (str(script),), steps=steps, per_shape=False).record()
    assert str(error.value.hint).startswith("the script made 2 steps (textwrap:dedent), but did not use the GPU")


@pytest.mark.parametrize("steps", [Steps(1, 1, of="textwrap:dedent"), Steps(3, 3, of="textwrap:dedent")])
def test_a_script_whose_steps_were_never_counted_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: Steps
) -> None:
    put_torch(tmp_path, monkeypatch, is_installed=True)
    script = tmp_path / "script.py"
    script.write_text("print('infers')\n", encoding="utf-8")
    with pytest.raises(ProfilingError, match="the steps were never reached") as error:
        recorder(tmp_path, (str(script),), steps=steps).record()
    assert str(error.value.hint).startswith("the script made no step (textwrap:dedent) in its own process")
    assert not list(tmp_path.glob("*.ncu-rep"))


def test_without_pytorch_a_step_that_is_never_reached_is_reported_after_the_only_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_torch(tmp_path, monkeypatch, is_installed=False)
    monkeypatch.delenv("STAND_IN_REPORT")  # ncu leaves no report where the profiler was never started
    script = tmp_path / "script.py"
    script.write_text(f"open({str(tmp_path / 'runs')!r}, 'a').write('x')\n", encoding="utf-8")
    said: list[str] = []
    with pytest.raises(ProfilingError) as error:
        recorder(tmp_path, (str(script),), steps=Steps(3, 3, of="textwrap:dedent"), said=said).record()
    assert "the script's Python has no PyTorch: launches are not counted" in " ".join(said)
    assert str(error.value.hint).startswith("the script made no step (textwrap:dedent) in its own process")
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "x"


def test_steps_missing_at_the_end_are_remarked(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import textwrap\nfor _ in range(6): textwrap.dedent('x')\n", encoding="utf-8")
    said: list[str] = []
    steps = Steps(4, 9, of="textwrap:dedent")
    recorder(tmp_path, (str(script),), steps=steps, per_shape=False, said=said).record()
    assert said == ["warning: the script ended after step 6: 3 of the 6 steps of --step 4:9 were seen"]


FAILING = ["raise ValueError('x')", "import sys; sys.exit(3)", "import os; os.kill(os.getpid(), 11)"]


def failing_script(folder: Path, ending: str) -> Path:
    """Write a script that notes each run in the file `runs` before it fails."""
    path = folder / "script.py"
    path.write_text(f"open({str(folder / 'runs')!r}, 'a').write('x')\n{ending}", encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", FAILING)
def test_a_script_that_fails_in_the_counting_run_does_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    put_torch(tmp_path, monkeypatch, is_installed=True)
    path = failing_script(tmp_path, ending)
    with pytest.raises(ProfilingError, match=r"before its launches were counted \(target-failed\)") as error:
        recorder(tmp_path, (str(path),)).record()
    assert "--no-per-shape" in str(error.value.hint)
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize("ending", FAILING)
def test_without_pytorch_a_failing_script_runs_once_under_ncu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    put_torch(tmp_path, monkeypatch, is_installed=False)
    monkeypatch.delenv("STAND_IN_REPORT")
    said: list[str] = []
    with pytest.raises(ProfilingError, match=r"(before a|no) kernel was recorded"):
        recorder(tmp_path, (str(failing_script(tmp_path, ending)),), said=said).record()
    assert "the script's Python has no PyTorch: launches are not counted, and every launch is recorded" in said
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "x"


def test_an_existing_report_is_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "run.ncu-rep").write_bytes(b"precious")
    with pytest.raises(OutputError, match="already exists"):
        recorder(tmp_path).record()
    assert (tmp_path / "run.ncu-rep").read_bytes() == b"precious"
    assert recorder(tmp_path, force=True).record().reports[0].read_bytes() == DEMO.read_bytes()


def test_a_report_that_appears_during_the_run_is_left_alone(tmp_path: Path) -> None:
    taking = f"open({str(tmp_path / 'run.ncu-rep')!r}, 'w').write('precious')"
    with pytest.raises(ProfilingError, match="report-exists"):
        recorder(tmp_path, (sys.executable, "-c", taking)).record()
    assert (tmp_path / "run.ncu-rep").read_text(encoding="utf-8") == "precious"


def test_a_report_to_be_replaced_comes_back_if_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STAND_IN_REPORT")
    (tmp_path / "run.ncu-rep").write_bytes(b"precious")
    (tmp_path / "run.counts.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ProfilingError, match="no-kernels"):
        recorder(tmp_path, force=True).record()
    assert (tmp_path / "run.ncu-rep").read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.glob("run*")) == ["run.counts.json", "run.ncu-rep"]


def test_the_backup_of_a_killed_run_is_not_overwritten(tmp_path: Path) -> None:
    for name, content in (("run.ncu-rep", b"new"), ("run.ncu-rep.before", b"precious")):
        (tmp_path / name).write_bytes(content)
    with pytest.raises(
        OutputError, match=r"run\.ncu-rep\.before: left behind by an earlier run that failed or was killed"
    ):
        recorder(tmp_path, force=True).record()
    assert (tmp_path / "run.ncu-rep").read_bytes() == b"new"
    assert (tmp_path / "run.ncu-rep.before").read_bytes() == b"precious"


def test_an_earlier_report_does_not_come_back_over_a_new_one(tmp_path: Path) -> None:
    report = tmp_path / "run.ncu-rep"
    report.write_bytes(b"old")

    def interrupted_late() -> None:
        with with_backups([report], is_replaced=report.exists):
            report.write_bytes(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_late()
    assert report.read_bytes() == b"new"
    assert (tmp_path / "run.ncu-rep.before").read_bytes() == b"old"


def test_counts_of_an_earlier_report_do_not_weight_the_next(tmp_path: Path) -> None:
    (tmp_path / "run.counts.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OutputError, match=r"run\.counts\.json: already exists"):
        recorder(tmp_path).record()
    assert free_report(tmp_path / "run.ncu-rep").name == "run-2.ncu-rep"
    recorder(tmp_path, force=True).record()
    assert not (tmp_path / "run.counts.json").exists()


def test_force_touches_only_reports_of_ranks(tmp_path: Path) -> None:
    others = tmp_path / "run.rank0-before.ncu-rep"
    others.write_bytes(b"precious")
    program = Program((), HELLO, "MY_RANK", None)
    ranks = dataclasses.replace(recorder(tmp_path, force=True), program=program)
    with pytest.raises(ProfilingError):  # no launcher here, so that no rank leaves a report
        ranks.record()
    assert others.read_bytes() == b"precious"


def test_a_missing_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is not a folder"):
        recorder(tmp_path, report=tmp_path / "none/run.ncu-rep").record()


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    wanted = tmp_path / "train.ncu-rep"
    assert free_report(wanted) == wanted
    wanted.touch()
    (tmp_path / "train-2.rank0.ncu-rep").touch()
    assert free_report(wanted).name == "train-3.ncu-rep"


@pytest.fixture
def compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Have ncu leave a compressed report, as version 2026.3 does; return what it holds."""
    source = tmp_path / "source.ncu-repz"
    source.write_bytes(zstandard.compress(DEMO.read_bytes()))
    monkeypatch.setenv("STAND_IN_REPORT", str(source))
    return source.read_bytes()


def test_a_report_that_ncu_compressed_is_found(tmp_path: Path, compressed: bytes) -> None:
    (report,) = recorder(tmp_path).record().reports
    assert (report.name, report.read_bytes()) == ("run.ncu-repz", compressed)
    with pytest.raises(OutputError, match=r"run\.ncu-repz: already exists"):
        recorder(tmp_path).record()
    assert free_report(tmp_path / "run.ncu-rep").name == "run-2.ncu-rep"


def test_a_compressed_report_takes_the_place_of_one_that_is_not(tmp_path: Path, compressed: bytes) -> None:
    (tmp_path / "run.ncu-rep").write_bytes(b"earlier")
    (report,) = recorder(tmp_path, force=True).record().reports
    assert report.read_bytes() == compressed
    assert not (tmp_path / "run.ncu-rep").exists()


@pytest.mark.parametrize("name", ["run", "run.ncu-rep", "run.ncu-repz"])
def test_a_report_is_named_with_ncus_suffix_or_without(name: str) -> None:
    assert report_named(Path("here") / name) == Path("here/run.ncu-rep")


@pytest.mark.usefixtures("compressed")
def test_ranks_leave_compressed_reports(tmp_path: Path) -> None:
    (tmp_path / "run.rank1.ncu-rep").write_bytes(b"earlier")
    program = Program((str(launcher_of_two(tmp_path)),), HELLO, "MY_RANK", None)
    found = dataclasses.replace(recorder(tmp_path, force=True), program=program).record()
    assert [path.name for path in found.reports] == ["run.rank0.ncu-repz", "run.rank1.ncu-repz"]
    assert not (tmp_path / "run.rank1.ncu-rep").exists()


def launcher_of_two(folder: Path) -> Path:
    launcher = folder / "ranks"
    launcher.write_text('#!/bin/sh\nfor r in 0 1; do MY_RANK=$r "$@" || exit $?; done\n', encoding="utf-8")
    launcher.chmod(0o755)
    return launcher


def test_each_rank_leaves_a_report(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = Program((str(launcher_of_two(tmp_path)),), HELLO, "MY_RANK", None)
    ranks = dataclasses.replace(recorder(tmp_path), program=program)
    found = ranks.record()
    assert [path.name for path in found.reports] == ["run.rank0.ncu-rep", "run.rank1.ncu-rep"]
    assert capfd.readouterr().out == "hello\nhello\n"  # and not what each ncu says of its progress


@pytest.mark.parametrize("rank", [None, "3"])
def test_a_process_without_a_rank_is_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str | None
) -> None:
    if rank is not None:
        monkeypatch.setenv("MY_RANK", rank)
    one = recorder(tmp_path)
    alone = dataclasses.replace(one, program=Program(("env",), HELLO, "MY_RANK", None, may_lack_rank=True))
    assert [path.name for path in alone.record().reports] == [f"run.rank{rank or 0}.ncu-rep"]


@pytest.mark.parametrize("n_at_once", [1, 5, 1000])
def test_ncus_progress_is_taken_out_of_what_ranks_print(n_at_once: int) -> None:
    printed = b'==PROF== Connected\nloss 3\n==\n =\n==PROF== Profiling "k": 0%....100%\nlast: ==PROF== mine\n\n==PRO'
    stream = WithoutProgress()
    pieces = [stream.pass_on(printed[place : place + n_at_once]) for place in range(0, len(printed), n_at_once)]
    assert b"".join([*pieces, stream.end()]) == b"loss 3\n==\n =\nlast: ==PROF== mine\n\n==PRO"


# Two ranks print while ncu works on a kernel of each; what ncu says is in brackets, and each line is written as it stands.
TWO_RANKS = [
    b'[==PROF== Profiling "a: 9% - 1 pass" - 0: 0%]', b"loss 3\n", b"[....50%]", b"loss 2\n", b"\n",
    b'[==PROF== Profiling "b" - 0 (1/2): 0%]', b"5 of 7\n", b"[....50%]", b"[....100%]", b"....\n", b"[....100%]",
    b"[ - 23 passes\n]", b" - 3 items\n", b"[ - 1 pass\n]", b"....50% is no longer ncu's\n", b" - 2 passes\n",
    b"[==PROF== Disconnected from process 1\n]", b"==PROF== Received signal\n", b"[==PROF== Report: /x.ncu-rep\n]", b"ended",
]  # fmt: skip


@pytest.mark.parametrize("n_at_once", [1, 3, 1000])
def test_output_of_ranks_within_a_line_of_ncu_is_passed_on(n_at_once: int) -> None:
    printed = b"".join(each[1:-1] if each.startswith(b"[") else each for each in TWO_RANKS)
    stream = WithoutProgress()
    pieces = [stream.pass_on(printed[place : place + n_at_once]) for place in range(0, len(printed), n_at_once)]
    assert b"".join([*pieces, stream.end()]) == b"".join(each for each in TWO_RANKS if not each.startswith(b"["))


def test_output_of_a_rank_does_not_wait_for_ncu() -> None:
    stream = WithoutProgress()
    assert stream.pass_on(b'==PROF== Profiling "k" - 0: 0%loss: ') == b"loss: "
    assert stream.pass_on(b"3") == b"3"


def test_output_to_one_destination_keeps_its_order(tmp_path: Path) -> None:
    script = "import os\nfor n in range(50): os.write(1 + n % 2, b'%d ' % n)"
    command = WATCHED.replace('"/bin/echo", "hello"', f'sys.executable, "-c", {script!r}')
    stand_in(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", command, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "STAND_IN_PAUSE": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
    assert done.stdout.split()[:50] == [b"%d" % n for n in range(50)]


WITHOUT_READER = """
import os, sys
from pathlib import Path
from ncuroof.collect.ncu_run import run_ncu
folder = Path(sys.argv[1])
has_ranks = sys.argv[2] == "ranks"
log = lambda path: ["--log-file", path] if path else []
program = "import os, time\\nfor n in range(20): os.write(1, b'loss\\\\n'); time.sleep(0.05)"
outcome = run_ncu(
    lambda path: [str(folder / "ncu"), "--export", str(folder / "run"), *log(path), sys.executable, "-c", program],
    shows_progress=False,
    logs_to_file=not has_ranks,
)
print(outcome.progress.exit_status, outcome.progress.n_done, (folder / "run.ncu-rep").exists(), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("ending", "who", "said"),
    [("| head -1", "one", "1 3 True"), (">&-", "one", "1 3 True"), ("| head -1", "ranks", "None 3 True")],
)
def test_ncu_closes_its_report_after_the_output_pipe_is_closed(
    tmp_path: Path, ending: str, who: str, said: str
) -> None:
    stand_in(tmp_path)
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" "$2" {who} {ending}', sys.executable, WITHOUT_READER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ("loss\n" if "head" in ending else "")
    assert done.stderr.splitlines()[-1] == said  # the program was told, unless ncu prints there too


def test_a_missing_command_is_a_named_error(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    missing = dataclasses.replace(one, ncu=tmp_path / "none")
    with pytest.raises(NcuNotFoundError, match="cannot be run"):
        missing.record()


def test_arguments_reach_the_program_as_they_are(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("a b", "$HOME", "`id`", "*", "'", ";", "--", "-o", "ä")
    recorder(tmp_path, (sys.executable, "-c", "import sys; print(sys.argv[1:])", *words)).record()
    assert capfd.readouterr().out == f"{list(words)}\n"


# ---- interrupts ---------------------------------------------------------------------------------------------------------------

WATCHED = """
import os
import sys
from pathlib import Path
from ncuroof.collect import ncu_run
from ncuroof.collect.ncu_run import run_ncu
ncu_run._GRACE_S = float(os.environ.get("GRACE_S", "60"))
folder = Path(sys.argv[1])
outcome = run_ncu(
    lambda log: [str(folder / "ncu"), "--export", str(folder / "run"), "--log-file", log, "/bin/echo", "hello"],
    shows_progress=True,
    say=lambda text: print(text, file=sys.stderr, flush=True),
)
print("interrupted" if outcome.is_interrupted else "ended", outcome.progress.n_done, (folder / "run.ncu-rep").exists(), flush=True)
"""


CLOSED = """
import sys
from pathlib import Path
from tests.collect.test_recording import recorder
recorder(Path(sys.argv[1]), PROGRAM, force=True).record()
"""


def _watched(folder: Path, *, grace_s: float = 60, **more: Any) -> subprocess.Popen[bytes]:
    stand_in(folder)
    environment = {
        **os.environ,
        "STAND_IN_KERNELS": "200",
        "STAND_IN_PAUSE": "0.1",
        "PYTHONPATH": str(ROOT),
        "GRACE_S": str(grace_s),
        "STAND_IN_BEGUN": str(folder / "begun"),
    }
    return subprocess.Popen(
        [sys.executable, "-c", WATCHED, str(folder)], env=environment, start_new_session=True, **more
    )


def _until(folder: Path, process: subprocess.Popen[bytes], descriptor: int, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        seen += os.read(descriptor, 4096)
    return seen


def _until_ncu_profiles(folder: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while not (folder / "begun").exists():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def _without_nohup() -> Iterator[None]:
    """What is started heeds a closed terminal, also where nobody looks at the tests themselves."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_without_nohup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_what_was_recorded(tmp_path: Path, number: signal.Signals) -> None:
    process = _watched(tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    _until(tmp_path, process, process.stdout.fileno(), b"hello")
    _until_ncu_profiles(tmp_path)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # a terminal sends Ctrl-C to the whole group
    else:
        process.send_signal(number)  # a batch system to the process that it started
    output, errors = process.communicate(timeout=PATIENCE_S)
    state, n_done, exists = output.decode().split()[-3:]
    assert (state, exists) == ("interrupted", "True")
    assert 0 < int(n_done) < 200
    assert b"interrupted: ncu is closing its report" in errors


def test_a_sigterm_to_us_and_then_to_our_group_is_one_interrupt(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "1000"]) as process, forwarding_signals(process):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # as `timeout` sends it once more: while we wait for ncu, nothing ends us
        assert process.wait(PATIENCE_S) == -signal.SIGINT


def test_under_nohup_a_closed_terminal_ends_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupted_by_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_without_nohup")
def test_a_closed_terminal_brings_the_earlier_report_back(tmp_path: Path) -> None:
    (tmp_path / "run.ncu-rep").write_bytes(b"precious")
    waiting = "import time; print('waits', flush=True); time.sleep(1000)"
    script = CLOSED.replace("PROGRAM", repr((sys.executable, "-c", waiting)))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    _until(tmp_path, process, ours, b"waits")
    os.close(ours)  # what is written there is lost from now on
    os.killpg(process.pid, signal.SIGHUP)  # as a terminal sends it
    assert process.wait(PATIENCE_S) == -signal.SIGINT
    assert [path.name for path in tmp_path.glob("run*")] == ["run.ncu-rep"]
    assert (tmp_path / "run.ncu-rep").read_bytes() == b"precious"


def test_an_interrupt_that_reached_only_ncuroof_is_passed_on(tmp_path: Path) -> None:
    process = _watched(tmp_path, grace_s=0.5, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    _until(tmp_path, process, process.stdout.fileno(), b"hello")
    _until_ncu_profiles(tmp_path)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert output.decode().split()[-3:][::2] == ["interrupted", "True"]


def test_on_a_terminal_the_program_sees_a_terminal_and_progress_gives_way(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    stand_in(tmp_path)
    program = "import sys; print('tty' if sys.stdout.isatty() and sys.stderr.isatty() else 'pipe')"
    script = WATCHED.replace('"/bin/echo", "hello"', f'sys.executable, "-c", {program!r}')
    environment = {**os.environ, "STAND_IN_KERNELS": "3", "STAND_IN_PAUSE": "0.4", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], env=environment, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    while not re.search(rb"ended \d+ (True|False)", seen):
        seen += os.read(ours, 4096)
    process.wait(timeout=PATIENCE_S)
    os.close(ours)
    assert b"tty\r\n" in seen
    assert b"profiling " in seen
    assert b"kernel_" in seen
    # The line is gone before the next thing is printed.
    assert seen.rindex(b"\x1b[2K") < seen.rindex(b"ended 3 True")
    assert b"profiling" not in seen[seen.rindex(b"\x1b[2K") :]


# ---- which launches ---------------------------------------------------------------------------------------------------------


def counts(*kernels: tuple[str, int, float]) -> Counts:
    return Counts(tuple(KernelCount(name, (1, 1, 1), (32, 1, 1), n, ns) for name, n, ns in kernels))


def test_a_short_run_is_recorded_whole_a_long_one_once_per_shape(tmp_path: Path) -> None:
    said: list[str] = []
    one = recorder(tmp_path, ("train.py",), said=said)
    assert one.counts_first
    assert one.select(counts(("a", 100, 1.0), ("b", 100, 1.0))) == LaunchFilter(n_launches=200)
    assert one.select(counts(("a", 100, 1.0), ("b", 101, 1.0))) == LaunchFilter(per_shape=True, n_launches=2)
    assert said[1].startswith(
        "201 launches of 2 kernels and shapes, 0.0 ms of GPU time; recording one launch of each: 16 to"
    )


LONG = 300
FOUR = "void n::k<(int)4, float>(int)", "void n::k<(int)4, double>(int)", "void n::k<8, float>(int)", "relu"


def test_instantiations_with_one_shape_are_told_apart_by_the_whole_name(tmp_path: Path) -> None:
    """By the function's name ncu recorded 69 launches of 88 kernels and shapes of a real step."""
    alike, apart = counts(*((name, LONG, 1.0) for name in FOUR)), counts(("a", LONG, 1.0), ("b", 1, 1.0))
    one = recorder(tmp_path, ("train.py",))
    assert one.select(alike) == LaunchFilter(per_shape=True, n_launches=4, by_mangled_names=True)
    assert one.select(apart) == LaunchFilter(per_shape=True, n_launches=2)
    chosen = recorder(tmp_path, ("train.py",), kernels=("^k",), per_shape=True).select(alike)
    assert (chosen.functions, chosen.n_launches) == (("k",), 3)
    covered = recorder(tmp_path, ("train.py",), cover_frac=0.3).select(alike)
    assert (covered.functions, covered.n_launches) == (("k",), 3)
    kept = recorder(tmp_path, ("train.py",), kernels=("^a",), per_shape=True).select(apart)
    assert kept == LaunchFilter(per_shape=True, n_launches=1)  # the pattern as it is


def test_instantiations_are_chosen_by_what_their_whole_names_hold(tmp_path: Path) -> None:
    chosen = recorder(tmp_path, ("train.py",), kernels=("k<.*double",), per_shape=True)
    assert chosen.select(counts(*((name, LONG, 1.0) for name in FOUR))) == LaunchFilter(per_shape=True, n_launches=1)
    with pytest.raises(ProfilingError, match="no-kernels") as error:
        recorder(tmp_path, ("train.py",), kernels=("^k<",), per_shape=True).select(counts((FOUR[0], 1, 1.0)))
    assert "or the whole demangled name if it contains < > or ::" in str(error.value.hint)


def test_fewer_launches_than_planned_are_remarked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountingRun, "count", lambda _: {None: counts(*((f"k{n}", 99, 1.0) for n in range(20)))})
    monkeypatch.setenv("STAND_IN_KERNELS", "19")
    assert recorder(tmp_path, ("train.py",), per_shape=True).record().shortfall is None  # 19 of 20 are 95 %
    monkeypatch.setenv("STAND_IN_KERNELS", "18")
    one = recorder(tmp_path, ("train.py",), per_shape=True, force=True)
    assert str(one.record().shortfall).startswith("only 18 of the 20 planned launches were recorded")
    monkeypatch.setenv("STAND_IN_LINES", "==ERROR== Out of memory.")
    assert one.record().shortfall is None  # the trouble says it
    monkeypatch.delenv("STAND_IN_LINES")
    every = recorder(tmp_path, ("train.py",), force=True, cover_frac=1.0, per_shape=False)
    assert every.record().shortfall is None


def test_covering_names_the_functions(tmp_path: Path) -> None:
    found = recorder(tmp_path, ("train.py",), cover_frac=0.9).select(
        counts(("void n::a<3>(int)", 300, 90.0), ("b", 1, 10.0))
    )
    assert found.functions == ("a",)
    assert found.per_shape


def test_names_that_the_profiler_left_mangled_are_chosen_by_their_functions(tmp_path: Path) -> None:
    """As PyTorch's writes those of more than 1024 characters."""
    gemm = f"_ZN7cutlass13device_kernelINS_{'4gemm6kernel' * 100}EEEvNT_6ParamsE"
    counted = counts((gemm, 300, 90.0), ("relu", 1, 10.0))
    assert recorder(tmp_path, ("train.py",), cover_frac=0.9).select(counted).functions == ("device_kernel",)
    chosen = recorder(tmp_path, ("train.py",), kernels=("^device_kernel$",), per_shape=True).select(counted)
    assert chosen == LaunchFilter(per_shape=True, n_launches=1)
    with pytest.raises(ProfilingError) as error:
        recorder(tmp_path, ("train.py",), kernels=("nomatch",), per_shape=True).select(counts(("x" * 2000, 1, 1.0)))
    assert str(error.value.hint).endswith(f"the function that takes longest is {'x' * 80}")


NSYS = {"nsys": Path("nsys")}


@pytest.mark.parametrize(
    ("words", "more", "counts_first"),
    [
        (("train.py",), {}, True),
        (("train.py",), {"per_shape": False}, False),
        (("train.py",), {"per_shape": False, "cover_frac": 0.9}, True),
        (("train.py",), {"steps": Steps(3, 3)}, True),
        (("train.py",), {"steps": Steps(3, 3), "per_shape": False}, False),
        (("train.py",), {"steps": Steps(3, 3), "per_shape": True}, True),
        (("train.py",), {"kernels": ("gemm",)}, False),
        (("train.py",), {"count": 3}, False),
        (("./app",), {}, False),
        (("./app",), {"per_shape": True}, False),
        (("./app",), NSYS, True),
        (("./app",), {"per_shape": True, **NSYS}, True),
        (("./app",), {"per_shape": False, **NSYS}, False),
        (("./app",), {"count": 3, **NSYS}, False),
        (("mpirun", "-n", "2", "train.py"), {}, True),
        (("torchrun", "app.py"), {"per_shape": False}, False),
    ],
)
def test_when_launches_are_counted_first(
    tmp_path: Path, words: tuple[str, ...], more: dict[str, Any], counts_first: bool
) -> None:
    assert recorder(tmp_path, words, **more).counts_first is counts_first


def test_the_cost_is_shown_before_the_run(tmp_path: Path) -> None:
    said: list[str] = []
    one = recorder(tmp_path, ("train.py",), said=said)
    counted = counts(("a", 1, 2e9), ("b", 4, 24e9))
    at_a_rate = "at 30 ms per replay plus GPU time, as measured on an H100"
    # 8 or 9 passes: of five launches, 2 + 24 s together, 8 × (26 + 5 × 0.03) s = 209.2 s and 9 × 26.15 s = 235.35 s
    one.select(counted)
    assert said[-1].endswith(f"recording every launch: 40 to 45 replays, about 3:29 to 3:55 {at_a_rate}")
    # of two kernels once each, 2 + 6 s a launch, 8 × (8 + 2 × 0.03) s = 64.48 s and 9 × 8.06 s = 72.54 s
    once = dataclasses.replace(one.request, per_shape=True)
    dataclasses.replace(one, request=once).select(counted)
    assert said[-1].endswith(f"one launch of each: 16 to 18 replays, about 1:04 to 1:13 {at_a_rate}")
    # of a thousand kernels of a microsecond, 8000 × 0.03 s = 240 s
    dataclasses.replace(one, request=once).select(counts(*((f"k{n}", 1, 1e3) for n in range(1000))))
    assert "8000 to 9000 replays, about 4:00 to 4:30 at" in said[-1]
    dataclasses.replace(one, request=dataclasses.replace(once, replay_mode="application")).select(counted)
    assert said[-1].endswith("one launch of each: 8 to 9 runs of the program")


def test_the_cost_counts_only_recorded_launches(tmp_path: Path) -> None:
    said: list[str] = []
    thousand = counts(*((f"k{n}", 1, 1e9) for n in range(1000)))
    # Five of them, a second each: 8 × 5 × 1.03 s = 41.2 s and 9 × 5.15 s = 46.35 s.
    recorder(tmp_path, ("t.py",), count=5, per_shape=False, said=said).select(thousand)
    assert "recording at most 5 of 1000 launches: 40 to 45 replays, about 0:41 to 0:46 at" in said[-1]
    # 500 of them: 8 × 500 × 1.03 s = 4120 s and 9 × 515 s = 4635 s.
    recorder(tmp_path, ("t.py",), cover_frac=0.5, per_shape=False, said=said).select(thousand)
    assert "recording every launch of 500 of these 1000: 4000 to 4500 replays, about 1:08:40 to 1:17:15" in said[-1]
    # ncu counts by kernel and shape: two of the three `a`, the only `b`; 8 × (2 × 1 s + 4 s + 3 × 0.03 s) = 48.72 s
    twice = recorder(tmp_path, ("t.py",), count=2, per_shape=True, said=said)
    twice.select(counts(("a", 3, 3e9), ("b", 1, 4e9)))
    assert "recording at most 2 launches of each: 24 to 27 replays, about 0:49 to" in said[-1]
    recorder(tmp_path, ("t.py",), count=9, cover_frac=1.0, said=said).select(counts(("a", 3, 3e9)))
    assert "recording every launch: 24 to 27 replays" in said[-1]


def test_covering_a_short_run_counts_every_launch(tmp_path: Path) -> None:
    """Of 76 µs 40 % are 30.4: 150 launches of A take 45 µs together, the two of B 31 µs. Once each, A is one launch."""
    both = tuple(KernelCount("B", (grid, 1, 1), (32, 1, 1), 1, ns) for grid, ns in ((1, 25e3), (2, 6e3)))
    short = Counts((KernelCount("A", (1, 1, 1), (32, 1, 1), 150, 45e3), *both))
    assert recorder(tmp_path, ("t.py",), cover_frac=0.4).select(short) == LaunchFilter(("B",), n_launches=2)
    chosen = recorder(tmp_path, ("t.py",), cover_frac=0.4, per_shape=True).select(short)
    assert chosen == LaunchFilter(("A",), per_shape=True, n_launches=1)
    # A run of more than 200 launches is recorded once each, whether those that cover the share are many or few.
    long = Counts((*short.kernels, KernelCount("C", (1, 1, 1), (32, 1, 1), 50, 1e3)))
    assert recorder(tmp_path, ("t.py",), cover_frac=0.4).select(long) == chosen


def test_covering_keeps_to_the_kernels_that_are_wanted(tmp_path: Path) -> None:
    counted = counts(("ncclDevKernel_AllReduce", 9, 80.0), ("gemm_a", 1, 15.0), ("gemm_b", 1, 3.0), ("relu", 1, 2.0))
    assert recorder(tmp_path, ("t.py",), cover_frac=0.9).select(counted).functions == ("gemm_a", "gemm_b")
    assert recorder(tmp_path, ("t.py",), cover_frac=0.9, kernels=("relu",)).select(counted).functions == ("relu",)
    assert recorder(tmp_path, ("t.py",), cover_frac=0.9, kernels=("(?i)RELU", "no")).select(counted).functions == (
        "relu",
    )
    with pytest.raises(
        ProfilingError, match=r"none of the 4 counted kernels and shapes passes the filters \(no-kernels\)"
    ):
        recorder(tmp_path, ("t.py",), cover_frac=0.9, kernels=("nomatch",)).select(counted)
    with pytest.raises(ProfileRequestError, match="--kernel: expected a regular expression"):
        recorder(tmp_path, ("t.py",), cover_frac=0.9, kernels=("(",)).select(counted)


def test_covering_records_every_shape_of_a_function(tmp_path: Path) -> None:
    """ncu filters by name: the seldom shape of a function that takes much time is recorded, and paid for, too."""
    shapes = [KernelCount("gemm", (grid, 1, 1), (32, 1, 1), 150, ns) for grid, ns in ((1, 9e9), (2, 3e9))]
    said: list[str] = []
    one = recorder(tmp_path, ("t.py",), cover_frac=0.7, said=said)
    assert one.select(Counts((*shapes, KernelCount("relu", (1, 1, 1), (32, 1, 1), 1, 1e6)))) == LaunchFilter(
        ("gemm",), True, 2
    )
    # 8 passes: 8 × (60 + 20) ms, and 16 × 30 ms.
    assert "recording 2 of these 3, one launch each: 16 to 18 replays, about 0:01 at" in said[-1]


def test_ranks_are_weighted_by_their_own_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = tmp_path / "ranks"
    launcher.write_text('#!/bin/sh\nfor r in 0 1 2; do MY_RANK=$r "$@" || exit $?; done\n', encoding="utf-8")
    launcher.chmod(0o755)
    by_rank = {0: counts(("gemm", 150, 3e6), ("relu", 1, 1e6)), 1: counts(("gemm", 60, 9e6))}
    monkeypatch.setattr(CountingRun, "count", lambda _: by_rank)
    said: list[str] = []
    program = Program((str(launcher),), HELLO, "MY_RANK", None)
    ranks = dataclasses.replace(recorder(tmp_path, said=said, nsys=Path("nsys")), program=program)
    found = ranks.record()
    # 211 launches are more than 200: once per shape, of all ranks together.
    assert said[0].startswith("211 launches of 2 kernels and shapes, 13.0 ms of GPU time; recording one launch of each")
    assert found.counts == counts(("gemm", 210, 12e6), ("relu", 1, 1e6))
    counted = {report.name: counts_path(report) for report in found.reports}
    assert read_counts(counted["run.rank0.ncu-rep"]) == by_rank[0]
    assert read_counts(counted["run.rank1.ncu-rep"]) == by_rank[1]
    assert not counted["run.rank2.ncu-rep"].exists()  # it launched nothing in the first run


def test_counting_a_binary_takes_nsys(tmp_path: Path) -> None:
    with pytest.raises(ProfileRequestError, match=r"'\./app' is not a Python script, and nsys .* was not found"):
        recorder(tmp_path, ("./app",), cover_frac=0.9).record()


def test_one_launch_per_shape_without_counts_is_warned_of(tmp_path: Path) -> None:
    said: list[str] = []
    found = recorder(tmp_path, said=said, per_shape=True).record()
    assert found.counts is None
    assert not counts_path(found.reports[0]).exists()
    assert "sums and shares cover the profiled launches" in said[0]


def test_failures_of_single_kernels_are_remarked_beside_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_LINES", "==ERROR== Out of memory.|==WARNING== Launch timeout")
    assert str(recorder(tmp_path).record().trouble).startswith("ncu ran out of memory")
    monkeypatch.setenv("STAND_IN_LINES", "==WARNING== No metrics to collect found in sections.")
    assert recorder(tmp_path, force=True).record().trouble is None


def test_a_kernel_that_was_cut_off_does_not_count_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ncu 2025.3.1 said on an H100 of the kernel that it was replaying when it was interrupted."""
    monkeypatch.setenv("STAND_IN_LINES", '==ERROR== Failed to profile "vectorized_elementwise_kernel" in process 81')
    assert str(recorder(tmp_path).record().trouble).startswith("a kernel could not be replayed (replay-failed)")
    interrupted = lambda *words, **more: dataclasses.replace(run_ncu(*words, **more), is_interrupted=True)  # noqa: E731
    monkeypatch.setattr("ncuroof.collect.recording.run_ncu", interrupted)
    assert recorder(tmp_path, force=True).record().trouble is None
    monkeypatch.setenv("STAND_IN_LINES", '==ERROR== Failed to profile "k"|==ERROR== Out of memory.')
    assert str(recorder(tmp_path, force=True).record().trouble).startswith("ncu ran out of memory")


def leaves(monkeypatch: pytest.MonkeyPatch, trace: str) -> None:
    """Let the counting run leave a trace, or none, in place of PyTorch."""
    write = f"open(sys.argv[1], 'w').write({trace!r})" if trace else "pass"
    monkeypatch.setattr(
        CountingRun,
        "command",
        lambda _, folder: [sys.executable, "-c", f"import sys; {write}", str(folder / "trace.json")],
    )


@pytest.mark.parametrize(
    ("journal", "message"),
    [
        ("began start stop", "PyTorch did not use the GPU in the script's own process: launches are not counted"),
        (
            "began start not-counted stop",
            "the script uses the GPU from a thread of its own, where PyTorch's profiler cannot count: ",
        ),
        ("began start", "the script ended with os._exit, before PyTorch's profiler could write"),
    ],
)
def test_a_remark_says_why_there_is_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str, message: str
) -> None:
    said: list[str] = []
    assert _counted_with(tmp_path, monkeypatch, journal, said) == {}
    assert said[-1].startswith(message)


@pytest.mark.parametrize("journal", ["", "began start counted stop"])
def test_a_trace_that_did_not_fit_on_the_disk_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str
) -> None:
    with pytest.raises(ProfilingError, match="the counting run's trace could not be written to /") as error:
        _counted_with(tmp_path, monkeypatch, journal, [])
    assert "set TMPDIR" in str(error.value.hint)


def _counted_with(folder: Path, monkeypatch: pytest.MonkeyPatch, journal: str, said: list[str]) -> object:
    """Count with a journal of these events, and without a trace."""
    lines = "".join(json.dumps({"event": event, "after": 0}) + "\n" for event in journal.split())
    write = f"import sys; open(sys.argv[1], 'w').write({lines!r})"
    monkeypatch.setattr(
        CountingRun, "command", lambda _, there: [sys.executable, "-c", write, str(there / "journal.jsonl")]
    )
    return recorder(folder, ("train.py",), said=said).counting_run.count()


@pytest.mark.parametrize("per_shape", [None, False])  # in the first run, and under ncu
def test_a_refusal_of_the_runner_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_shape: bool | None
) -> None:
    monkeypatch.delenv("STAND_IN_REPORT")
    (tmp_path / "script.py").write_text("import textwrap\n", encoding="utf-8")
    steps = Steps(2, 2, of="textwrap:nothing")
    with pytest.raises(ProfilingError, match=r"^calls of textwrap:nothing cannot be counted") as error:
        recorder(tmp_path, (str(tmp_path / "script.py"),), steps=steps, per_shape=per_shape).record()
    assert str(error.value.hint).startswith("--step-of sets what counts as a step")


def test_steps_of_different_optimizers_are_named_if_too_few_were_counted(tmp_path: Path) -> None:
    asked = recorder(tmp_path, ("train.py",), steps=Steps(5, 5)).request
    hint = steps_hint(asked, [{"event": "step"}, {"event": "step"}, {"event": "passed-over", "n_steps": 7}])
    assert "made 2 steps (optimizer) and never reached --step 5; 7 steps of other optimizers do not count" in str(hint)


def test_a_function_that_is_never_called_by_its_name_may_be_in_a_registry(tmp_path: Path) -> None:
    asked = recorder(tmp_path, ("train.py",), steps=Steps(5, 5, of="train_step")).request
    assert "made no step (train_step)" in str(steps_hint(asked, [{"event": "began"}]))
    assert "as a registry does, is called uncounted: name one that it calls" in str(
        steps_hint(asked, [{"event": "began"}])
    )


@pytest.mark.parametrize("trace", ['{"traceEvents": []}', ""])
def test_a_script_without_kernels_of_its_own_is_recorded_uncounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trace: str
) -> None:
    """It may leave the work to children, or end without a trace."""
    leaves(monkeypatch, trace)
    (tmp_path / "train.py").write_text("print('ran')", encoding="utf-8")
    said: list[str] = []
    assert recorder(tmp_path, (str(tmp_path / "train.py"),), said=said).record().counts is None
    assert "are not counted, and every launch is recorded" in said[1]
    with pytest.raises(ProfilingError, match="no-kernels"):
        recorder(tmp_path, (str(tmp_path / "train.py"),), per_shape=True, force=True).record()


def test_a_trace_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = '{"cat": "kernel", "name": "k", "ts": 0, "dur": 2.5, "args": {"grid": [8, 1, 1], "block": [64, 1, 1]}}'
    leaves(monkeypatch, f'{{"traceEvents": [{kernel}, {kernel}]}}')
    found = recorder(tmp_path, ("train.py",), steps=Steps(2, 3)).counting_run.count()
    assert found[None] == Counts((KernelCount("k", (8, 1, 1), (64, 1, 1), 2, 5000.0, 2500.0, 2500.0),), "2:3")
    leaves(monkeypatch, "nonsense")
    with pytest.raises(CountsError, match="the counting run's trace cannot be read"):
        recorder(tmp_path, ("train.py",)).counting_run.count()


COUNTED = {"event": "counted", "duration_ns": 25_000, "batches_ns": 3_000, "earlier_steps_ns": [9e3, 11e3, 30e3]}


@pytest.mark.parametrize(
    ("journal", "steps"),
    [
        ([COUNTED, {"event": "stop", "after": 5}], CountedSteps(2, 25e3, 3e3, 11e3)),
        ([COUNTED | {"earlier_steps_ns": []}, {"event": "stop", "after": 5}], CountedSteps(2, 25e3, 3e3, None)),
        (
            [COUNTED, {"event": "stop", "after": 4}],
            None,
        ),  # the script ended before: what came after its last step is none
        ([], None),  # killed
    ],
)
def test_steps_are_timed_by_the_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: list[dict[str, object]], steps: CountedSteps | None
) -> None:
    kernel = {"cat": "kernel", "name": "k", "ts": 0, "dur": 20, "args": {"grid": [8, 1, 1], "block": [64, 1, 1]}}
    lines = "".join(f"{json.dumps(entry)}\n" for entry in [{"event": "start", "before": 4}, *journal])
    write = f"import sys; open(sys.argv[1], 'w').write({json.dumps({'traceEvents': [kernel]})!r}); open(sys.argv[2], 'w').write({lines!r})"  # noqa: E501
    left = ("trace.json", "journal.jsonl")
    monkeypatch.setattr(
        CountingRun, "command", lambda _, folder: [sys.executable, "-c", write, *(str(folder / name) for name in left)]
    )
    counts = recorder(tmp_path, ("train.py",), steps=Steps(4, 5)).counting_run.count()[None]
    if steps is None:
        assert counts.breakdown is None
    else:
        parts = (Part("computation", 20e3), Part("first_launch", 5e3, 1))
        assert counts.breakdown == TemporalBreakdown(parts, steps)


def traced(folder: Path, **launches_by_kernel: int) -> Path:
    """Write a trace in which each launch takes 10 µs."""
    kernels = [
        {"cat": "kernel", "name": name, "ts": 0, "dur": 10, "args": {"grid": [8, 1, 1], "block": [64, 1, 1]}}
        for name, n_launches in launches_by_kernel.items()
        for _ in range(n_launches)
    ]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": kernels}), encoding="utf-8")
    return folder / "trace.json"


def test_a_trace_takes_the_place_of_the_counting_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountingRun, "count", lambda _: pytest.fail("the program ran twice"))
    said: list[str] = []
    one = recorder(tmp_path, trace=traced(tmp_path, gemm=97, relu=3), cover_frac=0.95, said=said)
    found = one.record()
    # 97 of 100 launches are enough, once: the trace may be of a few steps of many.
    assert one.select(one.traced()) == LaunchFilter(("gemm",), per_shape=True, n_launches=1)
    assert said[0].startswith(
        "100 launches of 2 kernels and shapes, 1.0 ms of GPU time; recording 1 of these 2, one launch each"
    )
    assert read_counts(counts_path(found.reports[0])) == one.traced()


def test_steps_are_recorded_as_the_trace_counts_them(tmp_path: Path) -> None:
    one = recorder(tmp_path, ("train.py",), trace=traced(tmp_path, gemm=5), steps=Steps(4, 4))
    assert not one.counts_first
    assert one.select(one.traced()) == LaunchFilter(n_launches=5)
    every = recorder(tmp_path, trace=traced(tmp_path, gemm=5), per_shape=False)
    assert not every.select(every.traced()).per_shape


def test_a_malformed_trace_starts_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CountsError, match="No such file"):
        recorder(tmp_path, trace=tmp_path / "nothing.json").record()
    assert capfd.readouterr().out == ""


def test_each_rank_is_weighted_by_the_trace_and_not_by_an_earlier_one(tmp_path: Path) -> None:
    launcher = tmp_path / "ranks"
    launcher.write_text('#!/bin/sh\nfor r in 0 1; do MY_RANK=$r "$@" || exit $?; done\n', encoding="utf-8")
    launcher.chmod(0o755)
    program = Program((str(launcher),), HELLO, "MY_RANK", None)
    ranks = dataclasses.replace(recorder(tmp_path, trace=traced(tmp_path, gemm=5), cover_frac=0.9), program=program)
    counted = [tmp_path / f"run.rank{rank}.counts.json" for rank in (0, 1)]
    assert list(map(counts_path, ranks.record().reports)) == counted
    assert all(path.exists() for path in counted)
    again = dataclasses.replace(recorder(tmp_path, force=True), program=program)
    again.record()
    assert not any(path.exists() for path in counted)


@pytest.mark.parametrize(
    "n_launches", [300, 3]
)  # one recorded for all, and all of them: it is the time of the run either way
def test_counts_lie_beside_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_launches: int) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('trained')", encoding="utf-8")
    counted = counts(("a", n_launches, 3e6))
    monkeypatch.setattr(CountingRun, "count", lambda _: {None: counted})
    found = recorder(tmp_path, (str(script),)).record()
    assert read_counts(counts_path(found.reports[0])) == counted


def test_counts_that_cannot_be_written_cost_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "train.py").write_text("print('trained')", encoding="utf-8")
    monkeypatch.setattr(CountingRun, "count", lambda _: {None: counts(("a", 300, 3e6))})
    monkeypatch.setattr(Path, "write_bytes", full)
    said: list[str] = []
    found = recorder(tmp_path, (str(tmp_path / "train.py"),), said=said).record()
    assert found.reports[0].exists()
    assert "run.counts.json: cannot be written: No space left on device" in said[-1]
