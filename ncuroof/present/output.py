"""Writes output files atomically, and never over a file that ncuroof did not write."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from pathlib import Path

from ncuroof.errors import OutputError
from ncuroof.present.formats import FORMATS
from ncuroof.temporary_files import remove_left_over, write_at_once

_BEGINNINGS = (
    *(beginning for form in FORMATS.values() for beginning in form.beginnings),
    b"#!/bin/sh\n# Written by ncuroof ",
)
"""First bytes of the results and scripts that ncuroof writes."""

_PAGE_BEGINNING, _PAGE_MARK = b"<!doctype html>", b'<meta name="generator" content="ncuroof'
"""First bytes of any HTML page, and the mark in the head of ours."""

_HEAD_BYTES = 4096

_PARQUET, _PARQUET_MARK = b"PAR1", b"ncuroof.schema"
"""First and last bytes of any Parquet file, and the mark in the footer of ours."""

_MOST_FOOTER_BYTES = 1 << 24
"""Bytes to read from the end of a Parquet file, where its footer is: that of our widest table takes 64 KiB per 262 144 rows."""


def page_beside(report: Path, *, is_part: bool = False) -> Path:
    """Return the path of a report's page: beside the report, with the suffix `.html`, for a part of the run `.part.html`."""
    return report.with_suffix(".part.html" if is_part else ".html")


def write_whole(path: Path, content: bytes, *, force: bool = False) -> Path:
    """Write `content` to `path` through a temporary file in the same folder, and return `path`.

    An existing file is replaced only if it is empty, if ncuroof wrote it, or with `force`. Character devices and pipes are
    written to directly.

    Raises:
        OutputError: the path cannot be written, or holds a file that ncuroof did not write; it is left unchanged.
    """
    try:
        if _is_stream(path):  # before symbolic links are resolved: /dev/stdout may link to a pipe without a name
            path.write_bytes(content)
        else:
            target = Path(os.path.realpath(path)) if path.is_symlink() else path
            refuse_foreign(target, force=force)
            remove_left_over(target.parent)
            write_at_once(target, content)
    except OutputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: the path contains a NUL
        reason = error.strerror if isinstance(error, OSError) else error
        raise OutputError(f"{path}: cannot be written: {reason}", hint="choose another place") from error
    return path


def check_place(path: Path, *, force: bool = False) -> None:
    """Raise what `write_whole` would, as far as that can be known before there is anything to write.

    Raises:
        OutputError: the folder does not exist or takes no files, or the path holds a file that ncuroof did not write.
    """
    try:
        if _is_stream(path):
            return
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        if not target.parent.is_dir():
            raise OutputError(
                f"{path}: cannot be written: {os.strerror(errno.ENOENT)}",
                hint=f"create its folder: mkdir -p {shlex.quote(str(target.parent))}",
            )
        if not os.access(target.parent, os.W_OK):
            raise OutputError(f"{path}: cannot be written: {os.strerror(errno.EACCES)}", hint="choose another place")
        refuse_foreign(target, force=force)
    except OutputError:
        raise
    except (OSError, ValueError) as error:  # such as a name that is too long, or contains a NUL
        reason = error.strerror if isinstance(error, OSError) else error
        raise OutputError(f"{path}: cannot be written: {reason}", hint="choose another place") from error


def _is_stream(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def refuse_foreign(path: Path, *, force: bool) -> None:
    """Raise an `OutputError` where `path` is a folder, a device or, unless `force`, a non-empty file that ncuroof did not write."""
    if path.is_dir():
        raise OutputError(f"{path}: is a directory", hint="name a file in it")
    if not path.exists():
        return
    if not path.is_file():
        raise OutputError(f"{path}: is a device or socket", hint="name a file")
    if force or path.stat().st_size == 0:
        return
    with path.open("rb") as existing:
        head = existing.read(_HEAD_BYTES)
        if head.startswith(_PARQUET):
            existing.seek(-min(path.stat().st_size, _MOST_FOOTER_BYTES), os.SEEK_END)
            is_ours = _PARQUET_MARK in _footer(existing.read())
        else:
            is_ours = _is_ours(head)
    if not is_ours:
        raise OutputError(
            f"{path}: exists, and nothing in it says that ncuroof wrote it",
            hint="choose another name, or add --force",
        )


def _footer(end: bytes) -> bytes:
    """Return the footer of a Parquet file from its last bytes: the footer's length precedes the final four bytes."""
    n_bytes = int.from_bytes(end[-8:-4], "little")
    return end[-8 - n_bytes : -8] if end.endswith(_PARQUET) else b""


def _is_ours(head: bytes) -> bool:
    return head.startswith(_BEGINNINGS) or (head.lower().startswith(_PAGE_BEGINNING) and _PAGE_MARK in head)
