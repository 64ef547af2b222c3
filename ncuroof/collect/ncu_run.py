"""Run ncu: turn its messages into progress, pass the program's output through, and keep the report on interrupt.

Several ncu processes cannot share a log file, so with ranks each ncu prints to the streams of its rank, from which its progress is
removed. ncu starts a line for each kernel and extends it as passes end. What a rank prints meanwhile lands on that line, and ncu's
next message on a later line.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from ncuroof.collect.processes import forwarding_signals, started, write_all
from ncuroof.collect.progress import Progress, ProgressReader, StatusLine, progress_text, terminal_width
from ncuroof.temporary_files import temporary_folder

_POLL_S = 0.1
_STDOUT, _STDERR = 1, 2
_CHUNK = 65536
_GRACE_S = 60.0
"""Time that ncu has to close its report after an interrupt, and again after each step that follows.

After it, ncu itself gets SIGINT (the interrupt may not have reached it), then SIGTERM, then SIGKILL.
"""

_IMPATIENT_GRACE_S = 5.0
"""Time between SIGTERM and SIGKILL after a second interrupt."""

_MARK = b"==PROF== "
_WHOLE = re.compile(rb"==PROF== (?:Connected|Disconnected|Report)\b[^\n]*\n")
_BEGIN = re.compile(rb'==PROF== Profiling "[^\n]*?"[^":\n]*: ')
_FIRST_PERCENT = re.compile(rb"\d{1,3}%")
_PERCENT = re.compile(rb"\.{4}\d{1,3}%")
_PASSES = re.compile(rb" - \d+ pass(?:es)?\r?\n")
_MAY_BECOME_FIRST = re.compile(rb"\d{0,3}")
_MAY_BECOME_SCRAP = re.compile(rb"\.{0,3}|\.{4}\d{0,3}| -? ?| - \d+ ?p?a?s?s?e?s?\r?")


@dataclass(frozen=True, slots=True)
class NcuExit:
    """How a run of ncu ended.

    Attributes:
        status: ncu's own exit status.
        progress: what its messages said.
        is_interrupted: the user or a signal stopped it.
    """

    status: int
    progress: Progress
    is_interrupted: bool


@dataclass(slots=True)
class _Stream:
    """A relayed output stream of the program: its source and target descriptors, and ncu's messages found in it."""

    source: int
    target: int
    said: ProgressReader = field(default_factory=ProgressReader)
    without_progress: WithoutProgress | None = None
    """Removes ncu's progress lines if ncu also writes to this stream."""

    is_lost: bool = False
    """The target is gone. The source is closed so that the program notices, or drained to its end if ncu also writes to it."""

    def read(self) -> tuple[bytes, bool]:
        """Read a chunk; return what to pass on of it, and whether more may come."""
        try:
            chunk = os.read(self.source, _CHUNK)
        except OSError:  # a terminal whose other end is closed
            chunk = b""
        self.said.read(chunk.decode(errors="replace"))
        if self.without_progress is None:
            return chunk, bool(chunk)
        return (self.without_progress.pass_on(chunk) if chunk else self.without_progress.end()), bool(chunk)

    def write(self, chunk: bytes) -> None:
        write_all(self.target, chunk)

    def close(self) -> None:
        """Close the source, so that its writer notices; repeated calls do nothing."""
        if self.source >= 0:
            os.close(self.source)
            self.source = -1


def run_ncu(
    command: Callable[[str | None], Sequence[str]],
    *,
    shows_progress: bool,
    logs_to_file: bool = True,
    n_all: int | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
    say: Callable[[str], None] = lambda _: None,
) -> NcuExit:
    """Run ncu to its end, and show its progress meanwhile.

    The program inherits our standard input, rewound if the counting run has read it. Its standard output and error are relayed,
    because ncu prints some of its errors there. If they are a terminal, the program gets a pseudo-terminal instead, so that it
    prints as usual and the status line can make way for its output.

    Args:
        command: builds the command, given the path of a log file for ncu's messages, or None to mix them with the program's output.
        shows_progress: draw a status line on standard error if that is a terminal.
        logs_to_file: send ncu's messages to a log file; false if several ncu run at once (one per rank).
        n_all: launches to record, if known.
        environment: variables to set if the environment lacks them.
        say: prints a message of ours.

    Raises:
        NcuNotFoundError: ncu, or the launcher that starts it, cannot be run.
    """
    with temporary_folder() as folder, contextlib.ExitStack() as stack:
        log = folder / "ncu.log"
        words = command(str(log) if logs_to_file else None)
        streams, ends = _open_streams(stack, has_progress=not logs_to_file)
        try:
            process = started(words, environment, stdout=ends.get(_STDOUT), stderr=ends.get(_STDERR))
        finally:
            for end in set(ends.values()):
                os.close(end)
        is_terminal = shows_progress and os.isatty(_STDERR) and os.environ.get("TERM") != "dumb"
        line = StatusLine(_draw, terminal_width(_STDERR)) if is_terminal else None
        watch = _Watch(process, streams, log, line, n_all, say)
        try:
            with forwarding_signals(process):
                is_interrupted = watch.to_the_end()
        finally:
            if process.poll() is None:  # nothing else would end it
                process.terminate()
        return NcuExit(process.returncode, watch.progress(), is_interrupted)


