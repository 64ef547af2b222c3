"""Reads the lines of a text that contains what ncu printed, without what other programs wrote around each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ncuroof.errors import ReportFormatError

_ENCODING_BY_MARK = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
_LONGEST_LINE = 1 << 22
"""In characters. A row with every counter of a full set has 30 000; with all instance values, a million."""

_ESCAPE = "\x1b"
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TIME = re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]")


def printed_lines(path: Path, where: str) -> Iterator[str]:
    """Yield the lines of a text file, in whichever encoding a shell's redirection wrote it (UTF-8, or UTF-16 with a mark).

    Colours of a terminal, and times that a system of continuous integration or containers writes before each line, are left out.

    Raises:
        ReportFormatError: a line is longer than any that ncu prints.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(3)
    encoding = next((name for mark, name in _ENCODING_BY_MARK.items() if start.startswith(mark)), "utf-8")
    with path.open(encoding=encoding, errors="replace") as text:
        while line := text.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE and not line.endswith("\n"):
                raise ReportFormatError(
                    f"{where}: expected a table printed by ncu, found a line of more than {_LONGEST_LINE} characters",
                    hint="pass a .ncu-rep file, or the output of ncu --import REPORT --page raw --csv",
                )
            yield _without_prefix(line)


def _without_prefix(line: str) -> str:
    if _ESCAPE in line:
        line = _COLOUR.sub("", line)
    time = _TIME.match(line) if line[:1] in "[12" else None
    return line[time.end() :] if time else line
