"""Check files before they are opened: reading a pipe or a device may never end, and a sparse file may have any size."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ncuroof.errors import ReportNotFoundError

_LARGEST_BYTES = 1 << 36
"""64 GiB. A report of 10 000 launches with a full set has 2 GB."""


def oddity(status: os.stat_result) -> str | None:
    """Return what is wrong with a path that is not a readable file: "a directory", "a pipe or device"; None if it is one.

    Args:
        status: status of the path, with links followed.
    """
    if stat.S_ISDIR(status.st_mode):
        return "a directory"
    if not stat.S_ISREG(status.st_mode):
        return "a pipe or device"
    if status.st_size > _LARGEST_BYTES:
        return f"a file of {status.st_size} bytes, larger than any"
    return None


def no_report(where: str) -> ReportNotFoundError:
    """Return the error for a missing report."""
    return ReportNotFoundError(f"{where}: no such file", hint="check the path; ncu -o NAME writes NAME.ncu-rep")


def require_existing(reports: Iterable[Path]) -> None:
    """Raise an error for the first missing report, before the slow imports of the reader.

    Raises:
        ReportNotFoundError: a report does not exist.
    """
    for path in reports:
        if path.name not in ("", "-") and not os.path.lexists(path):
            raise no_report(str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def head(path: Path, n_bytes: int) -> bytes:
    """Return the first bytes of a file. An empty file is not opened, because files of /proc, which seem empty, may never end.

    Raises:
        OSError: the file cannot be read.
    """
    if path.stat().st_size == 0:
        return b""
    with path.open("rb") as file:
        return file.read(n_bytes)
