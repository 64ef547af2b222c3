"""The first run of programs that are no PyTorch scripts: a program in nsys's place, and nsys itself where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncuroof.collect.counting_run import RUNNER, CountingRun, run_nsys
from ncuroof.collect.programs import Program, find_program
from ncuroof.collect.request import Steps
from ncuroof.errors import CountsError, NcuNotFoundError, ProfileRequestError, ProfilingError
from ncuroof.ncu.machine import find_nsys
from ncuroof.ncu.settings import load_settings
from ncuroof.sidecars.counts import KernelCount
from ncuroof.sidecars.predecessors import Predecessor
from tests.collect.making import ROOT, request, stand_in_nsys
from tests.support.nsys_database import Ran, write_database
from tests.support.patience import PATIENCE_S

HELLO = (sys.executable, "-c", "import sys; print('hello'); print('dear', file=sys.stderr)")


def counting_run(words: tuple[str, ...], nsys: Path | None, said: list[str] | None = None, **more: Any) -> CountingRun:
    program = find_program(words, load_settings(), python=sys.executable, find=lambda _: None)
    say = [].append if said is None else said.append
    return CountingRun(request(words=words, **more), program, load_settings(), nsys, say)


def test_nsys_counts_a_program(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    database = write_database(tmp_path / "made.sqlite", [Ran(0, 10, 1), Ran(20, 30, 2)])
    (counts,) = counting_run(HELLO, stand_in_nsys(tmp_path, database)).count().values()
    gemm = ("void gemm<float>(T1 *)", (8, 1, 1), (64, 1, 1))
    assert counts.kernels == (KernelCount(*gemm, 2, 20e3, 10e3, 10e3, (Predecessor(*gemm, 1),)),)
    assert (counts.source, counts.steps) == ("nsys", None)
    assert tuple(capfd.readouterr()) == ("hello\n", "dear\n")


def test_a_failing_program_is_counted_up_to_its_failure(tmp_path: Path) -> None:
    database = write_database(tmp_path / "made.sqlite", [Ran(0, 10, 1)])
    counts = counting_run((sys.executable, "-c", "raise SystemExit(3)"), stand_in_nsys(tmp_path, database)).count()
    assert counts[None].n_launches == 1


@pytest.mark.parametrize(
    ("ran", "message"),
    [
        (None, "nsys exited with status 0 and left no trace"),
        ([Ran(0, 1, 1, table="MEMSET")], "nsys saw no kernel on a GPU"),
    ],
)
def test_a_program_that_nsys_cannot_count_is_recorded_whole_unless_counts_are_needed(
    tmp_path: Path, ran: list[Ran] | None, message: str
) -> None:
    nsys = stand_in_nsys(tmp_path, None if ran is None else write_database(tmp_path / "made.sqlite", ran))
    said: list[str] = []
    assert counting_run(HELLO, nsys, said).count() == {}
    assert said[-1] == f"{message}: launches are not counted, and every launch is recorded"
    with pytest.raises(ProfilingError, match=rf"{message} \(no-kernels\)"):
        counting_run(HELLO, nsys, cover_frac=0.9).count()


def test_a_trace_that_cannot_be_counted_does_not_lead_to_a_whole_recording(tmp_path: Path) -> None:
    """It may be too large, and then so would be the recording."""
    (tmp_path / "made.sqlite").write_bytes(b"SQLite format 3\0")
    with pytest.raises(
        CountsError, match=r"the counting run's trace cannot be read: .*: expected a trace of Nsight Systems"
    ):
        counting_run(HELLO, stand_in_nsys(tmp_path, tmp_path / "made.sqlite")).count()


def test_a_script_without_pytorch_is_counted_by_nsys(tmp_path: Path) -> None:
    script = tmp_path / "fit.py"
    script.write_text("print('fitted')\n", encoding="utf-8")
    words = (sys.executable, "-S", str(script))  # without site-packages, and so without PyTorch
    nsys = stand_in_nsys(tmp_path, write_database(tmp_path / "made.sqlite", [Ran(0, 10, 1)]))
    assert counting_run(words, nsys).count()[None].source == "nsys"
    said: list[str] = []
    assert counting_run(words, None, said).count() == {}
    assert counting_run(words, nsys, said, steps=Steps(2, 2)).count() == {}
    assert said[1::2] == 2 * [
        "the script's Python has no PyTorch: launches are not counted, and every launch is recorded"
    ]


def test_each_rank_is_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    launcher = tmp_path / "ranks"
    launcher.write_text('#!/bin/sh\nfor r in 0 1; do MY_RANK=$r "$@" || exit $?; done\n', encoding="utf-8")
    launcher.chmod(0o755)
    program = Program((str(launcher),), HELLO, "MY_RANK", None)
    nsys = stand_in_nsys(tmp_path, write_database(tmp_path / "made.sqlite", [Ran(0, 10, 1), Ran(20, 30, 2)]))
    run = replace(counting_run(HELLO, nsys), program=program)
    assert {rank: counts.n_launches for rank, counts in run.count().items()} == {0: 2, 1: 2}
    alone = replace(program, launcher=("env",), may_lack_rank=True)
    assert list(replace(run, program=alone).count()) == [0]
    assert capfd.readouterr().out.count("hello") == 3
    command = run.command(Path("there"))
    assert (command[0], command[1]) == (str(launcher), str(nsys))
    assert "--output=there/trace.rank%q{MY_RANK}" in command
    script = replace(program, words=("python", "train.py"), script=1)
    assert replace(run, program=script).command(Path("there")) == [
        *(str(launcher), "python", str(RUNNER)),
        *("--count", "there/trace.rank%q{MY_RANK}.json", "--status", "there/journal.rank%q{MY_RANK}.jsonl"),
        *("--", "train.py"),
    ]


@pytest.mark.parametrize(
    ("more", "tells_operators"),
    [
        ({}, False),
        ({"annotates": True}, False),  # of a whole run there would be millions
        ({"steps": Steps(2, 3)}, False),
        ({"steps": Steps(2, 3), "annotates": True}, True),
    ],
)
def test_operators_are_recorded_of_annotated_steps(more: dict[str, Any], tells_operators: bool) -> None:
    command = counting_run(("train.py", "--annotate"), None, **more).command(Path("there"))
    assert ("--operators" in command) is tells_operators
    assert command[-2:] == ["train.py", "--annotate"]


def test_without_nsys_a_program_is_not_counted() -> None:
    assert not counting_run(("./app",), None).is_possible
    with pytest.raises(
        ProfileRequestError, match=r"'\./app' is not a Python script, and nsys .* was not found"
    ) as error:
        counting_run(("./app",), None, cover_frac=0.9).count()
    assert "--trace" in str(error.value.hint)
    with pytest.raises(NcuNotFoundError, match="cannot be run"):
        counting_run(("./app",), Path("/nowhere/nsys")).count()


RELAYED = """
import sys
from ncuroof.collect.counting_run import run_nsys
sys.exit(run_nsys([sys.executable, "-c", sys.argv[1]]))
"""


@pytest.mark.parametrize(
    ("printed", "passed_on"),
    [
        (b"", b""),
        (b"no line's end", b"no line's end"),
        (b"Generating 'picture.png'\nmore\n", b"Generating 'picture.png'\nmore\n"),
        (b"Generating '", b"Generating '"),
        (b"loss 3Generating '/tmp/nsys-report-1.qdstrm'\nGenerated:\n", b"loss 3"),
        (b"a\nGenerating '/tmp/run.nsys-rep'\n[1/1] [=100%] run.nsys-rep\n", b"a\n"),
        (b"x" * 70_000 + b"\nGenerating '/tmp/n.qdstrm'\n", b"x" * 70_000 + b"\n"),
        (bytes(range(256)), bytes(range(256))),
    ],
    ids=["nothing", "no end", "a program's own", "cut off", "behind its words", "one more line", "long", "every byte"],
)  # an id goes into the environment, which has no room for 70 000 bytes
@pytest.mark.parametrize("n_at_once", [7, 100_000])
def test_output_passes_through_up_to_nsyss_last_words(printed: bytes, passed_on: bytes, n_at_once: int) -> None:
    n_at_once = max(n_at_once, len(printed) // 100)  # each takes a few milliseconds
    program = (
        f"import os, time\nprinted = {printed!r}\n"
        f"for place in range(0, len(printed), {n_at_once}):\n"
        f"    os.write(1, printed[place:place + {n_at_once}])\n"
        f"    time.sleep(0.005 if {n_at_once} < 100 else 0)\n"
        "raise SystemExit(5)"
    )
    done = subprocess.run([sys.executable, "-c", RELAYED, program], stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (5, passed_on)


def test_nsys_goes_on_after_the_output_pipe_is_closed() -> None:
    program = "import time\nfor n in range(10): print('loss', n, flush=True); time.sleep(0.05)\nraise SystemExit(5)"
    words = ["sh", "-c", '{ "$0" -c "$1" "$2"; echo $? >&2; } | head -1', sys.executable, RELAYED, program]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("loss 0\n", "5\n")


def test_a_long_trace_is_announced_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncuroof.collect.counting_run._LONG_BYTES", 10)
    monkeypatch.setattr(
        CountingRun, "command", lambda _, folder: ["cp", str(tmp_path / "trace.json"), str(folder / "trace.json")]
    )
    (tmp_path / "trace.json").write_text('{"traceEvents": []}', encoding="utf-8")
    said: list[str] = []
    counting_run(("train.py",), None, said).count()
    assert said[1].startswith("reading a trace of 0 MB")
    assert "--step" in said[1]


COUNTING = """
import sys
from pathlib import Path
from ncuroof.collect import counting_run as counting
from tests.collect.test_counting_run import counting_run
counting._GRACE_S = float(sys.argv[3])
counting_run((sys.executable, "-c", sys.argv[2]), Path(sys.argv[1])).count()
"""
CLEANING = """
import os, time
try:
    print(os.getpid(), flush=True)
    time.sleep(1000)
