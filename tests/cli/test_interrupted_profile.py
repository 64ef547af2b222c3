"""`ncuroof profile` where ncu does not live to close its report: nothing half-written stays, and an earlier report comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ncuroof.cli.recorded import holds_kernel, show_recorded
from ncuroof.collect.recording import Recording
from ncuroof.errors import OutputError
from tests.collect.making import DEMO, ROOT
from tests.support.patience import PATIENCE_S
from tests.support.stand_in_ncu import VERSION

WHOLE = DEMO.read_bytes()
HALF = len(WHOLE) // 2
"""Bytes of the demo that hold several complete kernels and a part of the next."""

NONE = 3000
"""Bytes of the demo before the end of its first kernel."""

DYING = f"""#!/bin/sh
case "$*" in *--version*) echo "{VERSION}"; exit ;; esac
while [ "$1" != --export ]; do shift; done
head -c "$BYTES" "{DEMO}" > "$2.ncu-rep"
[ -z "$KILLED" ] || kill -9 $$
exec sleep 60
"""


def profiled(folder: Path, n_bytes: int, *options: str, is_killed: bool = False) -> tuple[int, str, str]:
    """Run `ncuroof profile` with an ncu that leaves so many bytes and is then interrupted or killed; return its end."""
    ncu = folder / "ncu"
    ncu.write_text(DYING, encoding="utf-8")
    ncu.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NCUROOF_NCU": str(ncu), "BYTES": str(n_bytes)}
    environment["KILLED"] = "yes" if is_killed else ""
    words = ("profile", "--no-per-shape", *options, "-o", "run", "--", "/bin/true")
    process = subprocess.Popen(
        [sys.executable, "-m", "ncuroof", *words],
        cwd=folder,
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + PATIENCE_S
    while not is_killed and not _has_size(folder / "run.ncu-rep", n_bytes):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    if not is_killed:
        os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output, errors


def _has_size(path: Path, n_bytes: int) -> bool:
    return path.exists() and path.stat().st_size == n_bytes


def _left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("run*"))


@pytest.mark.long
def test_a_report_without_a_complete_kernel_does_not_stay(tmp_path: Path) -> None:
    code, _, said = profiled(tmp_path, NONE)
    assert code == 130
    assert said.endswith("\nncuroof: interrupted\n")
    assert _left(tmp_path) == []


@pytest.mark.long
def test_the_earlier_report_comes_back(tmp_path: Path) -> None:
    (tmp_path / "run.ncu-rep").write_bytes(WHOLE)
    (tmp_path / "run.counts.json").write_text("{}", encoding="utf-8")
    code, _, _ = profiled(tmp_path, NONE, "--force")
    assert code == 130
    assert (tmp_path / "run.ncu-rep").read_bytes() == WHOLE
    assert _left(tmp_path) == ["run.counts.json", "run.ncu-rep"]


@pytest.mark.long
def test_complete_kernels_are_kept_and_shown(tmp_path: Path) -> None:
    code, output, said = profiled(tmp_path, HALF)
    assert code == 130
    assert "report: run.ncu-rep" in output
    assert "run.ncu-rep is damaged" in said
    assert _left(tmp_path) == ["run.html", "run.ncu-rep"]


@pytest.mark.long
def test_a_page_that_cannot_be_written_changes_no_exit_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.ncu-rep").write_bytes(WHOLE)
    Path("run.html").write_text("precious", encoding="utf-8")
    recording = Recording((Path("run.ncu-rep"),), 0, is_interrupted=True, counts=None, messages=())
    assert show_recorded(recording, force=False, quiet=True, no_color=True) == 130
    assert "run.html: exists, and nothing in it says that ncuroof wrote it" in capfd.readouterr().err
    with pytest.raises(OutputError):
        show_recorded(replace(recording, is_interrupted=False), force=False, quiet=True, no_color=True)


@pytest.mark.long
@pytest.mark.parametrize("is_forced", [False, True])
def test_a_killed_ncu_leaves_no_half_report_either(tmp_path: Path, is_forced: bool) -> None:
    if is_forced:
        (tmp_path / "run.ncu-rep").write_bytes(WHOLE)
    code, _, said = profiled(tmp_path, NONE, *(["--force"] if is_forced else []), is_killed=True)
    assert code == 1
    assert "ncu ended with status -9 before a kernel was complete in its report, which was deleted" in said
    assert _left(tmp_path) == (["run.ncu-rep"] if is_forced else [])
    assert not is_forced or (tmp_path / "run.ncu-rep").read_bytes() == WHOLE


def test_an_unclear_report_counts_as_one_with_a_kernel(tmp_path: Path) -> None:
    for name, content, expected in (("none", WHOLE[:NONE], False), ("half", WHOLE[:HALF], True), ("empty", b"", False)):
        (tmp_path / name).write_bytes(content)
        assert holds_kernel(tmp_path / name) is expected, name
    assert holds_kernel(tmp_path / "not there")
