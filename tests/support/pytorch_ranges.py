"""Derives the NVTX ranges that PyTorch's `emit_nvtx(record_shapes=True)` would open from what its profiler saw on the CPU.

Both record the same events; the texts are those of `getNvtxStr` in torch/csrc/profiler/util.cpp. On GPUs, gradients are computed
on a separate thread, so that no range around `backward()` is in their paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Path = tuple[str, ...]


@contextmanager
def module_ranges(torch: Any, network: Any) -> Iterator[None]:
    """Open a range for each module's forward pass, as `ncuroof profile --annotate` does."""
    names = {module: name for name, module in network.named_modules(prefix=type(network).__name__)}
    opened: list[Any] = []

    def enter(module: Any, inputs: Any) -> None:
        shapes = ", ".join(str(list(each.shape)) for each in inputs)
        opened.append(torch.autograd.profiler.record_function(f"{names[module]} ({type(module).__name__}) {shapes}"))
        opened[-1].__enter__()

    def leave(_module: Any, _inputs: Any, _output: Any) -> None:
        opened.pop().__exit__(None, None, None)

    hooks = torch.nn.modules.module
    handles = [hooks.register_module_forward_pre_hook(enter), hooks.register_module_forward_hook(leave)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def paths(profile: Any) -> list[Path]:
    """Return the open ranges, outermost first, of each operator that calls no other operator, in execution order."""
    events = sorted(
        profile.profiler.kineto_results.events(), key=lambda event: (event.start_ns(), -event.duration_ns())
    )
    found: list[Path] = []
    opened: list[tuple[int, str]] = []
    is_leaf = False
    for number, event in enumerate(events, start=1):
        while opened and opened[-1][0] <= event.start_ns():
            if is_leaf:
                found.append(tuple(text for _, text in opened))
            is_leaf = False
            opened.pop()
        opened.append((event.start_ns() + event.duration_ns(), _text(event, number)))
        is_leaf = True
    return [*found, tuple(text for _, text in opened)]


def _text(event: Any, number: int) -> str:
    sequence = f", seq = {event.sequence_nr()}" if event.sequence_nr() >= 0 else ""
    sizes = f", sizes = {event.shapes()}" if event.shapes() else ""
    return f"{event.name()}{sequence}, op_id = {number}{sizes}"
