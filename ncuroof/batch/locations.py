"""Finds reports by files, folders and patterns, on any file system that fsspec knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ncuroof.errors import MissingExtraError, ReportNotFoundError

SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
"""Suffixes of reports in a folder; a file that is named explicitly may have any name."""

_MAGIC = frozenset("*?[")


def find_reports(wanted: Sequence[str]) -> list[str]:
    """Return the locations of reports without repeats, in the order of `wanted`, sorted within a folder or pattern.

    Args:
        wanted: paths or URLs of files, folders (all reports under them) and patterns, in which `**` is any number of folders. A
            file that does not exist is returned too, and fails when it is read.

    Raises:
        ReportNotFoundError: a folder or pattern contains no report.
        MissingExtraError: fsspec, or what it needs for a location, is not installed.
    """
    return list(dict.fromkeys(location for each in wanted for location in _found(each)))


def _found(wanted: str) -> Iterator[str]:
    is_pattern = bool(_MAGIC & set(wanted)) and not Path(wanted).exists()
    fs, path = file_system(wanted)
    if is_pattern:
        found = [name for name in fs.glob(path) if fs.isfile(name)]
    elif fs.isdir(path):
        found = [name for name in fs.find(path) if name.endswith(SUFFIXES)]
    else:
        yield wanted if "://" in wanted else str(Path(wanted).absolute())
        return
    if not found:
        raise ReportNotFoundError(
            f"{wanted}: expected reports, found none", hint=f"reports end in {', '.join(SUFFIXES)}"
        )
    yield from (str(fs.unstrip_protocol(name)) if "://" in wanted else str(name) for name in sorted(found))


def file_system(location: str) -> tuple[Any, str]:
    """Return the fsspec file system of a location, and its path there.

    Raises:
        MissingExtraError: fsspec, or what it needs for this kind of location, is not installed.
    """
    try:
        import fsspec  # noqa: PLC0415  only fleets need it
    except ImportError as error:
        raise MissingExtraError(
            f"datasets of reports need fsspec: {error}", hint="pip install 'ncuroof[fleet]'"
        ) from error
    try:
        fs, path = fsspec.url_to_fs(location if "://" in location else str(Path(location).absolute()))
    except (ImportError, ValueError) as error:
        raise MissingExtraError(
            f"{location}: {error}",
            hint="install the fsspec package for this kind of location, for example s3fs for s3://",
        ) from error
    return fs, path
