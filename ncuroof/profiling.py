"""Profile a Python function: `profile` one call, `sweep` the combinations of values, `Profiler` with options.

ncu profiles a process from its start. The function is therefore called in a new process, to which it and its arguments go as
`multiprocessing` sends them to a spawned process: the script is imported again, under a name other than `__main__`, and the
function is looked up in it by name. What the calling process did on the GPU is neither repeated nor recorded.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ncuroof.errors import ArgumentError, ProfilingError
from ncuroof.temporary_files import temporary_folder

if TYPE_CHECKING:
    import polars as pl

    from ncuroof.analysis import Analysis

_PROFILED = "NCUROOF_PROFILED_CALL"
"""Environment variable of the new process, with the number of calls to make. There, `profile` must not start another one."""

_SCRIPT = """\
from pathlib import Path
from ncuroof.profiling import call_as_sent
call_as_sent(Path(__file__).with_suffix(".pickle").read_bytes())
"""
"""The script that ncu runs: steps can be counted only in scripts."""

REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz")
_MOST_SAID = 4000
_RESULTS = ("n_launches", "duration_ns", "kernel", "verdict", "limiter", "roof_frac")
"""Columns of a sweep's table beside the arguments."""

_OF_THE_SCRIPT = ("name", "sys_path", "sys_argv", "dir", "init_main_from_name", "init_main_from_path")


@dataclass(frozen=True, slots=True)
class Profiler:
    """Options for profiling functions.

        slow = ncuroof.Profiler(level="full", warmups=3).profile(rmsnorm, x, weight)

    Attributes:
        level: counters to collect, as `ncuroof profile --level`: "quick", "roofline", or "full".
        kernel: regular expression; only kernels whose names it matches are recorded.
        warmups: calls before the one that is recorded, so that compilation and autotuning are over.
        output: path of the report to keep, which replaces an earlier one; by default it is removed once it has been read.
    """

    level: str = "roofline"
    kernel: str | None = None
    warmups: int = 1
    output: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.warmups < 1:
            raise ArgumentError(
                f"expected at least one call before the one that is recorded, found warmups={self.warmups}",
                hint="the first call loads modules and compiles, which would be recorded with it",
            )

    def profile(self, function: Callable[..., object], /, *args: Any, **kwargs: Any) -> Analysis:
        """Return the analysis of the kernels that one call of `function` launches.

        Args:
            function: a function of a module or of the script that is running, where `if __name__ == "__main__":` guards what
                profiles it. A function of a notebook needs the package cloudpickle.
            *args: its arguments; they are pickled.
            **kwargs: the same.

        Raises:
            ArgumentError: the function or an argument cannot be sent to another process, or the script has no such guard.
            ProfilingError: nothing was recorded; the message has what `ncuroof profile` said.
        """
        from ncuroof.reading import read  # noqa: PLC0415  loads polars

        if os.environ.get(_PROFILED):
            raise ArgumentError(
                'the script profiles while it is imported: put that under `if __name__ == "__main__":`',
                hint="the process under ncu imports the script, as multiprocessing does",
            )
        call = _pickled(function, args, kwargs)
        with temporary_folder() as folder:
            (folder / "call.pickle").write_bytes(call)
            (folder / "call.py").write_text(_SCRIPT, encoding="utf-8")
            report = folder / "call.ncu-rep" if self.output is None else Path(self.output)
            done = record_call(
                [str(folder / "call.py")],
                report,
                level=self.level,
                kernel=self.kernel,
                warmups=self.warmups,
                environment={_PROFILED: str(self.warmups + 1)},
            )
            written = found_report(report.with_suffix("") if report.suffix in REPORT_SUFFIXES else report)
            if done.returncode != 0 or written is None:
                name = getattr(function, "__qualname__", repr(function))
                raise ProfilingError(
                    f"nothing was recorded of {name}, exit code {done.returncode}: {last_words(done)}",
                    hint="`ncuroof doctor` says whether this machine can profile",
                )
            return read(written).analyse()

    def sweep(self, **values: Sequence[Any]) -> Callable[[Callable[..., object]], Sweep]:
        """Return a decorator that adds `profile()` to a function, for all combinations of values of its arguments; see `sweep`."""
        return lambda function: Sweep(function, values, self)


