"""Parse ncu's progress from its messages, and show it in the last line of the terminal.

The line makes way for the program's output.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
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

_CLEAR = b"\r\x1b[2K"
_MOST_NAME = 40
_SILENCE_S = 2.0
_LEAST_ESTIMATE_DONE = 2
"""Launches before the remaining time is estimated: the first one includes ncu's start."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far ncu is.

    Attributes:
        kernel: name of the kernel that is being profiled, or was last.
        n_done: number of launches recorded.
        n_all: number of launches to record; None if ncu does not say.
        percent: completed passes of the current kernel, in percent.
        passes: number of passes of the last recorded launch.
        reports: paths of reports that ncu has written.
        exit_status: exit status of the program, if ncu says that it is not 0.
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


def progress_text(progress: Progress, elapsed_s: float, *, n_all: int | None = None) -> str:
    """Return the progress as one line: launches, kernel, passes, elapsed time, and remaining time if it can be estimated.

    Args:
        progress: how far ncu is.
        elapsed_s: time since the program started.
        n_all: number of planned launches, used if ncu does not say; None if unknown.
    """
    expected = progress.n_all or n_all
    parts = [f"{progress.n_done} of {expected} launches" if expected else f"{progress.n_done} launches"]
    if progress.kernel is not None:
        parts.append(
            _printable(progress.kernel)[:_MOST_NAME] + (f" {progress.percent} %" if progress.percent < 100 else "")
        )
    if progress.passes is not None:
        parts.append(f"{progress.passes} passes")
    parts.append(clock(elapsed_s))
    if expected and _LEAST_ESTIMATE_DONE <= progress.n_done < expected:
        parts.append(f"about {clock(elapsed_s / progress.n_done * (expected - progress.n_done))} left")
    return "profiling " + " · ".join(parts)


def clock(seconds: float) -> str:
    """Return a time as m:ss, or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


@dataclass(slots=True)
class StatusLine:
    """Draws the status line while the cursor is at the start of a line, or after it has been elsewhere for `_SILENCE_S`.

    The program's own progress bar leaves the cursor behind the bar, and ncu may then work for seconds before the bar changes.

    Attributes:
        write: writes bytes to the terminal.
        width: of the terminal, in columns.
        now_s: returns a monotonic time, in s.
    """

    write: Callable[[bytes], object]
    width: int
    now_s: Callable[[], float] = time.monotonic
    _text: str = ""
    _is_drawn: bool = False
    _is_at_start: bool = True
    _printed_s: float = 0.0

    def show(self, text: str) -> None:
        """Replace the line's text."""
        self._text = text
        if not self._is_at_start and self.now_s() - self._printed_s > _SILENCE_S:
            self._end_line()
        if self._is_at_start:
            self.write(_CLEAR + self._text[: self.width - 1].encode(errors="replace"))
            self._is_drawn = True

    def between(self, chunk: bytes, write: Callable[[bytes], object]) -> None:
        """Print the program's output above the line."""
        self.clear()
        write(chunk)
        self._is_at_start, self._printed_s = chunk.endswith(b"\n"), self.now_s()
        if self._text:
            self.show(self._text)

    def clear(self) -> None:
        """Remove the line."""
        if self._is_drawn:
            self.write(_CLEAR)
            self._is_drawn = False

    def end(self) -> None:
        """Remove the line, and end a line that the program left unfinished."""
        self.clear()
        if not self._is_at_start:
            self._end_line()

    def _end_line(self) -> None:
        self.write(b"\n")
        self._is_at_start = True


def terminal_width(descriptor: int) -> int:
    """Return the number of columns of a terminal; if unknown, that of the standard terminal, or 80."""
    try:
        return os.get_terminal_size(descriptor).columns or 80
    except OSError:
        return shutil.get_terminal_size().columns
