"""The counting run: run the program once without ncu, under a profiler that counts its launches.

PyTorch's profiler counts the launches of Python scripts, Nsight Systems those of all other programs. The closing messages of Nsight
Systems are removed from the program's output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ncuroof.collect.arguments import files_of_ranks, of_rank
from ncuroof.collect.failures import RUN_IT_ALONE
from ncuroof.collect.journal import (
    counted_steps,
    cut_short,
    is_cut_off,
    lacks_torch,
    read_status,
    refused,
    steps_hint,
    why_not_counted,
)
from ncuroof.collect.processes import forwarding_signals, started, write_all
from ncuroof.collect.programs import Program
from ncuroof.collect.request import Request, Steps
from ncuroof.errors import CountsError, ProfileRequestError, ProfilingError
from ncuroof.ncu.settings import Settings
from ncuroof.sidecars.counts import Counts
from ncuroof.sidecars.traces.nsight_systems import read_nsys_trace
from ncuroof.sidecars.traces.read import counts_of
from ncuroof.sidecars.traces.torch_profiler import timeline_of, trace_events
from ncuroof.temporary_files import temporary_folder

RUNNER = Path(__file__).parent / "runner" / "runner.py"
RUNNER_FILES = (RUNNER, *map(RUNNER.with_name, ("hooks.py", "steps.py", "tools.py")))
_TORCH_TRACE, _NSYS_TRACE, _JOURNAL = ("trace", ".json"), ("trace", ".sqlite"), ("journal", ".jsonl")
"""Stem and suffix of files; the rank goes between them."""
_LONG_BYTES = 50e6
"""Size of a trace above which the user is warned: one of 360 MB (half a million launches) took 25 s and 1.8 GB to read."""

OTHER_STEPS = "--step-of sets what counts as a step: optimizer, dataloader, NAME in the script, or MODULE:NAME"
_ALL_ARE_RECORDED = "launches are not counted, and every launch is recorded"
_NOT_COUNTED_HINT = (
    "choose kernels with --kernel or steps with --step, record one launch per kernel and shape with --per-shape, "
    "or pass a trace recorded elsewhere with --trace"
)

_LAST_WORDS = re.compile(rb"Generating '[^'\n]*\.(?:qdstrm|nsys-rep)'\r?\n")
"""First of nsys's closing messages, on standard output: the program has ended, and nsys starts to write its report."""

_BEGIN = b"Generating '"
_BEGUN = re.compile(rb"Generating '[^'\n]*'?\r?")
_CHUNK = 65536
_STDOUT = 1
_GRACE_S = 10.0
"""Time that the program has to clean up before it is killed, after an interrupt or another error here."""


