"""What is at work inside the user's PyTorch process while the wanted steps run: profilers, NVTX ranges, a journal.

`torch_runner.py` loads this file from its own folder, for ncuroof need not be installed where the user's torch is.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys
import time
import weakref
from collections import deque
from typing import Any

_N_EARLIER_STEPS = 5


class Journal:
    """Tells the caller what happened, in order."""

    def __init__(self, path: str | None) -> None:
        self._file = open(path, "a", encoding="utf-8") if path else None  # noqa: SIM115, PTH123  open to the end
        self._process = os.getpid()

    def tell(self, event: str, **more: object) -> None:
        """Add an event; a forked worker's are left out."""
        if self._file is not None and os.getpid() == self._process:
            self._file.write(json.dumps({"event": event, **more}) + "\n")
            self._file.flush()


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
            torch.cuda.synchronize()
            getattr(torch.cuda.cudart(), name)()


class Counting(Tool):
    """Counts launches with PyTorch's profiler, and leaves its trace in a file; times the steps before it is at work."""

    def __init__(self, path: str, journal: Journal, *, with_operators: bool = False) -> None:
        self._path, self._journal, self._with_operators = path, journal, with_operators
        self._profile: Any = None
        self._began_ns = 0
        self._batches = BatchClock()
        self._ends: deque[Any] = deque(maxlen=_N_EARLIER_STEPS + 1)

    def start(self) -> None:
        """Count from here on."""
        import torch

        activity = torch.profiler.ProfilerActivity
        is_cuda = torch.cuda.is_available()
        if is_cuda:
            torch.cuda.synchronize()
        on_gpu = [activity.CUDA] if is_cuda else []
        on_host = [activity.CPU] if self._with_operators or not is_cuda else []
        self._profile = torch.profiler.profile(activities=on_gpu + on_host)
        self._profile.start()
        self._batches.start()
        self._began_ns = time.perf_counter_ns()

    def stop(self) -> None:
        """Count no more, write the trace, and tell the times."""
        import torch

        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times_ns = {"duration_ns": time.perf_counter_ns() - self._began_ns, "batches_ns": self._batches.waited_ns}
        self._profile.stop()
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
        with contextlib.suppress(ImportError, AttributeError):
            from torch.utils.data.dataloader import _BaseDataLoaderIter

            self._wrap(_BaseDataLoaderIter)

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
    """NVTX ranges: modules by their place in the model, operators by PyTorch's own ranges, with the shapes of their inputs."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._operators: Any = None
        self._torch: Any = None

    def start(self) -> None:
        """Annotate from here on."""
        import torch
        from torch.nn.modules import module

        self._torch = torch
        self._handles = [
            module.register_module_forward_pre_hook(self._enter),
            module.register_module_forward_hook(self._leave, always_call=True),
        ]
        if torch.cuda.is_available():
            self._operators = torch.autograd.profiler.emit_nvtx(record_shapes=True)
            self._operators.__enter__()

    def stop(self) -> None:
        """Annotate no more."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._operators is not None:
            operators, self._operators = self._operators, None
            operators.__exit__(None, None, None)

    def _enter(self, module: Any, inputs: Any) -> None:
        if self._torch.compiler.is_compiling():  # a range would break the graph
            return
        shapes = ", ".join(str(list(each.shape)) for each in inputs if isinstance(each, self._torch.Tensor))
        text = f"{self._name(module)} ({type(module).__name__}) {shapes}".rstrip()
        self._journal.tell("push", text=text)
        if self._torch.cuda.is_available():
            self._torch.cuda.nvtx.range_push(text)

    def _leave(self, module: Any, inputs: Any, output: Any) -> None:  # noqa: ARG002  what torch calls a hook with
        if self._torch.compiler.is_compiling():
            return
        self._journal.tell("pop")
        if self._torch.cuda.is_available():
            self._torch.cuda.nvtx.range_pop()

    def _name(self, module: Any) -> str:
        if module not in self._names:
            for name, child in module.named_modules(prefix=type(module).__name__):
                self._names.setdefault(child, name)
        return self._names[module]
