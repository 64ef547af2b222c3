"""Running ncu: its words become progress, the program's output passes through untouched, an interrupt keeps what there is."""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from ncuroof.collect.ncu_lines import WithoutProgress
from ncuroof.collect.progress import Progress, ProgressReader
from ncuroof.collect.signals import forwarding_signals
from ncuroof.collect.standard_input import from_the_beginning
from ncuroof.collect.status_line import StatusLine, progress_text, terminal_width
from ncuroof.errors import NcuNotFoundError

_POLL_S = 0.1
_STDOUT, _STDERR = 1, 2
_CHUNK = 65536
_GRACE_S = 60.0
"""After an interrupt ncu closes its report. Past this time it is told itself, for it may not have been; then it is ended."""

_IMPATIENT_GRACE_S = 5.0
"""As above, after a second interrupt."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run of ncu.

    Attributes:
        status: ncu's own exit status.
        progress: what it said.
        is_interrupted: the user, or the system, stopped it.
    """

    status: int
    progress: Progress
    is_interrupted: bool


@dataclass(slots=True)
class _Stream:
    """A stream of the program that is relayed: where it is read, where it goes, and what it said of ncu's."""

    source: int
    target: int
    said: ProgressReader = field(default_factory=ProgressReader)
    without_progress: WithoutProgress | None = None
    """Takes ncu's lines out, where they come on this stream."""

    is_lost: bool = False
    """What it goes to is gone. The program is told so, unless ncu writes there too: that is read to its end."""

    def read(self) -> tuple[bytes, bool]:
        """Return what is to be passed on of what came, and whether there may be more."""
        try:
            chunk = os.read(self.source, _CHUNK)
        except OSError:  # a terminal whose other end is closed
            chunk = b""
        self.said.read(chunk.decode(errors="replace"))
        if self.without_progress is None:
            return chunk, bool(chunk)
        return (self.without_progress.pass_on(chunk) if chunk else self.without_progress.end()), bool(chunk)

    def write(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view:
            view = view[os.write(self.target, view) :]

    def close(self) -> None:
        """Close the source, so that who writes there learns that nobody reads; once."""
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
) -> Outcome:
    """Run ncu to its end, and say meanwhile how far it is.

    The program has our standard input, from the beginning where an earlier run has read it. Its standard output and error are
    relayed, for ncu prints some of its errors there; a terminal's place is taken by another terminal, so that the program writes
    as ever and the line of progress can give way.

    Args:
        command: gives the command for a log file of ncu's words; for None one that mixes them with the program's.
        shows_progress: draw a line on standard error if that is a terminal.
        logs_to_file: ncu can write its words to one file; false where several ncu run at once.
        n_all: launches to record, where known.
        environment: variables for those that ours lacks.
        say: prints a line of ours.

    Raises:
        NcuNotFoundError: ncu, or what starts it, cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="ncuroof-") as folder, contextlib.ExitStack() as stack:
        log = Path(folder) / "ncu.log"
        words = command(str(log) if logs_to_file else None)
        streams, ends = _open_streams(stack, has_progress=not logs_to_file)
        from_the_beginning()
        try:
            process = subprocess.Popen(  # noqa: S603  the arguments as given, no shell
                words, stdout=ends.get(_STDOUT), stderr=ends.get(_STDERR), env={**environment, **os.environ}
            )
        except OSError as error:
            raise NcuNotFoundError(
                f"{words[0]} cannot be run: {error.strerror}", hint="check the machine with ncuroof doctor"
            ) from error
        finally:
            for end in set(ends.values()):
                os.close(end)
        is_terminal = shows_progress and os.isatty(_STDERR)
        line = StatusLine(_draw, terminal_width(_STDERR)) if is_terminal else None
        watch = _Watch(process, streams, log, line, n_all, say)
        try:
            with forwarding_signals(process):
                is_interrupted = watch.to_the_end()
        finally:
            if process.poll() is None:  # nobody would end it
                process.terminate()
        return Outcome(process.returncode, watch.progress(), is_interrupted)


def _draw(data: bytes) -> None:
    with contextlib.suppress(OSError):  # a terminal that was closed ends no ncu, which is to close its report
        os.write(_STDERR, data)


def _open_streams(stack: contextlib.ExitStack, *, has_progress: bool) -> tuple[list[_Stream], dict[int, int]]:
    """Return the streams to relay, and by descriptor the ends that the program writes to."""
    ends: dict[int, int] = {}
    streams = []
    for number in (_STDOUT, _STDERR):
        if number == _STDERR and _are_one():
            ends[number] = ends[_STDOUT]  # so that the order stays
            continue
        source, ends[number] = _terminal() if os.isatty(number) else os.pipe()
        streams.append(_Stream(source, number, without_progress=WithoutProgress() if has_progress else None))
        stack.callback(streams[-1].close)
    return streams, ends


def _are_one() -> bool:
    """Return whether standard output and error lead to one place: a terminal, or `2>&1`."""
    try:
        return os.path.sameopenfile(_STDOUT, _STDERR)
    except OSError:  # one is closed
        return False


def _terminal() -> tuple[int, int]:
    """Return a pair of terminal ends of the real one's size that pass bytes as they are."""
    import fcntl  # noqa: PLC0415  not on Windows, where ncuroof reads reports all the same
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
    """Watches one run: relays what the program prints, reads ncu's log, draws the line."""

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
        """Return all that was said, in the log and on the relayed streams."""
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
        """Relay what is there; return whether anything was."""
        ready = []
        if self._selector.get_map():
            ready = self._selector.select(seconds)
        else:  # all streams are closed, and the program still runs
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
        except OSError:  # what we write to is gone: that ends no ncu, which is to close its report
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
        is_empty=any(part.is_empty for part in parts),
        messages=tuple(dict.fromkeys(message for part in parts for message in part.messages)),
    )


def flush_before_a_child() -> None:
    """Write out what we have printed so far, so that the program's output comes after it."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