@dataclass(frozen=True, slots=True)
class CountingRun:
    """Counts the launches of a Python script with PyTorch's profiler, those of any other program with Nsight Systems.

    Attributes:
        request: what the user asks for.
        program: what to run, not yet inside the runner.
        settings: of profiles/collect.toml.
        nsys: path of Nsight Systems; None if it is not installed.
        say: prints a line on standard error.
    """

    request: Request
    program: Program
    settings: Settings
    nsys: Path | None
    say: Callable[[str], None]

    @property
    def is_possible(self) -> bool:
        """Whether a profiler that can count this program's launches is available."""
        return self._is_script or self.nsys is not None

    @property
    def is_needed(self) -> bool:
        """Whether an option needs counts: --cover, or --per-shape if counting is possible."""
        return self.request.cover_frac is not None or (bool(self.request.per_shape) and self.is_possible)

    @property
    def _is_script(self) -> bool:
        return self.program.script is not None

    def command(self, folder: Path) -> list[str]:
        """Return the command that writes a trace, or one per rank, to a folder.

        Raises:
            ProfileRequestError: no profiler here can count the program's launches.
        """
        return self._with_torch(folder) if self._is_script else self._under_nsys(folder)

    def count(self) -> dict[int | None, Counts]:
        """Run the program and return how often each kernel ran, by rank; a program without ranks has the key None.

        The result is empty if the profiler saw no kernel and no option needs counts.

        Raises:
            ProfileRequestError: no profiler here can count the program's launches.
            ProfilingError: the program failed, the steps were never reached, or counts are needed and no kernel was seen.
            CountsError: a trace is not as expected.
        """
        with temporary_folder() as folder:
            words = self.command(folder)
            self.say("counting run: the program runs once without ncu")
            return self._torch_counts(words, folder) if self._is_script else self._nsys_counts(words, folder)

    # ---- a script, with PyTorch's profiler

    def _with_torch(self, folder: Path) -> list[str]:
        # Only with both --annotate and --step, as tracing costs the host a microsecond or two per operator.
        tells_operators = self.request.annotates and self.request.steps is not None
        asked = [*step_words(self.request.steps), *(["--operators"] if tells_operators else [])]
        trace, journal = (f"{self._file_name(folder, stem)}{suffix}" for stem, suffix in (_TORCH_TRACE, _JOURNAL))
        program = self.program.inside([str(RUNNER), *asked, "--count", trace, "--status", journal, "--"])
        return [*program.launcher, *program.words]

    def _torch_counts(self, words: Sequence[str], folder: Path) -> dict[int | None, Counts]:
        exit_status = run_to_end(words, self.program.environment)
        traces = self._trace_files(folder, *_TORCH_TRACE)
        journals = {rank: read_status(path) for rank, path in self._trace_files(folder, *_JOURNAL).items()}
        refusal = refused(journals.values())
        if refusal is not None:
            raise ProfilingError(refusal, hint=OTHER_STEPS)
        if exit_status and not traces:
            raise _failed(exit_status)
        if lacks_torch(journals.values()):
            return self._without_torch(folder, "the script's Python has no PyTorch")
        longest = max(journals.values(), key=len, default=[])
        unreached = steps_hint(self.request, longest)
        if unreached and not exit_status:
            raise ProfilingError("no launch was counted: the steps were never reached (no-kernels)", hint=unreached)
        if not traces and is_cut_off(journals.values()):
            raise ProfilingError(
                f"the counting run's trace could not be written to {folder.parent}",
                hint="free some space there, or set TMPDIR to a folder on another disk",
            )
        if not traces:
            return self._without_torch(folder, why_not_counted(journals.values()))
        found = {rank: self._count_torch_trace(trace, journals.get(rank, [])) for rank, trace in traces.items()}
        counted = self._with_kernels(found, "PyTorch's profiler saw no kernel in the script's own process", exit_status)
        self._warn(exit_status, cut_short(self.request, longest))
        return counted

    def _warn(self, exit_status: int, cut: str | None = None) -> None:
        if cut is not None:
            self.say(f"warning: {cut}")
        if exit_status:
            self.say(f"warning: the program exited with status {exit_status}")

    def _without_torch(self, folder: Path, why: str) -> dict[int | None, Counts]:
        """Count with Nsight Systems if PyTorch's profiler cannot; give up if nsys is missing or steps are wanted."""
        if self.nsys is None or self.request.steps is not None:
            self._say_nothing_counted(why)
            return {}
        return self._nsys_counts(self._under_nsys(folder), folder)

    def _count_torch_trace(self, trace: Path, journal: Iterable[Mapping[str, Any]]) -> Counts:
        size_bytes = trace.stat().st_size
        if size_bytes > _LONG_BYTES:
            self.say(
                f"reading a trace of {size_bytes / 1e6:.0f} MB, which takes time and about five times as much memory: "
                "--step N or --step N:M counts only part of the run"
            )
        with _errors_of_counting_run():
            timeline = timeline_of(trace_events(trace))
        wanted = self.request.steps
        steps = None if wanted is None else counted_steps(wanted, journal)
        counts = counts_of(timeline, self.settings, source="torch.profiler", steps=steps)
        if wanted is None:
            return counts
        return replace(counts, steps=wanted.text, breakdown=None if steps is None else counts.breakdown)

    # ---- any program, with Nsight Systems

    def _under_nsys(self, folder: Path) -> list[str]:
        if self.nsys is None:
            raise ProfileRequestError(
                f"--cover needs a counting run: {self.program.words[0]!r} is not a Python script, and nsys (Nsight Systems), "
                "which counts other programs, was not found",
                hint=f"install Nsight Systems and put nsys on PATH; or {_NOT_COUNTED_HINT}",
            )
        output = f"--output={self._file_name(folder, _NSYS_TRACE[0])}"
        return [*self.program.launcher, str(self.nsys), *self.settings.nsys_options, output, *self.program.words]

    def _nsys_counts(self, words: Sequence[str], folder: Path) -> dict[int | None, Counts]:
        has_ranks = self.program.rank_variable is not None
        exit_status = run_to_end(words, self.program.environment) if has_ranks else run_nsys(words)
        databases = self._trace_files(folder, *_NSYS_TRACE)
        if not databases:
            self._say_nothing_counted(f"nsys exited with status {exit_status} and left no trace")
            return {}
        found = {rank: self._count_nsys_trace(database) for rank, database in databases.items()}
        counted = self._with_kernels(found, "nsys saw no kernel on a GPU", exit_status)
        self._warn(exit_status)
        return counted

    def _count_nsys_trace(self, database: Path) -> Counts:
        with _errors_of_counting_run():
            timeline = read_nsys_trace(database, waiting_calls=self.settings.waiting_calls)
        return counts_of(timeline, self.settings, source="nsys")

    # ---- files and counts of either

    def _file_name(self, folder: Path, stem: str) -> str:
        return of_rank(str(folder / stem), self.program.rank_variable)

    def _trace_files(self, folder: Path, stem: str, suffix: str) -> dict[int | None, Path]:
        """Return the files with this stem and suffix that the run left, by rank."""
        if self.program.rank_variable is not None:
            return files_of_ranks(stem, suffix, list(folder.iterdir()))
        path = folder / f"{stem}{suffix}"
        return {None: path} if path.exists() else {}

    def _with_kernels(
        self, found: Mapping[int | None, Counts], without: str, exit_status: int
    ) -> dict[int | None, Counts]:
        counted = {rank: counts for rank, counts in found.items() if counts.kernels}
        if not counted and exit_status:
            raise _failed(exit_status)
        if not counted:
            self._say_nothing_counted(without)
        return counted

    def _say_nothing_counted(self, found: str) -> None:
        """Say that nothing was counted, and that every launch is recorded instead.

        Raises:
            ProfilingError: counts are needed.
        """
        if not self.is_needed:
            self.say(f"{found}: {_ALL_ARE_RECORDED}")
            return
        raise ProfilingError(
            f"{found} (no-kernels)",
            hint=f"check that the program uses the GPU (nvidia-smi, torch.cuda.is_available()); or {_NOT_COUNTED_HINT}",
        )


