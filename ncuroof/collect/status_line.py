"""A line at the foot of the terminal that says how far ncu is, and gives way to what the program prints."""

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
"""Launches after which a time per launch says anything: the first holds ncu's own start."""


def progress_text(progress: Progress, elapsed_s: float, *, n_all: int | None = None) -> str:
    """Return the state in a line: launches, kernel, passes, time, and what is left where it can be told.

    Args:
        progress: how far ncu is.
        elapsed_s: since the program began.
        n_all: launches to record, where ncu does not say and the plan knows.
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
    """Draws on a terminal, where its cursor stands at the beginning of a line, or has stood elsewhere for a while.

    A bar of progress of the program's own leaves it behind the bar; ncu then works for seconds before the next one.

    Attributes:
        write: writes bytes to the terminal.
        width: of the terminal, in columns.
        now_s: tells the time.
    """

    write: Callable[[bytes], object]
    width: int
    now_s: Callable[[], float] = time.monotonic
    _text: str = ""
    _is_drawn: bool = False
    _is_at_start: bool = True
    _printed_s: float = 0.0

    def show(self, text: str) -> None:
        """Show another text."""
        self._text = text
        if not self._is_at_start and self.now_s() - self._printed_s > _SILENCE_S:
            self._end_line()
        if self._is_at_start:
            self.write(_CLEAR + self._text[: self.width - 1].encode(errors="replace"))
            self._is_drawn = True

    def between(self, chunk: bytes, write: Callable[[bytes], object]) -> None:
        """Pass on what the program printed, above the line."""
        self.clear()
        write(chunk)
        self._is_at_start, self._printed_s = chunk.endswith(b"\n"), self.now_s()
        if self._text:
            self.show(self._text)

    def clear(self) -> None:
        """Take the line away."""
        if self._is_drawn:
            self.write(_CLEAR)
            self._is_drawn = False

    def end(self) -> None:
        """Take the line away, and end one that the program has left open: others print next."""
        self.clear()
        if not self._is_at_start:
            self._end_line()

    def _end_line(self) -> None:
        self.write(b"\n")
        self._is_at_start = True


def terminal_width(descriptor: int) -> int:
    """Return the columns of a terminal; 80 where it does not say."""
    try:
        return os.get_terminal_size(descriptor).columns or 80
    except OSError:
        return shutil.get_terminal_size().columns
