"""Recognises the output of profilers that say nothing of what a kernel does inside.

Source: `profiles/printed.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncuroof.errors import ReportFormatError
from ncuroof.resources import profile_file


def error_of_other_tool(lines: Iterable[str], name: str) -> ReportFormatError | None:
    """Return the error for the output of another profiler; None if the text is of none that is known.

    Args:
        lines: the lines of the file.
        name: the file's name.
    """
    with profile_file("printed.toml") as raw:
        tools = [(re.compile(tool["pattern"]), tool) for tool in raw["other_tool"]]
    for line in lines:
        for pattern, tool in tools:
            if pattern.match(line):
                return ReportFormatError(
                    f"{name}: expected an Nsight Compute report or output of ncu, found output of {tool['name']}",
                    hint=tool["hint"],
                )
    return None
