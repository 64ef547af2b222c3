"""Makes room for a report without losing the one that it replaces."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ncuroof.errors import OutputError

_ASIDE = ".before"
"""Suffix of a file that was moved aside."""


@contextlib.contextmanager
def set_aside(paths: Sequence[Path], *, is_replaced: Callable[[], bool]) -> Iterator[None]:
    """Move files aside for the length of a block; delete them when it succeeds, and move them back when it fails.

    Args:
        paths: of the files.
        is_replaced: returns whether something has taken their place. If the block fails although it has, they stay aside.

    Raises:
        OutputError: a file cannot be moved, or one set aside by an earlier run is still there; no file stays moved.
    """
    aside_by_path = {path: path.with_name(path.name + _ASIDE) for path in paths}
    for aside in aside_by_path.values():
        if aside.exists():
            raise OutputError(
                f"{aside}: left behind by an earlier run that failed or was killed",
                hint="rename it to keep it, or delete it",
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
