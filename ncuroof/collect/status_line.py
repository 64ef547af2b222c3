"""A line at the foot of the terminal that says how far ncu is, and gives way to what the program prints."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from ncuroof.collect.progress import Progress

_CLEAR = b"\r\x1b[2K"
_MOST_NAME = 40
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
    """Draws on a terminal; it is only there while the terminal's cursor stands at the beginning of a line.

    Attributes:
        write: writes bytes to the terminal.
        width: of the terminal, in columns.
    """

    write: Callable[[bytes], object]
    width: int
    _text: str = ""
    _is_drawn: bool = False
    _is_at_start: bool = True

    def show(self, text: str) -> None:
        """Show another text."""
        self._text = text
        if self._is_at_start:
            self.write(_CLEAR + self._text[: self.width - 1].encode(errors="replace"))
            self._is_drawn = True

    def between(self, chunk: bytes, write: Callable[[bytes], object]) -> None:
        """Pass on what the program printed, above the line."""
        self.clear()
        write(chunk)
        self._is_at_start = chunk.endswith(b"\n")
        if self._text:
            self.show(self._text)

    def clear(self) -> None:
        """Take the line away."""
        if self._is_drawn:
            self.write(_CLEAR)
            self._is_drawn = False


def terminal_width(descriptor: int) -> int:
    """Return the columns of a terminal; 80 where it does not say."""
    try:
        return os.get_terminal_size(descriptor).columns or 80
    except OSError:
        return shutil.get_terminal_size().columns
