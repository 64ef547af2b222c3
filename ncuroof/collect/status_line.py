"""A status line at the foot of the terminal that shows ncu's progress and makes way for the program's output."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass

from ncuroof.collect.progress import Progress

_CLEAR = b"\r\x1b[2K"
_MOST_NAME = 40
_SILENCE_S = 2.0
_LEAST_ESTIMATE_DONE = 2
"""Launches before the remaining time is estimated: the first one includes ncu's start."""


def progress_text(progress: Progress, elapsed_s: float, *, n_all: int | None = None) -> str:
    """Return the progress as one line: launches, kernel, passes, elapsed time, and remaining time where it can be estimated.

    Args:
        progress: how far ncu is.
        elapsed_s: time since the program started.
        n_all: number of planned launches, for when ncu does not say; None where not known.
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
        """Remove the line, and end a line that the program left unfinished, before others print."""
        self.clear()
        if not self._is_at_start:
            self._end_line()

    def _end_line(self) -> None:
        self.write(b"\n")
        self._is_at_start = True


def terminal_width(descriptor: int) -> int:
    """Return the number of columns of a terminal; if unknown, that of the usual terminal, or 80."""
    try:
        return os.get_terminal_size(descriptor).columns or 80
    except OSError:
        return shutil.get_terminal_size().columns
