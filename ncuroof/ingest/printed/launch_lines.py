"""Find the lines that name a launch in ncu's terminal output, even if a terminal, an editor or a mail wrapped them.

    void ns::fn<int>(int, T1) (10, 20, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0

Summaries (`--print-summary`) end with the number of invocations; manually copied text may end after the shape.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from ncuroof.ingest.printed.records import INVOCATIONS

_LAUNCH = re.compile(
    r"(\S.*?)"
    r"(?:\s\((\d+,\s*\d+,\s*\d+)\)x\((\d+,\s*\d+,\s*\d+)\))?"
    r"(?:,\s\d{4}-\w{3}-\d{1,2}\s\d{1,2}:\d\d:\d\d)?"
    r"(?:,\sContext\s(\d+))?(?:,\sStream\s(\d+))?(?:,\sDevice\s(\d+),\sCC\s(\d+\.\d+))?(?:,\sInvocations\s(\d+))?$"
)
_OF_LAUNCH = ("Kernel Name", "Grid Size", "Block Size", "Context", "Stream", "Device", "CC", INVOCATIONS)
_LAST_WORDS = ("Context ", "Stream ", "CC ", f"{INVOCATIONS} ")
"""Words before the number at the end of a launch's line. Without one of them, the line ends with the bracket of a shape."""

_ENDS_WITHIN = re.compile(r"(?:,|, (?:Context|Stream|Device|CC|Invocations))$")
"""End of the first part of a line that was wrapped between two words, and lost the blank between them."""

_MAY_BE_ONE = re.compile(r"\(\d+, \d+, \d+\)x\(\d+, \d+, \d+\)|, Context \d|, Invocations \d")
"""A line that may name a launch but does not parse: what follows must not be assigned to the launch before."""

_NAME_ALONE = re.compile(r"\w\S*|.*[)>\]]")
"""What may come before a shape without a context: prose has several words."""

_SHAPE = re.compile(r"\(\d+,\s*\d+,\s*\d+\)x\(\d+,\s*\d+,\s*\d+\)")
_NOT_BRACKETS = re.compile(r"->|operator\s*(?:<=>|<<|>>|<=|>=|<|>|\(\))")

_MOST_LINES, _LONGEST = 30, 4000
"""Lines of a wrapped launch, and characters of each line. The longest names, of nested templates, have some thousand."""

_LEAST_WIDTH = 72
"""Columns of the narrowest terminal that is assumed to have wrapped a line. Terminals wrap lines within words."""


class LaunchLine(NamedTuple):
    """A launch that a line names.

    Attributes:
        identity: its cells, by column.
        is_continued: whether the line before already named the launch, and this line completes it.
    """

    identity: Mapping[str, str]
    is_continued: bool


class LaunchLines:
    """Finds launches line by line, and remembers the lines that may be the beginning of one."""

    def __init__(self) -> None:
        self._before: deque[str] = deque(maxlen=_MOST_LINES)
        self._n_since_launch: int | None = None

    def clear(self) -> None:
        """Forget the lines so far, so that the next line does not continue any of them."""
        self._before.clear()
        self._n_since_launch = None

    def take(self, line: str, *, is_in_table: bool) -> LaunchLine | None:
        """Return the launch that ends with a line, or None.

        Args:
            line: a line that is not blank, with its indent.
            is_in_table: whether the line comes after the header of a table; then it begins no wrapped line.
        """
        is_rest = bool(self._before) and _ENDS_WITHIN.search(self._before[-1]) is not None
        is_told = line[-1:].isdecimal() and (is_rest or any(word in line for word in _LAST_WORDS))
        may_end_one = is_told or line.endswith(")")
        found = self._found(line) if may_end_one else None
        if (is_in_table and not found) or len(line) > _LONGEST:
            self.clear()
        else:
            self._before.append(line)
        if self._n_since_launch is not None:
            self._n_since_launch += 1
        if found:
            self._n_since_launch = 1
        return found

    def _found(self, line: str) -> LaunchLine | None:
        joined = line
        loose: LaunchLine | None = None
        for n_before in range(len(self._before) + 1):
            if n_before:
                joined = _joined(self._before[-n_before], joined)
            cells = _cells(joined.strip())
            if cells is None:
                continue
            found = LaunchLine(
                cells, is_continued=self._n_since_launch is not None and n_before >= self._n_since_launch
            )
            is_cut = n_before < len(self._before) and _is_wrapped(self._before[-n_before - 1], joined)
            if _is_balanced(cells["Kernel Name"]) and not is_cut:
                return found
            loose = loose or (found if "Context" in cells and not _begins_inside(cells["Kernel Name"]) else None)
        return loose


def may_be_launch(text: str) -> bool:
    """Return whether a line resembles one that names a launch."""
    # Most lines contain neither, and a search of every line would take most of the time.
    return (")x(" in text or ", C" in text or ", I" in text) and _MAY_BE_ONE.search(text) is not None


def _cells(text: str) -> dict[str, str] | None:
    match = _LAUNCH.match(text)
    if match is None:
        return None
    cells = {name: cell for name, cell in zip(_OF_LAUNCH, match.groups(), strict=True) if cell}
    name = cells["Kernel Name"]
    if _begins_inside(name):
        return None
    is_told = "Context" in cells or INVOCATIONS in cells
    is_shaped = "Grid Size" in cells and _NAME_ALONE.fullmatch(name) is not None
    return cells if is_told or is_shaped else None


def _begins_inside(name: str) -> bool:
    """Return whether what precedes the context is not a name but the rest of a wrapped line."""
    return _SHAPE.match(name) is not None or name.startswith(("Context ", "Stream ", "Device ", "CC ", ","))


def _is_balanced(name: str) -> bool:
    """Return whether no bracket closes that the name does not open."""
    depth = {"(": 0, "<": 0, "[": 0}
    opening = {")": "(", ">": "<", "]": "["}
    for character in _NOT_BRACKETS.sub("", name):
        if character in depth:
            depth[character] += 1
        elif character in opening:
            depth[opening[character]] -= 1
            if depth[opening[character]] < 0:
                return False
    return True


def _is_wrapped(before: str, line: str) -> bool:
    """Return whether a terminal wrapped a line: its first part is indented and wide, and the rest is not indented."""
    return len(before) >= _LEAST_WIDTH and before[:1].isspace() and not line[:1].isspace()


def _joined(before: str, line: str) -> str:
    if _is_wrapped(before, line) and not _ENDS_WITHIN.search(before):
        return before + line
    is_close = before.rstrip().endswith(("(", "<", ":")) or line.lstrip().startswith((")", ">", ",", ":"))
    return f"{before.rstrip()}{'' if is_close else ' '}{line.strip()}"
