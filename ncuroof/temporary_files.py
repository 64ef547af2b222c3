"""Temporary files and folders that are removed even if the program is killed.

They are removed after use, even after an interrupt. A process that is killed cannot remove them, but its lock on them ends with it.
So the next program that writes beside them can tell that they are left over, and removes them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

_PREFIX, _LOCK = "ncuroof-", ".ncuroof-lock"
"""Prefix of folders, and name of the locked file in them. A folder without this file is not ours, whatever its name."""

_FILE_PREFIX, _FILE_SUFFIX = ".ncuroof-", ".part"
_FIRST_OF_FILES = 3
"""First descriptor that is not a standard stream."""

_LOCKED_AFTER_S = 3.0
"""Age below which a file may belong to a process that is about to lock it."""


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new private folder, which is removed after the block. First remove folders that killed processes left."""
    for entry in _entries(Path(tempfile.gettempdir())):
        if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
            _remove_if_left_over(Path(entry.path, _LOCK), entry.path)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name, _held(Path(name, _LOCK)):
        yield Path(name)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Create a file and hold its lock. It never gets the descriptor of a closed standard stream, so no program prints into it."""
    path.touch()
    if fcntl is None:
        yield
        return
    with path.open("rb") as file:
        handle = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_OF_FILES)
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)


def write_at_once(path: Path, content: bytes) -> None:
    """Write a file atomically, through a temporary file beside it; an existing file keeps its permissions.

    Raises:
        OSError: the file cannot be written; nothing is left of it.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_FILE_PREFIX, suffix=_FILE_SUFFIX)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            _lock(file.fileno())
            file.write(content)
        temporary.chmod(_mode(path))
        temporary.replace(path)
    except BaseException:  # also on an interrupt
        temporary.unlink(missing_ok=True)
        raise


def remove_left_over(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder, as far as possible."""
    for entry in _entries(folder):
        is_ours = entry.name.startswith(_FILE_PREFIX) and entry.name.endswith(_FILE_SUFFIX)
        if is_ours and entry.is_file(follow_symlinks=False):
            _remove_if_left_over(Path(entry.path), entry.path)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        yield from entries


def _mode(path: Path) -> int:
    """Return the permissions of the existing file, or those of a new file under the umask."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _lock(handle: int) -> bool:
    """Lock an open file; return whether this process holds the lock now."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process holds the lock, or the file system has no locks
        return False
    return True


def _unfollowed(path: str, flags: int) -> int:
    """Open a file that a different user may have created, without following links or waiting for a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _remove_if_left_over(locked: Path, whole: str) -> None:
    """Remove a file or folder if it is ours and no process has locked it.

    Args:
        locked: the file that its process locks.
        whole: what to remove: the file, or its folder.
    """
    with contextlib.suppress(OSError), open(locked, "rb", opener=_unfollowed) as file:
        found = os.fstat(file.fileno())
        is_old = time.time() - found.st_mtime > _LOCKED_AFTER_S
        if fcntl is not None and is_old and found.st_uid == os.getuid() and _lock(file.fileno()):
            shutil.rmtree(whole) if whole != str(locked) else locked.unlink()
