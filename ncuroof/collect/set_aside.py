"""Making room for a report without losing the one that it replaces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ncuroof.errors import OutputError

_ASIDE = ".before"
"""Ends the name of a file while another one takes its place."""


@contextlib.contextmanager
def set_aside(paths: Sequence[Path]) -> Iterator[None]:
    """Move files out of the way; delete them when the block is done, and move them back where it fails.

    Raises:
        OutputError: a file cannot be moved; all are where they were.
    """
    with contextlib.ExitStack() as moved_back:
        for path in paths:
            aside = path.with_name(path.name + _ASIDE)
            try:
                path.replace(aside)
            except OSError as error:
                raise OutputError(
                    f"{path}: cannot be replaced: {error.strerror}", hint="choose another name with -o"
                ) from error
            moved_back.callback(aside.replace, path)
        yield
        moved_back.pop_all()
    for path in paths:
        path.with_name(path.name + _ASIDE).unlink(missing_ok=True)
