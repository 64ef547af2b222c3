"""What a step of a PyTorch script is, and what happens around the wanted ones.

`torch_runner.py` loads this file from its own folder, for ncuroof need not be installed where the user's torch is.
"""

from __future__ import annotations

import ast
import functools
import os
import sys
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from ncuroof.collect.torch_tools import Journal, Tool

STEP_NAME = "__ncuroof_step__"
Function = Callable[..., Any]
AfterImport = Callable[[str, Callable[[Any], object]], None]
_BATCHES = "_BaseDataLoaderIter"
"""What iterates a DataLoader."""

_IS_GENERATOR, _IS_COROUTINE, _IS_ASYNC_GENERATOR = 0x20, 0x80, 0x200
"""Of a code object's flags (inspect.CO_GENERATOR and so on)."""

_MOST_BETWEEN = 5
"""Steps of a critic for each one of the generator: n_critic of WGAN (arXiv:1701.07875) and WGAN-GP (arXiv:1704.00028)."""

_STEPS_FRAME = "wrapper"
"""Of torch.optim.Optimizer.profile_hook_step: what calls a step and then the hooks."""


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
        self._n_passed_over = 0

    def refuse(self, why: str) -> NoReturn:
        """End the script before its first step, which cannot be counted."""
        self._journal.tell("refused", why=why)
        raise SystemExit(f"ncuroof: {why}")

    def pass_over(self) -> None:
        """Note a step that does not count."""
        self._n_passed_over += 1

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
                raise SystemExit(0)  # past handlers of Exception, through finally clauses
        elif self._n_done == self._last + 1 and self._stops_after:
            sys.stderr.write(
                "ncuroof: the script catches the SystemExit that ends it after the last step, and runs on\n"
            )
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

    def end(self) -> None:
        """Close at the script's end, and tell what did not count."""
        self.close()
        if self._n_passed_over:
            self._journal.tell("passed-over", n_steps=self._n_passed_over)
            self._n_passed_over = 0

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
    """Take each step of the optimizer that leads for a step of the script.

    The first that steps leads, until it is gone, or another one steps more often meanwhile than it may between two of its steps:
    scripts make new ones for each epoch, or for another phase.
    """
    leads: Callable[[], Any] = lambda: None  # noqa: E731  in place of a weak reference
    n_meanwhile: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def after_step(stepped: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001  what torch calls a hook with
        nonlocal leads
        if _is_within_its_own_step(stepped, module):
            return
        leader = leads()
        if leader is None or n_meanwhile.get(stepped, 0) >= _MOST_BETWEEN:
            leads = weakref.ref(stepped)
        elif stepped is not leader:
            n_meanwhile[stepped] = n_meanwhile.get(stepped, 0) + 1
            window.pass_over()
            return
        n_meanwhile.clear()
        window.step_done()

    untraced = getattr(sys.modules.get("torch._compile"), "_disable_dynamo", lambda hook: hook)
    module.register_optimizer_step_post_hook(untraced(after_step))


def _is_within_its_own_step(stepped: Any, module: Any) -> bool:
    """Return whether an optimizer's step was called by that of a subclass, which PyTorch calls hooks after, too."""
    n_steps, frame = 0, sys._getframe(1)  # noqa: SLF001  inspect would be one module more
    while frame is not None and n_steps < 2:
        if frame.f_code.co_name == _STEPS_FRAME and frame.f_globals is module.__dict__:
            n_steps += (frame.f_locals.get("args") or (None,))[0] is stepped
        frame = frame.f_back  # type: ignore[assignment]
    return n_steps == 2


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
    full_name = f"{module.__name__}:{name}"
    try:
        owner = functools.reduce(getattr, path, module)
        setattr(owner, last, counted(window, full_name)(_as_written(owner, last)))
    except (AttributeError, TypeError) as error:
        window.refuse(f"calls of {full_name} cannot be counted: {error}")


def _as_written(owner: Any, name: str) -> Any:
    """Return what a class holds under a name, before it is bound: a static method stays one."""
    for each in owner.__mro__ if isinstance(owner, type) else ():
        if name in each.__dict__:
            return each.__dict__[name]
    return getattr(owner, name)


def counted(window: Window, name: str) -> Callable[[Any], Any]:
    """Return a decorator that takes each call of a function, method or property for a step; of a generator, its end."""

    def decorate(function: Any) -> Any:
        if isinstance(function, (staticmethod, classmethod)):
            return type(function)(decorate(function.__func__))
        if isinstance(function, property):
            return property(decorate(function.fget), function.fset, function.fdel, function.__doc__)
        flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
        kind = "a class" if isinstance(function, type) else "" if callable(function) else type(function).__name__
        if kind or flags & _IS_ASYNC_GENERATOR:
            kind = kind or "an asynchronous generator"
            window.refuse(f"calls of {name} cannot be counted: expected a function, found {kind}")
        if not isinstance(function, types.FunctionType):
            return _Callable(window, function)
        is_of_kind = [kind for kind in (_IS_COROUTINE, _IS_GENERATOR) if flags & kind]
        return _CALLS[is_of_kind[0] if is_of_kind else 0](window, function)

    return decorate


def _call(window: Window, function: Function) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if isinstance(result, types.CoroutineType):  # of a coroutine function inside a decorator that is none
            return _to_the_end(window, result)
        window.step_done()
        return result

    return call


async def _to_the_end(window: Window, coroutine: Any) -> Any:
    result = await coroutine
    window.step_done()
    return result


def _call_and_wait(window: Window, function: Function) -> Function:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await _to_the_end(window, function(*args, **kwargs))

    return call


def _exhaust(window: Window, function: Function) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = yield from function(*args, **kwargs)
        window.step_done()
        return result

    return call


class _Callable:
    """Stands for what can be called and is no function, as compilers and click make of one: all but its calls is as it was."""

    def __init__(self, window: Window, whole: Any) -> None:
        self._ncuroof_window, self._ncuroof_whole = window, whole
        self._ncuroof_call = _call(window, whole)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._ncuroof_whole)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ncuroof_call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_ncuroof"):  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._ncuroof_whole, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        bind = getattr(type(self._ncuroof_whole), "__get__", None)
        return self if bind is None else _Callable(self._ncuroof_window, bind(self._ncuroof_whole, instance, owner))


_CALLS = {0: _call, _IS_COROUTINE: _call_and_wait, _IS_GENERATOR: _exhaust}


class Decorate(ast.NodeTransformer):
    """Decorates a function of the script; lines stay as they are.

    It does so around its other decorators, for compilers among them would trace what counts, and call it once.

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
            node.decorator_list.insert(0, ast.copy_location(ast.Name(STEP_NAME, ast.Load()), node))
            self.is_found = True
        return self._inside(node)

    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> ast.AST:
        self._path.append(node.name)
        self.generic_visit(node)
        self._path.pop()
        return node
