"""Running the program in the process of the tests."""

from __future__ import annotations

from pathlib import Path

from ncuroof.cli import main


def run_main(*arguments: str | Path) -> int:
    """Run the program in this process and return its exit code; output is for capfd."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as exited:
        return int(exited.code or 0)
    return 0
