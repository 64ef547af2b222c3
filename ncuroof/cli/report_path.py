"""Chooses the names of the report and the page that `ncuroof profile` writes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ncuroof.collect.programs import Program
from ncuroof.collect.recording import Recorder
from ncuroof.collect.report_paths import claimed, free_report
from ncuroof.errors import OutputError
from ncuroof.ncu.file_names import REPORT_SUFFIX

_SUFFIXES = (".py", ".pyw", ".sh", ".exe")
"""Suffixes of programs that a report's name drops; anything else after a dot may be a version."""


def wanted_report(output: Path | None, program: Program) -> Path | None:
    """Return the report's path, named after the program, here or in the folder `output`; None if `output` names the report."""
    if output is not None and not output.is_dir():
        return None
    words = program.words[program.script or 0 :]
    name = words[1] if words[0] == "-m" and len(words) > 1 else Path(words[0]).name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return (output or Path()) / f"{name or 'run'}{REPORT_SUFFIX}"


@contextlib.contextmanager
def in_a_place_of_its_own(recorder: Recorder, output: Path | None) -> Iterator[Recorder]:
    """Yield the recorder with a report's name that this run has claimed; if another run was faster, take the next free name.

    Raises:
        OutputError: the user chose the name, or --force, and another run has claimed it.
    """
    request = recorder.request
    wanted = wanted_report(output, recorder.program)
    with contextlib.ExitStack() as kept:
        while True:
            try:
                kept.enter_context(claimed(request.report))
                break
            except OutputError:
                if wanted is None or request.force:
                    raise
                request = replace(request, report=free_report(wanted))
        yield replace(recorder, request=request)


def page_to_be(recorder: Recorder) -> Path:
    """Return the path of the page; with ranks, the usual one, that of rank 0."""
    report = recorder.request.report
    return report.with_suffix(".rank0.html" if recorder.program.rank_variable else ".html")
