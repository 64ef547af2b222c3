"""What a step of a PyTorch script is, and what happens around the wanted ones.

`torch_runner.py` loads this file from its own folder, for ncuroof need not be installed where the user's torch is.
"""

from __future__ import annotations

import ast
import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncuroof.collect.torch_tools import Journal, Tool

STEP_NAME = "__ncuroof_step__"
Function = Callable[..., Any]
AfterImport = Callable[[str, Callable[[Any], object]], None]
_BATCHES = "_BaseDataLoaderIter"
"""What iterates a DataLoader."""

_IS_COROUTINE = 0x80
"""Of a code object's flags (inspect.CO_COROUTINE)."""


class Enough(SystemExit):
    """Ends the script after the last step, past handlers of Exception, through its finally clauses."""


class Window:
    """Counts steps, and has the tools at work during the wanted ones."""

    def __init__(
        self,
        steps: tuple[int, int],
        *,
        stops_after: bool,
        tools: list[Tool],
        journal: Journal,
        when_cuda_begins: Callable[[Callable[[], object]], None],
    ) -> None:
        self._first, self._last = steps
        self._stops_after, self._tools, self._journal = stops_after, tools, journal
        self._when_cuda_begins = when_cuda_begins
        self._at_work: list[Tool] = []
        self._n_done, self._is_open, self._process = 0, False, os.getpid()

    def before_first(self) -> None:
        """Open where the first step is wanted: the tools begin when the script begins to use CUDA."""
        if self._first == 1:
            self._open()

    def step_done(self) -> None:
        """Note the end of a step."""
        if os.getpid() != self._process:
            return
        self._n_done += 1
        self._journal.tell("step", number=self._n_done)
        for tool in self._tools:
            tool.step_done()
        if self._n_done == self._last:
            self.close()
            if self._stops_after:
                raise Enough(0)
        elif self._n_done == self._last + 1 and self._stops_after:
            sys.stderr.write("ncuroof: the script catches what ends it after the last step, and goes on\n")
        elif self._n_done == self._first - 1:
            self._open()
        elif self._is_open and not self._at_work:
            self._begins_without_torch()

    def close(self) -> None:
        """Close if it is open, which it is at the end of a script that has fewer steps than wanted."""
        if self._is_open and os.getpid() == self._process:
            self._is_open = False
            while self._at_work:
                self._at_work.pop().stop()
            self._journal.tell("stop", after=self._n_done)

    def _open(self) -> None:
        self._is_open = True
        if not self._begins_without_torch():
            self._when_cuda_begins(self._begin)

    def _begins_without_torch(self) -> bool:
        """Begin if steps of a script of another library were made: it has begun to use CUDA by then, if it ever does."""
        if self._n_done and "torch" not in sys.modules:
            self._begin()
        return bool(self._at_work)

    def _begin(self) -> None:
        if self._is_open and not self._at_work:
            self._journal.tell("start", before=self._n_done + 1)
            for tool in self._tools:
                tool.start()
                self._at_work.append(tool)


def count_steps(of: str, window: Window, after_import: AfterImport) -> str | None:
    """Count what a step is; return the script's function whose calls are steps, or None."""
    if of == "optimizer":
        after_import("torch.optim.optimizer", lambda module: _count_optimizer_steps(window, module))
    elif of == "dataloader":
        after_import("torch.utils.data.dataloader", lambda module: _count_batches(window, module))
    elif ":" in of:
        name, function = of.split(":", 1)
        after_import(name, lambda module: _count_calls(window, module, function))
    else:
        return of
    return None


def _count_optimizer_steps(window: Window, module: Any) -> None:
    """Take each step of the first optimizer that steps for a step of the script."""
    first: list[Any] = []

    def after_step(stepped: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001  what torch calls a hook with
        if not first:
            first.append(stepped)
        if stepped is first[0]:
            window.step_done()

    module.register_optimizer_step_post_hook(after_step)


def _count_batches(window: Window, module: Any) -> None:
    """Take each batch of a DataLoader for a step: it ends when that loader's next one is asked for."""
    iterator = getattr(module, _BATCHES)
    fetch = iterator.__next__

    def counted_fetch(batches: Any) -> Any:
        if batches.__dict__.pop("_ncuroof_in_hand", False):
            window.step_done()
        batch = fetch(batches)
        batches.__dict__["_ncuroof_in_hand"] = True
        return batch

    iterator.__next__ = counted_fetch


def _count_calls(window: Window, module: Any, name: str) -> None:
    """Take each call of a module's function for a step; the name may lie within a class."""
    *path, last = name.split(".")
    try:
        owner = functools.reduce(getattr, path, module)
        setattr(owner, last, counted(window)(getattr(owner, last)))
    except (AttributeError, TypeError) as error:
        raise SystemExit(f"ncuroof: calls of {module.__name__}:{name} cannot be counted: {error}") from None


def counted(window: Window) -> Callable[[Function], Function]:
    """Return a decorator that takes each call of a function for a step."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            window.step_done()
            return result

        @functools.wraps(function)
        async def call_and_wait(*args: Any, **kwargs: Any) -> Any:
            result = await function(*args, **kwargs)
            window.step_done()
            return result

        code = getattr(function, "__code__", None)
        return call_and_wait if getattr(code, "co_flags", 0) & _IS_COROUTINE else call

    return decorate


class Decorate(ast.NodeTransformer):
    """Decorates a function of the script; lines stay as they are.

    Attributes:
        is_found: the script has it.
    """

    def __init__(self, name: str) -> None:
        self._wanted, self._path, self.is_found = name.split("."), [""], False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # noqa: D102  as ast calls it
        return self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:  # noqa: D102
        return self._visit_function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:  # noqa: D102
        return self._inside(node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if [*self._path[1:], node.name] == self._wanted:
            node.decorator_list.append(ast.copy_location(ast.Name(STEP_NAME, ast.Load()), node))
            self.is_found = True
        return self._inside(node)

    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> ast.AST:
        self._path.append(node.name)
        self.generic_visit(node)
        self._path.pop()
        return node