def _draw(data: bytes) -> None:
    with contextlib.suppress(OSError):  # a closed terminal must not stop ncu from closing its report
        os.write(_STDERR, data)


def _open_streams(stack: contextlib.ExitStack, *, has_progress: bool) -> tuple[list[_Stream], dict[int, int]]:
    """Return the streams to relay, and the ends that the program writes to, by descriptor."""
    ends: dict[int, int] = {}
    streams = []
    for number in (_STDOUT, _STDERR):
        if number == _STDERR and _are_the_same_file():
            ends[number] = ends[_STDOUT]  # keeps the order of what is printed
            continue
        source, ends[number] = _terminal() if os.isatty(number) else os.pipe()
        streams.append(_Stream(source, number, without_progress=WithoutProgress() if has_progress else None))
        stack.callback(streams[-1].close)
    return streams, ends


def _are_the_same_file() -> bool:
    """Return whether standard output and error are one file: a terminal, or through `2>&1`."""
    try:
        return os.path.sameopenfile(_STDOUT, _STDERR)
    except OSError:  # one is closed
        return False


def _terminal() -> tuple[int, int]:
    """Return our end and the program's end of a pseudo-terminal that has the real one's size and leaves bytes unchanged."""
    import fcntl  # noqa: PLC0415  missing on Windows, where ncuroof must still read reports
    import pty  # noqa: PLC0415
    import termios  # noqa: PLC0415

    ours, theirs = pty.openpty()
    modes = termios.tcgetattr(theirs)
    modes[1] &= ~termios.OPOST
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(_STDERR, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
    return ours, theirs


class _Watch:
    """Watches one run: relays the program's output, reads ncu's log, draws the status line."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        streams: list[_Stream],
        log: Path,
        line: StatusLine | None,
        n_all: int | None,
        say: Callable[[str], None],
    ) -> None:
        self._process, self._streams, self._log, self._line = process, streams, log, line
        self._n_all, self._say = n_all, say
        self._reader, self._offset = ProgressReader(), 0
        self._began = time.monotonic()
        self._selector = selectors.DefaultSelector()
        for stream in streams:
            self._selector.register(stream.source, selectors.EVENT_READ, stream)

    def progress(self) -> Progress:
        """Return the progress from ncu's log and the relayed streams together."""
        parts = [self._reader.end(), *(stream.said.end() for stream in self._streams)]
        return _merged(parts)

    def to_the_end(self) -> bool:
        """Watch until the program has ended; return whether it was interrupted."""
        deadline, grace_s = math.inf, _GRACE_S
        endings = [signal.SIGTERM, signal.SIGINT]
        while True:
            try:
                if self._process.poll() is not None:
                    break
                self._turn(_POLL_S)
                if time.monotonic() > deadline:
                    self._process.send_signal(endings.pop()) if endings else self._process.kill()
                    deadline = time.monotonic() + grace_s
            except KeyboardInterrupt:
                if deadline == math.inf:
                    self._tell("interrupted: ncu is closing its report (interrupt again to stop it at once)")
                else:
                    self._process.terminate()
                    endings.clear()
                    grace_s = _IMPATIENT_GRACE_S
                deadline = time.monotonic() + grace_s
        while self._turn(0.0):
            pass
        self._read_log()
        if self._line is not None:
            self._line.end()
        self._selector.close()
        return deadline < math.inf

    def _turn(self, seconds: float) -> bool:
        """Relay what has arrived within `seconds`, read the log, redraw the line; return whether anything was relayed."""
        ready = []
        if self._selector.get_map():
            ready = self._selector.select(seconds)
        else:  # all streams are closed, but the program still runs
            time.sleep(seconds)
        for key, _ in ready:
            self._relay(key.data)
        self._read_log()
        if self._line is not None:
            self._line.show(progress_text(self._reader.state, time.monotonic() - self._began, n_all=self._n_all))
        return bool(ready)

    def _relay(self, stream: _Stream) -> None:
        chunk, may_go_on = stream.read()
        if not may_go_on:
            self._selector.unregister(stream.source)
        if not chunk or stream.is_lost:
            return
        try:
            if self._line is None:
                stream.write(chunk)
            else:
                self._line.between(chunk, stream.write)
        except OSError:  # the target is gone; ncu must still close its report
            stream.is_lost = True
            if may_go_on and stream.without_progress is None:
                self._selector.unregister(stream.source)
                stream.close()

    def _read_log(self) -> None:
        try:
            with self._log.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read()
        except OSError:
            return
        self._offset += len(chunk)
        if chunk:
            self._reader.read(chunk.decode(errors="replace"))

    def _tell(self, text: str) -> None:
        if self._line is not None:
            self._line.end()
        with contextlib.suppress(OSError):
            self._say(text)


def _merged(parts: Sequence[Progress]) -> Progress:
    first = max(parts, key=lambda part: part.n_done)
    return replace(
        first,
        n_done=sum(part.n_done for part in parts),
        reports=tuple(report for part in parts for report in part.reports),
        exit_status=next((part.exit_status for part in parts if part.exit_status is not None), None),
        is_connected=any(part.is_connected for part in parts),
        messages=tuple(dict.fromkeys(message for part in parts for message in part.messages)),
    )


@dataclass(slots=True)
class WithoutProgress:
    """Removes ncu's progress from a stream that arrives in chunks, and holds back only what may still turn out to be progress."""

    _held: bytes = b""
    _is_inside: bool = False
    """Part of the current line has been passed on: the rest of it is not ncu's."""

    _is_after_ncu: bool = False
    """Something of ncu's was removed from the current line, and nothing was passed on."""

    _is_after_begin: bool = False
    """The last thing removed was the start of a kernel's line, up to its name."""

    _n_unfinished: int = 0
    """Kernels for which ncu has not yet printed the number of passes."""

    def pass_on(self, chunk: bytes) -> bytes:
        """Return what can be passed on once this chunk has arrived."""
        rest, passed = self._held + chunk, b""
        while rest:
            if not self._is_inside:
                n_ncus = self._n_ncus(rest)
                if n_ncus:
                    rest = rest[n_ncus:]
                    continue
                if self._may_become_progress(rest):
                    break
            line, end, rest = rest.partition(b"\n")
            passed += line + end
            self._is_inside, self._is_after_ncu, self._is_after_begin = not end, False, False
        self._held = rest
        return passed

    def end(self) -> bytes:
        """Return what is still held back, at the end of the stream."""
        return self.pass_on(b"\n")[:-1] if self._held else b""

    def _n_ncus(self, rest: bytes) -> int:
        """Return how many bytes at the start of `rest` are ncu's, and update the state accordingly."""
        if match := _WHOLE.match(rest):
            self._is_after_ncu = self._is_after_begin = False
        elif match := _BEGIN.match(rest):
            self._is_after_ncu = self._is_after_begin = True
            self._n_unfinished += 1
        elif self._n_unfinished and (match := _PASSES.match(rest)):
            self._is_after_ncu = self._is_after_begin = False
            self._n_unfinished -= 1
        elif match := self._percent(rest):
            self._is_after_ncu, self._is_after_begin = True, False
        elif self._is_after_ncu and rest.startswith(b"\n"):
            self._is_after_ncu = self._is_after_begin = False
            return 1
        return match.end() if match else 0

    def _percent(self, rest: bytes) -> re.Match[bytes] | None:
        if self._is_after_begin and (match := _FIRST_PERCENT.match(rest)):
            return match
        return _PERCENT.match(rest) if self._n_unfinished else None

    def _may_become_progress(self, rest: bytes) -> bool:
        if b"\n" in rest:
            return False
        return (
            rest.startswith(_MARK)
            or _MARK.startswith(rest)
            or (self._is_after_begin and _MAY_BECOME_FIRST.fullmatch(rest) is not None)
            or (self._n_unfinished > 0 and _MAY_BECOME_SCRAP.fullmatch(rest) is not None)
        )
