"""Tools that work inside the user's PyTorch process during the wanted steps: profilers, NVTX ranges, and a journal.

`runner.py` loads this file from its own folder, because ncuroof need not be installed in the Python that has PyTorch.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_N_EARLIER_STEPS = 5
_LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
"""Variables with a process's rank on its machine, as launchers set them: torchrun, Open MPI, MPICH, Slurm."""


class Journal:
    """A journal of what happened in this process, for ncuroof: one JSON object per line, in order."""

    def __init__(self, path: str | None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if path else -1
        self._process = os.getpid()

    def tell(self, event: str, **more: object) -> None:
        """Add an event, unless this is a forked worker."""
        if self._file >= 0 and os.getpid() == self._process:
            with contextlib.suppress(OSError):  # full disk: the caller notices what is missing
                os.write(self._file, (json.dumps({"event": event, **more}) + "\n").encode())


class Tool:
    """Something that runs during the wanted steps."""

    def start(self) -> None:
        """Start."""

    def stop(self) -> None:
        """Stop."""

    def step_done(self) -> None:
        """Note the end of a step, including steps before the wanted ones."""


class CudaProfiler(Tool):
    """Switches recording on and off in the profiler attached to this process (ncu)."""

    def start(self) -> None:  # noqa: D102  as Tool says
        self._call("cudaProfilerStart")

    def stop(self) -> None:  # noqa: D102
        self._call("cudaProfilerStop")

    def _call(self, name: str) -> None:
        torch = sys.modules.get("torch")
        if torch is None:  # the script uses another library: the driver has the same call
            with contextlib.suppress(OSError):
                getattr(ctypes.CDLL("libcuda.so.1"), name.replace("cuda", "cu", 1))()
        elif torch.cuda.is_available():
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()
            with torch.cuda.device(_own_device(torch)):  # where the call creates a context
                getattr(torch.cuda.cudart(), name)()


def _own_device(torch: Any) -> int:
    """Return the GPU that a rank usually uses; -1, which has no effect, if unknown or once CUDA is initialised."""
    named = next((os.environ[name] for name in _LOCAL_RANKS if os.environ.get(name, "").isdigit()), "-1")
    return -1 if torch.cuda.is_initialized() or int(named) >= torch.cuda.device_count() else int(named)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


class ScriptProfilers:
    """Disables the script's own PyTorch profilers: two at a time would end the process.

    The script can use them as usual; they record nothing.
    """

    def __init__(self) -> None:
        self._is_ours = False

    def take_over(self, profiler: Any) -> None:
        """Wrap the functions that the module `torch.autograd.profiler` calls to start and stop profiling."""
        for name, instead in (
            ("_prepare_profiler", None),
            ("_enable_profiler", None),
            ("_disable_profiler", Nothing()),
        ):
            setattr(profiler, name, self._if_ours(getattr(profiler, name), instead))

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Let our own profiler's calls through, and hide PyTorch's warning about several cycles, which is not for the user."""
        self._is_ours = True
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*Profiler clears events at the end of each cycle")
                yield
        finally:
            self._is_ours = False

    def _if_ours(self, function: Any, instead: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) if self._is_ours else instead

        return call


class Nothing:
    """The result of a disabled profiler: no events."""

    def __bool__(self) -> bool:
        return False

    def save(self, path: str) -> None:
        """Write a trace without events."""
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write('{"traceEvents": []}')

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return list


class Counting(Tool):
    """Counts launches with PyTorch's profiler and writes its trace to a file; times the steps before the profiler starts."""

    def __init__(
        self,
        path: str,
        journal: Journal,
        script_profilers: ScriptProfilers,
        batches: BatchClock,
        *,
        with_operators: bool = False,
    ) -> None:
        self._path, self._journal, self._with_operators = path, journal, with_operators
        self._script_profilers, self._batches = script_profilers, batches
        self._profile: Any = None
        self._began_ns = 0
        self._ends: deque[Any] = deque(maxlen=_N_EARLIER_STEPS + 1)

    def start(self) -> None:
        """Start counting, but only on the main thread: the profiler belongs to the thread that starts it, and ends with it."""
        torch = sys.modules.get("torch")
        if torch is None:
            return
        if not _is_main_thread():
            self._journal.tell("not-counted")
            return
        activity = torch.profiler.ProfilerActivity
        is_cuda = torch.cuda.is_available()
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        on_gpu = [activity.CUDA] if is_cuda else []
        on_host = [activity.CPU] if self._with_operators or not is_cuda else []
        self._profile = torch.profiler.profile(activities=on_gpu + on_host)
        with self._script_profilers.at_work():
            self._profile.start()
        self._batches.start()
        self._began_ns = time.perf_counter_ns()

    def stop(self) -> None:
        """Stop counting, write the trace, and write the times to the journal."""
        torch = sys.modules.get("torch")
        if self._profile is None or torch is None:
            return
        if not _is_main_thread():  # stopping it here would end the process
            self._journal.tell("not-counted")
            return
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        times_ns = {"duration_ns": time.perf_counter_ns() - self._began_ns, "batches_ns": self._batches.waited_ns}
        with self._script_profilers.at_work():
            self._profile.stop()
        with contextlib.suppress(OSError, RuntimeError):  # full disk: the caller misses the trace
            self._profile.export_chrome_trace(self._path)
        self._journal.tell("counted", **times_ns, earlier_steps_ns=self._earlier_steps_ns())

    def step_done(self) -> None:
        """Mark the end of the step on the GPU with an event, without waiting for it."""
        torch = sys.modules.get("torch")
        if self._profile is not None or torch is None or not torch.cuda.is_initialized():
            return
        if not torch.cuda.is_current_stream_capturing():  # an event would become part of the script's graph
            end = torch.cuda.Event(enable_timing=True)
            end.record()
            self._ends.append(end)

    def _earlier_steps_ns(self) -> list[float]:
        ends = list(self._ends)
        with contextlib.suppress(RuntimeError):  # such as events on several GPUs
            return [1e6 * start.elapsed_time(end) for start, end in zip(ends, ends[1:])]  # noqa: B905, RUF007  Python 3.9
        return []


class BatchClock:
    """Sums how long the process waits for batches of its DataLoaders, in ns; None if PyTorch lacks the iterator class."""

    def __init__(self) -> None:
        self.waited_ns: int | None = None
        self._loader: Any = None

    def watch(self, module: Any) -> None:
        """Time the batches of the module `torch.utils.data.dataloader`."""
        loader = getattr(module, "_BaseDataLoaderIter", None)
        if loader is not None:
            self._wrap(loader)

    def start(self) -> None:
        """Start summing."""
        if self._loader is not None:
            self.waited_ns = 0

    def _wrap(self, loader: Any) -> None:
        fetch = loader.__next__

        def timed_fetch(batches: Any) -> Any:
            began_ns = time.perf_counter_ns()
            try:
                return fetch(batches)
            finally:
                if self.waited_ns is not None:
                    self.waited_ns += time.perf_counter_ns() - began_ns

        self._loader, loader.__next__ = loader, timed_fetch


class Annotations(Tool):
    """NVTX ranges for modules, named by their path in the model, and for operators (PyTorch's own), both with input shapes.

    PyTorch's own ranges are never switched off: the last step ends within open ranges (`Optimizer.step` is one), and PyTorch 2.11
    prints an internal assertion and a page of stack frames for each range that closes after `emit_nvtx` has ended.
    """

    def __init__(self, script_profilers: ScriptProfilers) -> None:
        self._script_profilers = script_profilers
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._operators: Any = None
        self._torch: Any = None

    def start(self) -> None:
        """Start annotating."""
        torch, module = (sys.modules.get(name) for name in ("torch", "torch.nn.modules.module"))
        if torch is None or module is None:
            return
        self._torch = torch
        self._handles = [
            module.register_module_forward_pre_hook(self._enter),
            module.register_module_forward_hook(self._leave, always_call=True),
        ]
        if torch.cuda.is_available():
            self._operators = torch.autograd.profiler.emit_nvtx(record_shapes=True)
            with self._script_profilers.at_work():
                self._operators.__enter__()

    def stop(self) -> None:
        """Stop annotating modules."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _enter(self, module: Any, inputs: Any) -> None:
        if self._torch.compiler.is_compiling():  # a range would break the graph
            return
        if self._operators is not None:
            self._torch.cuda.nvtx.range_push(self._text(module, inputs))

    def _text(self, module: Any, inputs: Any) -> str:
        try:
            shapes = ", ".join(str(list(each.shape)) for each in inputs if isinstance(each, self._torch.Tensor))
            return f"{self._name(module)} ({type(module).__name__}) {shapes}".rstrip()
        except Exception:  # such as a nested tensor without a shape: a name must not end the user's run
            return type(module).__name__

    def _leave(self, module: Any, inputs: Any, output: Any) -> None:  # noqa: ARG002  what torch calls a hook with
        if self._torch.compiler.is_compiling():
            return
        if self._operators is not None:
            self._torch.cuda.nvtx.range_pop()

    def _name(self, module: Any) -> str:
        if module not in self._names:
            for name, child in module.named_modules(prefix=type(module).__name__):
                self._names.setdefault(child, name)
        return self._names[module]