finally:
    open("cleaned", "w").close()
"""
STUBBORN = "import os, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\ntime.sleep(1000)"


@pytest.mark.parametrize(("program", "grace_s", "cleans_up"), [(CLEANING, 10, True), (STUBBORN, 0.2, False)])
def test_a_signal_to_ncuroof_ends_the_program_and_leaves_no_files(
    tmp_path: Path, program: str, grace_s: float, cleans_up: bool
) -> None:
    nsys = tmp_path / "nsys"
    nsys.write_text('#!/bin/sh\nshift\nwhile case "$1" in --*) true ;; *) false ;; esac; do shift; done\nexec "$@"\n')
    nsys.chmod(0o755)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", COUNTING, str(nsys), program, str(grace_s)],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    number = int(process.stdout.readline())
    assert list(temporary.iterdir())
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    assert (tmp_path / "cleaned").exists() is cleans_up
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert not list(temporary.iterdir())


@pytest.mark.skipif(find_nsys(os.environ) is None, reason="nsys is not installed")
def test_nsys_itself_runs_a_program_that_uses_no_gpu(capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    program = (
        sys.executable,
        "-c",
        "import sys; print(sys.argv[1:]); raise SystemExit(3)",
        "a b",
        "$HOME",
        "--output=x",
    )
    assert counting_run(program, find_nsys(os.environ), said).count() == {}
    assert said[-1] == "nsys saw no kernel on a GPU: launches are not counted, and every launch is recorded"
    assert capfd.readouterr().out == "['a b', '$HOME', '--output=x']\n"
    assert run_nsys([str(find_nsys(os.environ)), "profile", "--no-such-option", "true"]) != 0
