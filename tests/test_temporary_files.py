"""Temporary files and folders: gone after their block, after an error, and after their process was killed; others' stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ncuroof import temporary_files
from ncuroof.temporary_files import remove_left_over, temporary_folder, write_at_once
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no locks of this kind")

HOLDS_A_FOLDER = """
import time
from ncuroof.temporary_files import temporary_folder
with temporary_folder() as folder:
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary_files, "_LOCKED_AFTER_S", 0)
    return tmp_path


def test_a_folder_is_gone_after_its_block_and_after_an_error(place: Path) -> None:
    with pytest.raises(KeyboardInterrupt), temporary_folder() as folder:  # noqa: PT012
        (folder / "file").touch()
        raise KeyboardInterrupt
    assert not list(place.iterdir())


def test_a_folder_stays_while_its_process_lives_and_goes_when_it_was_killed(place: Path) -> None:
    words = [sys.executable, "-c", HOLDS_A_FOLDER]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(place)}) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        time.sleep(0.01)  # so that it is older than no time at all
        with temporary_folder():
            assert theirs.is_dir()
        process.kill()
        process.wait(PATIENCE_S)
        assert theirs.is_dir()
        with temporary_folder():
            assert not theirs.exists()


def test_folders_of_users_stay_whatever_their_name(place: Path) -> None:
    theirs = place / "ncuroof-results"
    theirs.mkdir()
    (place / ".ncuroof-notes").touch()
    with temporary_folder():
        pass
    remove_left_over(place)
    assert {path.name for path in place.iterdir()} == {"ncuroof-results", ".ncuroof-notes"}


def test_a_file_left_half_written_is_removed_and_a_link_is_not_followed(place: Path) -> None:
    (place / ".ncuroof-abc.part").write_bytes(b"half")
    (place / "precious").write_bytes(b"whole")
    (place / ".ncuroof-link.part").symlink_to(place / "precious")
    time.sleep(0.01)
    remove_left_over(place)
    assert {path.name for path in place.iterdir()} == {"precious", ".ncuroof-link.part"}


def test_a_file_that_cannot_be_written_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_at_once(place / "out", b"content")
    assert not list(place.iterdir())


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="has no such signal")
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_command_that_is_ended_leaves_nothing(place: Path, ending: str) -> None:
    program = (
        "import os, signal, sys; from ncuroof.cli import program\n"
        "from ncuroof.temporary_files import temporary_folder\n"
        # A shell may have the tests, and so what they start, ignore signals: nohup does, and a command in the background.
        f"signal.signal(signal.{ending}, signal.default_int_handler if '{ending}' == 'SIGINT' else signal.SIG_DFL)\n"
        "def ends(*_, **__):\n"
        "    with temporary_folder():\n"
        f"        signal.raise_signal(signal.{ending})\n"
        "program.program.main = ends\n"
        "program.main([])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TMPDIR": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "ncuroof: interrupted\n")
    assert not list(place.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_a_lock_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user can make one in a folder for temporary files that all share."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "ncuroof-x").mkdir()
    os.mkfifo(tmp_path / "ncuroof-x" / ".ncuroof-lock")
    with temporary_folder() as folder:
        assert folder.is_dir()
