"""Running the program in the process of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ncuroof.cli import main
from tests.support.patience import PATIENCE_S


def run_main(*arguments: str | Path) -> int:
    """Run the program in this process and return its exit code; output is for capfd."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as exited:
        return int(exited.code or 0)
    return 0


def run_with_closed_output(*arguments: str | Path) -> tuple[int, bytes]:
    """Run the program with its standard output closed and return its exit code and what it says on standard error."""
    words = " ".join(f"'{word}'" for word in (sys.executable, "-m", "ncuroof", *arguments))
    path = os.pathsep.join(each or "." for each in sys.path)
    done = subprocess.run(
        ["bash", "-c", f"{words} >&-"],
        capture_output=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    return done.returncode, done.stderr
