"""Find the path of a report: in a folder that can be written to, with a free name that no other run is recording to."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ncuroof.collect.arguments import files_of_ranks
from ncuroof.errors import OutputError
from ncuroof.ncu.file_names import REPORT_SUFFIX, REPORT_SUFFIXES, without_suffix
from ncuroof.sidecars.counts import counts_path

_CLAIM = ".recording"
"""Suffix of the empty file beside a report while it is recorded."""


def check_folder(report: Path) -> None:
    """Check, before anything runs, that a report can be written.

    Raises:
        OutputError: the path is a folder, or its folder does not exist or cannot be written to.
    """
    folder = report.parent
    if not folder.is_dir():
        raise OutputError(f"{folder}: is not a folder", hint="create it, or choose another with -o")
    if report.is_dir():
        raise OutputError(f"{report}: is a folder", hint="choose another name with -o")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be written to: {error.strerror}", hint="choose another folder with -o"
        ) from error


def report_named(name: Path) -> Path:
    """Return the report's path for a name that a user gives with or without ncu's suffix."""
    return name.with_name(f"{without_suffix(name.name)}{REPORT_SUFFIX}")


def free_report(wanted: Path) -> Path:
    """Return the first free path: `train.ncu-rep`, else `train-2.ncu-rep`, and so on."""
    number, path = 1, wanted
    while _is_taken(path):
        number += 1
        path = wanted.with_name(f"{without_suffix(wanted.name)}-{number}{REPORT_SUFFIX}")
    return path


def _is_taken(report: Path) -> bool:
    places = (*_possible_paths(report), counts_path(report), _claim_of(report))
    return any(place.exists() for place in places) or bool(existing_reports(report, of_ranks=True))


def _possible_paths(report: Path) -> list[Path]:
    return [report.with_name(without_suffix(report.name) + suffix) for suffix in REPORT_SUFFIXES]


@contextlib.contextmanager
def claimed(report: Path) -> Iterator[None]:
    """Claim a report's name for this run. Without claims, the second of two runs at once would lose its recording, as ncu refuses.

    Raises:
        OutputError: another run has claimed the name.
    """
    claim = _claim_of(report)
    try:
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        raise OutputError(
            f"{claim}: another run is recording {report.name}, or was killed while recording it",
            hint=f"choose another name with -o, or delete {claim.name}",
        ) from None
    except OSError:  # the folder cannot be written to; check_folder says so
        yield
        return
    try:
        yield
    finally:
        claim.unlink(missing_ok=True)


def _claim_of(report: Path) -> Path:
    return report.with_name(report.name + _CLAIM)


def existing_reports(report: Path, *, of_ranks: bool) -> list[tuple[int | None, Path]]:
    """Return the existing reports for a path, each with its rank, or None for a program without ranks.

    Plain and compressed reports are returned, because which of them ncu writes depends on its version.
    """
    if not of_ranks:
        return [(None, path) for path in _possible_paths(report) if path.is_file()]
    exists = list(report.parent.iterdir()) if report.parent.is_dir() else []
    return [
        found
        for suffix in REPORT_SUFFIXES
        for found in files_of_ranks(without_suffix(report.name), suffix, exists).items()
    ]