def profile(function: Callable[..., object], /, *args: Any, **kwargs: Any) -> Analysis:
    """Return the analysis of the kernels that one call of `function` launches, after one call that is not recorded.

        analysis = ncuroof.profile(rmsnorm, x, weight)

    `Profiler` has options; see `Profiler.profile` for arguments and errors.
    """
    return Profiler().profile(function, *args, **kwargs)


def sweep(**values: Sequence[Any]) -> Callable[[Callable[..., object]], Sweep]:
    """Return a decorator that adds `profile()` to a function, for all combinations of values of its arguments.

        @ncuroof.sweep(n=[2**20, 2**24], block=[128, 256])
        def scale(n, block): ...

        scale(n=1024, block=128)  # an ordinary call
        scale.profile().table  # four combinations: arguments, time, verdict, limiter

    Each combination is profiled in a process of its own.
    """
    return Profiler().sweep(**values)


class Sweep:
    """A function with values of its arguments; calling it calls the function."""

    def __init__(
        self, function: Callable[..., object], values: Mapping[str, Sequence[Any]], profiler: Profiler
    ) -> None:
        if profiler.output is not None:
            raise ArgumentError("a sweep records several reports, but one output is named", hint="leave output out")
        if empty := [name for name, each in values.items() if isinstance(each, str) or not len(each)]:
            raise ArgumentError(f"expected a list of values for {empty[0]}", hint=f"{empty[0]}=[128, 256], for example")
        if taken := sorted(values.keys() & set(_RESULTS)):
            raise ArgumentError(
                f"the argument {taken[0]} has the name of a column of the results",
                hint=f"give it another name; the results have {', '.join(_RESULTS)}",
            )
        functools.update_wrapper(self, function)
        self._function, self._values, self._profiler = function, values, profiler

    def __call__(self, *args: Any, **kwargs: Any) -> object:
        """Call the function."""
        return self._function(*args, **kwargs)

    def __reduce__(self) -> str:
        """Pickle by name: in the other process the name leads to the decorated function as well."""
        return str(self.__qualname__)  # type: ignore[attr-defined]  # of update_wrapper

    def profile(self) -> SweepResult:
        """Profile one call per combination, each in a new process.

        Raises:
            ArgumentError, ProfilingError: as `Profiler.profile`; the combinations before are lost.
        """
        combinations = [
            dict(zip(self._values, each, strict=True)) for each in itertools.product(*self._values.values())
        ]
        return SweepResult(tuple((each, self._profiler.profile(self, **each)) for each in combinations))


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Analyses of the combinations of a sweep.

    Attributes:
        runs: per combination, the values of the arguments and the analysis.
    """

    runs: tuple[tuple[Mapping[str, Any], Analysis], ...]

    @property
    def table(self) -> pl.DataFrame:
        """The combinations as a table.

        Each row has the arguments, `n_launches` and `duration_ns` of all kernels, and `kernel`, `verdict`, `limiter` and
        `roof_frac` (roofline time over duration) of the kernel that takes longest.
        """
        import polars as pl  # noqa: PLC0415

        rows = []
        for values, analysis in self.runs:
            kernels = analysis.kernels.sort("duration_ns", descending=True, nulls_last=True)
            longest = kernels.row(0, named=True)
            least_ns, took_ns = longest["min_time_ns"], longest["duration_ns"]
            arguments = {
                name: value if isinstance(value, (bool, int, float, str)) else str(value)
                for name, value in values.items()
            }
            results = (
                kernels.height,
                kernels["duration_ns"].sum() if kernels["duration_ns"].count() else None,
                longest["short_name"],
                longest["verdict"],
                longest["limiter"],
                least_ns / took_ns if least_ns is not None and took_ns else None,
            )
            rows.append({**arguments, **dict(zip(_RESULTS, results, strict=True))})
        return pl.DataFrame(rows, infer_schema_length=None)


def record_call(
    program: Sequence[str],
    report: Path,
    *,
    level: str,
    kernel: str | None,
    warmups: int,
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with `program` under `ncuroof profile`, and record its call of `one_call` after `warmups` calls.

    Args:
        program: arguments of the interpreter.
        report: path of the report to write.
        level: counters to collect, as the option of `ncuroof profile`.
        kernel: regular expression of kernels to record; None for all.
        warmups: number of calls before the one that is recorded.
        environment: variables in addition to those of this process.
        folder: working directory.
    """
    step = ("--step", str(warmups + 1), "--step-of", f"{__name__}:{one_call.__name__}", "--no-stop-after")
    chosen = ("--kernel", kernel) if kernel else ()
    options = ("--quiet", "--no-color", "--force", "--no-per-shape", "--record-only", "--level", level, *chosen, *step)
    return subprocess.run(  # noqa: S603  no shell
        [sys.executable, "-m", "ncuroof", "profile", *options, "-o", str(report), "--", sys.executable, *program],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def found_report(path: Path) -> Path | None:
    """Return the existing file of a report that is named with or without its suffix, or None."""
    candidates = [path, *(path.with_name(path.name + suffix) for suffix in REPORT_SUFFIXES)]
    return next((each for each in candidates if each.is_file()), None)


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """Return the end of the output of a process."""
    return (done.stdout + done.stderr).strip()[-_MOST_SAID:]


def one_call(function: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Call a function. ncu records this function's calls as steps (`ncuroof profile --step-of`)."""
    function(*args, **kwargs)


def _pickled(function: Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """Return the call for a new process, pickled: first how to prepare the process, then function and arguments."""
    from multiprocessing import spawn  # noqa: PLC0415  see `call_as_sent`

    main = sys.modules["__main__"]
    is_script = getattr(main, "__file__", None) is not None or getattr(main, "__spec__", None) is not None
    pickler = pickle if is_script or getattr(function, "__module__", None) != "__main__" else _cloudpickle()
    prepared = spawn.get_preparation_data("ncuroof")
    script = {key: prepared[key] for key in _OF_THE_SCRIPT if key in prepared}
    return pickle.dumps((script, _dumped((function, tuple(args), dict(kwargs)), pickler)))


def _dumped(call: object, pickler: ModuleType) -> bytes:
    failures = (pickle.PicklingError, AttributeError, TypeError)
    with contextlib.suppress(*failures):  # a lambda or a nested function is pickled below, by its code
        return bytes(pickler.dumps(call))
    by_code = _cloudpickle()
    try:
        return bytes(by_code.dumps(call))
    except failures as error:
        raise ArgumentError(
            f"the call cannot be sent to another process: {error}",
            hint="pass sizes and seeds, and create in the function what it works on",
        ) from error


def _cloudpickle() -> ModuleType:
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:
        raise ArgumentError(
            "the function can only be sent to another process by its code",
            hint="define it at the top level of a script or module, or install cloudpickle",
        ) from None


def call_as_sent(sent: bytes) -> None:
    """Make the calls that `Profiler.profile` sent to this process; ncu records the last one."""
    script, call = pickle.loads(sent)  # noqa: S301  written by our own parent process
    from multiprocessing import spawn  # noqa: PLC0415  the pytest plugin, which pytest loads at every start, does not need it

    spawn.prepare(script)
    function, args, kwargs = pickle.loads(call)  # noqa: S301  the same
    for _ in range(int(os.environ[_PROFILED])):
        one_call(function, args, kwargs)
