"""The cell magic `%%ncuroof` of notebooks: profiles the cell as a script in a separate process, and shows the analysis.

It runs `ncuroof profile`, so options and errors are those of the command. The process of the notebook, which may hold a GPU
context, is not affected.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ncuroof.analysis import Analysis
from ncuroof.errors import NcuroofError
from ncuroof.temporary_files import temporary_folder

_SCRIPT = "cell.py"
_REPORT = "report: "
"""Start of the lines in which `ncuroof profile` names its reports."""


def load_ipython_extension(shell: Any) -> None:
    """Register the magic; `%load_ext ncuroof` calls this.

    Args:
        shell: the running IPython shell.
    """
    shell.register_magic_function(profiled, magic_kind="cell", magic_name="ncuroof")


def profiled(line: str, cell: str) -> Analysis | None:
    """Profile a cell as a separate script, which does not see the notebook's variables.

        %%ncuroof -k gemm
        import torch
        a = torch.rand(4096, 4096, device="cuda")
        a @ a

    Args:
        line: options of `ncuroof profile`; with `-o FILE`, the report is kept.
        cell: the script; it imports from the working directory as the notebook does.

    Returns:
        The analysis, which the notebook shows; None if nothing was recorded, after an error is printed.
    """
    with temporary_folder() as folder:
        script = folder / _SCRIPT
        script.write_text(cell, encoding="utf-8")
        try:
            options = shlex.split(line)
        except ValueError as error:
            print(f"ncuroof: {line!r} cannot be split into words: {error}", file=sys.stderr)  # noqa: T201
            return None
        words = ["profile", "--record-only", "-o", str(folder), *options, str(script)]
        reports = _run([sys.executable, "-m", "ncuroof", *words])
        return _read(reports) if reports else None


def _run(command: Iterable[str]) -> list[str]:
    """Run a command, forward its output and interrupts, and return the reports that it names."""
    paths = (os.getcwd(), os.environ.get("PYTHONPATH", ""))  # noqa: PTH109  as text
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    reports = []
    with subprocess.Popen(  # noqa: S603  its own interpreter
        [*command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    ) as process:
        while process.stdout is not None:
            try:
                if not (said := process.stdout.readline()):
                    break
            except KeyboardInterrupt:  # the command then shows what it has recorded so far
                process.send_signal(signal.SIGINT)
                continue
            if said.startswith(_REPORT) and Path(said.removeprefix(_REPORT).rstrip("\n")).is_file():
                reports.append(said.removeprefix(_REPORT).rstrip("\n"))
            else:
                print(said, end="", flush=True)  # noqa: T201  the notebook's own stream
    return reports


def _read(reports: list[str]) -> Analysis | None:
    from ncuroof import read  # noqa: PLC0415  only once there is something to read

    try:
        return read(reports).analyse()
    except NcuroofError as error:
        print(f"ncuroof: {error}\n  hint: {error.hint}", file=sys.stderr)  # noqa: T201
        return None