def _failed(exit_status: int) -> ProfilingError:
    """Return the error for a program that failed before a launch was counted."""
    return ProfilingError(
        f"the program exited with status {exit_status} before its launches were counted (target-failed)",
        hint=f"{RUN_IT_ALONE}; if it does, skip the counting run with --no-per-shape",
    )


@contextmanager
def _errors_of_counting_run() -> Iterator[None]:
    """Add to the error of an unreadable trace that it is the counting run's, and a hint."""
    try:
        yield
    except CountsError as error:
        raise CountsError(
            f"the counting run's trace cannot be read: {error}",
            hint="choose launches with --kernel, --launch-count or --step, or skip the counting run with --no-per-shape",
        ) from error


def step_words(steps: Steps | None) -> list[str]:
    """Return the runner's options that select steps."""
    if steps is None:
        return []
    return ["--step", steps.text, "--of", steps.of, *(["--stop-after"] if steps.stops_after else [])]


def run_to_end(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command and return its exit status.

    Args:
        words: the command.
        environment: variables to set if the environment lacks them.

    Raises:
        NcuNotFoundError: the command cannot be run.
    """
    with _running(words, environment) as process:
        return process.wait()


def run_nsys(words: Sequence[str]) -> int:
    """Run a command of nsys, relay the program's output, and return nsys's exit status.

    Raises:
        NcuNotFoundError: nsys cannot be run.
    """
    ours, theirs = os.pipe()
    with (
        os.fdopen(ours, "rb", buffering=0),
        os.fdopen(theirs, "wb", buffering=0) as end,
        _running(words, stdout=theirs) as process,
    ):
        end.close()  # so that reading ends with the process
        try:
            _relay(ours)
        except OSError:  # our output is gone: keep reading, so that nsys can still write its trace
            while os.read(ours, _CHUNK):
                pass
        return process.wait()


@contextmanager
def _running(
    words: Sequence[str], environment: Mapping[str, str] = MappingProxyType({}), *, stdout: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command; if the block fails, give the command `_GRACE_S` to end, then kill it."""
    for stream in (sys.stdout, sys.stderr):  # so that the command's output comes after ours
        if stream is not None:
            stream.flush()
    process = started(words, environment, stdout=stdout)
    with process, forwarding_signals(process):
        try:
            yield process
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):  # that signal reached the child too
                process.terminate()
            with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                process.wait(_GRACE_S)
            if process.poll() is None:
                process.kill()
            raise


def _relay(source: int) -> None:
    """Pass on the program's output, up to nsys's closing messages."""
    held = b""
    while chunk := os.read(source, _CHUNK):
        held += chunk
        last_words = _LAST_WORDS.search(held)
        if last_words is not None:
            write_all(_STDOUT, held[: last_words.start()])
            while os.read(source, _CHUNK):
                pass
            return
        begin = _start_of_closing_message(held)
        write_all(_STDOUT, held[:begin])
        held = held[begin:]
    write_all(_STDOUT, held)


def _start_of_closing_message(output: bytes) -> int:
    """Return where a still incomplete closing message of nsys may begin; the end of the output if nowhere."""
    last_line = output.rfind(b"\n") + 1
    for letter in re.finditer(_BEGIN[:1], output[last_line:]):
        rest = output[last_line + letter.start() :]
        if _BEGIN.startswith(rest) or _BEGUN.fullmatch(rest):
            return last_line + letter.start()
    return len(output)
