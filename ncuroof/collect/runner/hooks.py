"""Hooks for the import of a module and the initialisation of CUDA, so that neither happens before the script does it.

`runner.py` loads this file from its own folder, because ncuroof need not be installed in the Python that has PyTorch.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_CUDA_CALLS_LATER = "_lazy_call"
"""Function of torch.cuda that calls a given function when CUDA has been initialised, or at once if it has been."""


class _AfterImport:
    """A finder on sys.meta_path that delegates to the other finders, and calls functions once a module has been executed."""

    def __init__(self) -> None:
        self._calls: dict[str, list[Callable[[Any], object]]] = {}

    def add(self, name: str, call: Callable[[Any], object]) -> None:
        self._calls.setdefault(name, []).append(call)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._calls:
            return None
        finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path if finder is not self)
        specs = (find(name, path, target) for find in finders if find is not None)
        spec = next((found for found in specs if found is not None), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._call_after(spec.loader, name)
        return spec

    def _call_after(self, loader: Any, name: str) -> None:
        execute = loader.exec_module

        def execute_and_call(module: Any) -> None:
            execute(module)
            if module.__name__ == name:
                for call in self._calls.pop(name, ()):
                    call(module)

        loader.exec_module = execute_and_call


_AFTER_IMPORT = _AfterImport()


def after_import(name: str, call: Callable[[Any], object]) -> None:
    """Call a function with a module when the script has imported it; at once if it is imported already."""
    if name in sys.builtin_module_names:  # they all share one loader class, which must not be changed
        importlib.import_module(name)
    if name in sys.modules:
        call(sys.modules[name])
        return
    if _AFTER_IMPORT not in sys.meta_path:
        sys.meta_path.insert(0, _AFTER_IMPORT)  # type: ignore[arg-type]
    _AFTER_IMPORT.add(name, call)


def when_cuda_begins(call: Callable[[], object]) -> None:
    """Call a function when PyTorch has initialised CUDA, before the first launch; at once if it has been initialised.

    With a PyTorch built without CUDA, call it when PyTorch is imported. Never call it in a process that the script forks.
    """
    process = os.getpid()

    def in_this_process() -> None:
        if os.getpid() == process:
            call()

    def with_torch(torch: Any) -> None:
        cuda, backends = getattr(torch, "cuda", None), getattr(torch, "backends", None)
        if cuda is None or backends is None:  # a different module named torch
            return
        call_later = getattr(cuda, _CUDA_CALLS_LATER, None)
        if backends.cuda.is_built() and call_later is not None:
            call_later(in_this_process)
        else:
            in_this_process()

    after_import("torch", with_torch)
