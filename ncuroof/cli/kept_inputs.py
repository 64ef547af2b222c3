"""Keeps a command from overwriting its own inputs, even with --force."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ncuroof.cli.file_option import STANDARD_OUTPUT
from ncuroof.errors import OutputError
from ncuroof.sidecars.counts import counts_path


def keep_inputs(outputs: Iterable[str | Path | None], inputs: Iterable[Path]) -> None:
    """Refuse outputs that are inputs: the same file, also through a link, a report's counts, or a file in an input folder.

    Raises:
        OutputError: an output is an input; nothing has been written.
    """
    read = [path for named in inputs if named.name for path in (named, counts_path(named))]
    for output in (Path(name) for name in outputs if name not in (None, STANDARD_OUTPUT)):
        if any(_is_same_or_within(output, path) for path in read):
            raise OutputError(
                f"{output}: is an input of this command and would be overwritten",
                hint="choose another name; --force never overwrites an input",
            )


def _is_same_or_within(output: Path, path: Path) -> bool:
    try:
        if path.is_dir():
            return output.exists() and path.resolve() in output.resolve().parents
        return output.samefile(path)
    except (OSError, ValueError):  # one of them does not exist, or cannot be a path
        return False
