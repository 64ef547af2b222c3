"""The gate that each file passes before it is opened: reading a pipe or a device may never end, and a sparse file has any size."""

from __future__ import annotations

import os
import stat
from pathlib import Path

LARGEST_BYTES = 1 << 36
"""64 GiB. A report of 10 000 launches with a full set has 2 GB."""


def oddity(status: os.stat_result, *, most_bytes: int = LARGEST_BYTES) -> str | None:
    """Return what a path leads to if that cannot be read as a file: "a directory", "a pipe or device"; None if it can.

    Args:
        status: of the path, links followed.
        most_bytes: size of the largest file that can be meant.
    """
    if stat.S_ISDIR(status.st_mode):
        return "a directory"
    if not stat.S_ISREG(status.st_mode):
        return "a pipe or device"
    if status.st_size > most_bytes:
        return f"a file of {status.st_size} bytes, larger than any"
    return None


def head(path: Path, n_bytes: int) -> bytes:
    """Return the first bytes of a file; none of an empty one, which is not opened: files of /proc may never end.

    Raises:
        OSError: the file cannot be read.
    """
    if path.stat().st_size == 0:
        return b""
    with path.open("rb") as file:
        return file.read(n_bytes)
