"""Writing output: whole or not at all, and never over a file that ncuroof did not write."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from ncuroof.errors import OutputError

_MARKS = (b'<meta name="generator" content="ncuroof', b'"schema": "ncuroof.', b"<!-- ncuroof ")
"""What the beginning of our own pages, documents and Markdown holds."""

_HEAD_BYTES = 4096


def write_whole(path: Path, content: bytes, *, force: bool = False) -> Path:
    """Write `content` to `path` through a temporary file beside it, and return `path`.

    A file that is there is replaced only if it is empty, if ncuroof wrote it, or with `force`. Devices and pipes are
    written to directly.

    Raises:
        OutputError: the path cannot be written, or holds someone else's file; it is left as it was.
    """
    target = path.resolve() if path.is_symlink() else path
    try:
        if _is_stream(target):
            target.write_bytes(content)
        else:
            _refuse_foreign(target, force=force)
            _replace(target, content)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written: {error.strerror or error}", hint="choose another place with -o FILE"
        ) from error
    return path


def _is_stream(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _refuse_foreign(path: Path, *, force: bool) -> None:
    if path.is_dir():
        raise OutputError(f"{path}: is a directory", hint="name a file in it")
    if force or not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as existing:
        head = existing.read(_HEAD_BYTES)
    if not any(mark in head for mark in _MARKS):
        raise OutputError(
            f"{path}: exists, and ncuroof did not write it",
            hint="choose another name with -o, or add --force",
        )


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        temporary.chmod(_mode(path))
        temporary.replace(path)
    except BaseException:  # an interrupt leaves nothing half-written either
        temporary.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """Return the permissions that the file has, or that a new file gets."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
