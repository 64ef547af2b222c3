"""Parses what ncu prints while it works into a state of progress."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

_PROFILING = re.compile(r'==PROF== Profiling "(?P<name>.*?)"(?: - (?P<number>\d+))?(?: \((?P<n>\d+)/(?P<m>\d+)\))?: ')
_PASSES = re.compile(r"100% - (?P<passes>\d+) pass(?:es)?")
_PERCENT = re.compile(r"(\d+)%(?!.*\d%)")
_REPORT = re.compile(r"==PROF== Report: (?P<path>.+)")
_EXIT_STATUS = re.compile(r"==ERROR== The application returned an error code \((\d+)\)")
_MARK = "=="
_CONNECTED = "==PROF== Connected to process"
_MESSAGE = re.compile(r"==(?:ERROR|WARNING)== .+")
_MOST_MESSAGES = 200
_MOST_LINE = 2**16
"""Characters of an unfinished line to keep: the program's output may come without line ends."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far ncu is.

    Attributes:
        kernel: name of the kernel that is being profiled, or was last.
        n_done: number of launches recorded.
        n_all: number of launches to record; None where ncu does not say.
        percent: completed passes of the current kernel, in percent.
        passes: number of passes of the last recorded launch.
        reports: paths of reports that ncu has written.
        exit_status: the program's, where ncu says that it is not 0.
        is_connected: ncu attached to a process that used CUDA.
        messages: ncu's errors and warnings, without repeats, at most the last `_MOST_MESSAGES`.
    """

    kernel: str | None = None
    n_done: int = 0
    n_all: int | None = None
    percent: int = 0
    passes: int | None = None
    reports: tuple[str, ...] = ()
    exit_status: int | None = None
    is_connected: bool = False
    messages: tuple[str, ...] = ()


@dataclass(slots=True)
class ProgressReader:
    """Reads ncu's messages as they arrive, including unfinished lines: ncu extends a kernel's line as its passes end.

    Attributes:
        state: the progress so far.
    """

    state: Progress = field(default_factory=Progress)
    _rest: str = ""

    def read(self, text: str) -> Progress:
        """Read the next piece of output and return the state."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._take(line.rstrip("\r"))
        self._rest = self._rest[-_MOST_LINE:]
        if match := _PROFILING.search(self._rest):
            self.state = _at(self.state, match, self._rest)
        return self.state

    def end(self) -> Progress:
        """Read the last line even if it is unfinished, and return the state."""
        rest, self._rest = self._rest, ""
        self._take(rest)
        return self.state

    def _take(self, line: str) -> None:
        if _MARK not in line:  # most lines are the program's
            return
        state = self.state
        if match := _PROFILING.search(line):
            state = _at(state, match, line)
            if done := _PASSES.search(line, match.end()):
                state = replace(state, n_done=state.n_done + 1, passes=int(done["passes"]), percent=100)
        if match := _REPORT.search(line):
            state = replace(state, reports=(*state.reports, match["path"].strip()))
        if match := _EXIT_STATUS.search(line):
            state = replace(state, exit_status=int(match[1]))
        if (match := _MESSAGE.search(line)) and match[0] not in state.messages:
            state = replace(state, messages=(*state.messages, match[0])[-_MOST_MESSAGES:])
        self.state = replace(state, is_connected=state.is_connected or _CONNECTED in line)


def _at(state: Progress, match: re.Match[str], line: str) -> Progress:
    percent = _PERCENT.search(line[match.end() :])
    return replace(
        state,
        kernel=match["name"],
        n_all=int(match["m"]) if match["m"] else state.n_all,
        percent=int(percent[1]) if percent else 0,
    )
