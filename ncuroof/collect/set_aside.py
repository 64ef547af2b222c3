"""Making room for a report without losing the one that it replaces."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ncuroof.errors import OutputError

_ASIDE = ".before"
"""Ends the name of a file while another one takes its place."""


@contextlib.contextmanager
def set_aside(paths: Sequence[Path], *, is_replaced: Callable[[], bool]) -> Iterator[None]:
    """Move files out of the way; delete them when the block is done, and move them back where it fails.

    Args:
        paths: of the files.
        is_replaced: whether there is something in their place. Where the block fails though there is, they stay where they are.

    Raises:
        OutputError: a file cannot be moved, or an earlier one was set aside and never came back; all are where they were.
    """
    aside_by_path = {path: path.with_name(path.name + _ASIDE) for path in paths}
    for aside in aside_by_path.values():
        if aside.exists():
            raise OutputError(
                f"{aside}: left behind by a run that was killed", hint="rename it to keep it, or delete it"
            )
    with contextlib.ExitStack() as moved_back:
        for path, aside in aside_by_path.items():
            try:
                path.replace(aside)
            except OSError as error:
                raise OutputError(
                    f"{path}: cannot be replaced: {error.strerror}", hint="choose another name with -o"
                ) from error
            moved_back.callback(aside.replace, path)
        try:
            yield
        except BaseException:
            if is_replaced():
                moved_back.pop_all()
            raise
        moved_back.pop_all()
    for aside in aside_by_path.values():
        aside.unlink(missing_ok=True)
