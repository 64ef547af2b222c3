"""What is at work inside the user's PyTorch process while the wanted steps run: profilers, NVTX ranges, a journal.

`torch_runner.py` loads this file from its own folder, for ncuroof need not be installed where the user's torch is.
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
"""Variables in which launchers tell a process its number on its machine: torchrun, Open MPI, MPICH, Slurm."""


class Journal:
    """Tells the caller what happened, in order."""

    def __init__(self, path: str | None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if path else -1
        self._process = os.getpid()

    def tell(self, event: str, **more: object) -> None:
        """Add an event; a forked worker's are left out."""
        if self._file >= 0 and os.getpid() == self._process:
            with contextlib.suppress(OSError):  # a full disk is told by what is missing
                os.write(self._file, (json.dumps({"event": event, **more}) + "\n").encode())


class Tool:
    """What is at work while the wanted steps run."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End."""

    def step_done(self) -> None:
        """Note the end of a step, be it before the wanted ones."""


class CudaProfiler(Tool):
    """Tells the profiler that watches this process from outside when to record."""

    def start(self) -> None:  # noqa: D102  as Tool says
        self._call("cudaProfilerStart")

    def stop(self) -> None:  # noqa: D102
        self._call("cudaProfilerStop")

    def _call(self, name: str) -> None:
        torch = sys.modules.get("torch")
        if torch is None:  # a script of another library: the driver has the same call
            with contextlib.suppress(OSError):
                getattr(ctypes.CDLL("libcuda.so.1"), name.replace("cuda", "cu", 1))()
        elif torch.cuda.is_available():
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()
            with torch.cuda.device(_own_device(torch)):  # on which the call makes a context
                getattr(torch.cuda.cudart(), name)()


def _own_device(torch: Any) -> int:
    """Return the GPU that a rank uses by custom before it has chosen one; -1, which changes nothing, after that."""
    named = next((os.environ[name] for name in _LOCAL_RANKS if os.environ.get(name, "").isdigit()), "-1")
    return -1 if torch.cuda.is_initialized() or int(named) >= torch.cuda.device_count() else int(named)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


class OnlyOurs:
    """Keeps the script's own profilers from beginning where ours works: two at a time end the process.

    They are there as ever, and have recorded nothing.
    """

    def __init__(self) -> None:
        self._is_ours = False

    def take_over(self, profiler: Any) -> None:
        """Put ourselves between the module `torch.autograd.profiler` and what it calls."""
        for name, instead in (
            ("_prepare_profiler", None),
            ("_enable_profiler", None),
            ("_disable_profiler", Nothing()),
        ):
            setattr(profiler, name, self._if_ours(getattr(profiler, name), instead))

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Let through what is called meanwhile: it is ours, and what PyTorch advises of several cycles is not for the user."""
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
    """A profiler's results without any event."""

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
    """Counts launches with PyTorch's profiler, and leaves its trace in a file; times the steps before it is at work."""

    def __init__(
        self, path: str, journal: Journal, only_ours: OnlyOurs, batches: BatchClock, *, with_operators: bool = False
    ) -> None:
        self._path, self._journal, self._with_operators = path, journal, with_operators
        self._only_ours, self._batches = only_ours, batches
        self._profile: Any = None
        self._began_ns = 0
        self._ends: deque[Any] = deque(maxlen=_N_EARLIER_STEPS + 1)

    def start(self) -> None:
        """Count from here on; not in a thread of the script's, for the profiler's state is its thread's, and ends with it."""
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
        with self._only_ours.at_work():
            self._profile.start()
        self._batches.start()
        self._began_ns = time.perf_counter_ns()

    def stop(self) -> None:
        """Count no more, write the trace, and tell the times."""
        torch = sys.modules.get("torch")
        if self._profile is None or torch is None:
            return
        if not _is_main_thread():  # to stop it here would end the process
            self._journal.tell("not-counted")
            return
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        times_ns = {"duration_ns": time.perf_counter_ns() - self._began_ns, "batches_ns": self._batches.waited_ns}
        with self._only_ours.at_work():
            self._profile.stop()
        with contextlib.suppress(OSError, RuntimeError):  # such as a full disk: the caller misses the trace
            self._profile.export_chrome_trace(self._path)
        self._journal.tell("counted", **times_ns, earlier_steps_ns=self._earlier_steps_ns())

    def step_done(self) -> None:
        """Note when the GPU ends the step, which the host does not wait for."""
        torch = sys.modules.get("torch")
        if self._profile is not None or torch is None or not torch.cuda.is_initialized():
            return
        if not torch.cuda.is_current_stream_capturing():  # an event would become part of the script's graph
            end = torch.cuda.Event(enable_timing=True)
            end.record()
            self._ends.append(end)

    def _earlier_steps_ns(self) -> list[float]:
        ends = list(self._ends)
        with contextlib.suppress(RuntimeError):  # such as events of several GPUs
            return [1e6 * start.elapsed_time(end) for start, end in zip(ends, ends[1:])]  # noqa: B905, RUF007  Python 3.9
        return []


class BatchClock:
    """Sums how long the process waits for batches of its DataLoaders; None where PyTorch has them otherwise than it had."""

    def __init__(self) -> None:
        self.waited_ns: int | None = None
        self._loader: Any = None

    def watch(self, module: Any) -> None:
        """Time the batches of the module `torch.utils.data.dataloader`."""
        loader = getattr(module, "_BaseDataLoaderIter", None)
        if loader is not None:
            self._wrap(loader)

    def start(self) -> None:
        """Sum from here on."""
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
    """NVTX ranges: modules by their place in the model, operators by PyTorch's own ranges, with the shapes of their inputs.

    PyTorch's own go on to the end of the process. The last step ends within ranges of the script's (`Optimizer.step` is one), and
    PyTorch 2.11 prints an internal assertion and a page of frames for each range that ends after `emit_nvtx` has.
    """

    def __init__(self, only_ours: OnlyOurs) -> None:
        self._only_ours = only_ours
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._operators: Any = None
        self._torch: Any = None

    def start(self) -> None:
        """Annotate from here on."""
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
            with self._only_ours.at_work():
                self._operators.__enter__()

    def stop(self) -> None:
        """Annotate modules no more."""
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
        except Exception:  # such as a nested tensor, which has no shape: no name is worth the user's run
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
