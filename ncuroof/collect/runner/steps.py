"""Count the steps of a PyTorch script, and start and stop the tools around the wanted steps.

`runner.py` loads this file from its own folder, because ncuroof need not be installed in the Python that has PyTorch.
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
    from ncuroof.collect.runner.tools import Journal, Tool

STEP_NAME = "__ncuroof_step__"
Function = Callable[..., Any]
AfterImport = Callable[[str, Callable[[Any], object]], None]
_BATCHES = "_BaseDataLoaderIter"
"""Base class of a DataLoader's iterators."""

_IS_GENERATOR, _IS_COROUTINE, _IS_ASYNC_GENERATOR = 0x20, 0x80, 0x200
"""Flags of a code object (inspect.CO_GENERATOR and so on)."""

_MOST_BETWEEN = 5
"""Steps that another optimizer may make between two of the leader: n_critic of WGAN (arXiv:1701.07875), WGAN-GP (1704.00028)."""

_STEPS_FRAME = "wrapper"
"""Function inside torch.optim.Optimizer.profile_hook_step that calls the step and then the hooks."""


class Window:
    """Counts steps, and keeps the tools running during the wanted ones."""

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
        """End the script before its first step, because its steps cannot be counted."""
        self._journal.tell("refused", why=why)
        raise SystemExit(f"ncuroof: {why}")

    def pass_over(self) -> None:
        """Note a step of an optimizer that does not count."""
        self._n_passed_over += 1

    def before_first(self) -> None:
        """Open the window if the first step is wanted: the tools start when the script starts to use CUDA."""
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
                raise SystemExit(0)  # not caught by `except Exception`; runs finally clauses
        elif self._n_done == self._last + 1 and self._stops_after:
            sys.stderr.write(
                "ncuroof: the script catches the SystemExit that ends it after the last step, and runs on\n"
            )
        elif self._n_done == self._first - 1:
            self._open()
        elif self._is_open and not self._at_work:
            self._begins_without_torch()

    def close(self) -> None:
        """Close the window if it is open. It is still open at the script's end if there were fewer steps than wanted."""
        if self._is_open and os.getpid() == self._process:
            self._is_open = False
            while self._at_work:
                self._at_work.pop().stop()
            self._journal.tell("stop", after=self._n_done)

    def end(self) -> None:
        """Close the window at the script's end, and report the steps that did not count."""
        self.close()
        if self._n_passed_over:
            self._journal.tell("passed-over", n_steps=self._n_passed_over)
            self._n_passed_over = 0

    def _open(self) -> None:
        self._is_open = True
        if not self._begins_without_torch():
            self._when_cuda_begins(self._begin)

    def _begins_without_torch(self) -> bool:
        """Start the tools after a step of a script without PyTorch: it has used CUDA by then, if it ever does."""
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
    """Start counting the steps that `of` names. If it is a function of the script, return its name: the caller decorates it."""
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
    """Count each step of the leading optimizer as a step of the script.

    The first to step leads, until it is deleted, or until another one steps more than `_MOST_BETWEEN` times without a step of the
    leader: scripts create new optimizers for each epoch or phase.
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
    """Return whether an optimizer's step was called by its subclass's step, after which PyTorch calls the hooks again."""
    n_steps, frame = 0, sys._getframe(1)  # noqa: SLF001  avoids importing inspect
    while frame is not None and n_steps < 2:
        if frame.f_code.co_name == _STEPS_FRAME and frame.f_globals is module.__dict__:
            n_steps += (frame.f_locals.get("args") or (None,))[0] is stepped
        frame = frame.f_back  # type: ignore[assignment]
    return n_steps == 2


def _count_batches(window: Window, module: Any) -> None:
    """Count each batch of a DataLoader as a step, which ends when the same loader is asked for the next batch."""
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
    """Count each call of a module's function, perhaps in a class, as a step."""
    *path, last = name.split(".")
    full_name = f"{module.__name__}:{name}"
    try:
        owner = functools.reduce(getattr, path, module)
        setattr(owner, last, counted(window, full_name)(_unbound_attribute(owner, last)))
    except (AttributeError, TypeError) as error:
        window.refuse(f"calls of {full_name} cannot be counted: {error}")


def _unbound_attribute(owner: Any, name: str) -> Any:
    """Return an attribute as the class defines it, not bound, so that a static method stays a static method."""
    for each in owner.__mro__ if isinstance(owner, type) else ():
        if name in each.__dict__:
            return each.__dict__[name]
    return getattr(owner, name)


def counted(window: Window, name: str) -> Callable[[Any], Any]:
    """Return a decorator that counts each call of a function, method or property as a step; a generator counts when it ends."""

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
        if isinstance(result, types.CoroutineType):  # a plain decorator around a coroutine function
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
    """Wraps a callable object that is not a function, such as those of compilers and click, only to count its calls."""

    def __init__(self, window: Window, whole: Any) -> None:
        self._ncuroof_window, self._ncuroof_whole = window, whole
        self._ncuroof_call = _call(window, whole)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._ncuroof_whole)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ncuroof_call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_ncuroof"):  # not yet set in a copy, whose __init__ does not run
            raise AttributeError(name)
        return getattr(self._ncuroof_whole, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        bind = getattr(type(self._ncuroof_whole), "__get__", None)
        return self if bind is None else _Callable(self._ncuroof_window, bind(self._ncuroof_whole, instance, owner))


_CALLS = {0: _call, _IS_COROUTINE: _call_and_wait, _IS_GENERATOR: _exhaust}


class Decorate(ast.NodeTransformer):
    """Decorates the step function in the script's syntax tree, without changing line numbers.

    The new decorator is the outermost one, because a compiler among the others would trace the counting and run it only once.

    Attributes:
        is_found: the script has the function.
    """

    def __init__(self, name: str) -> None:
        self._wanted, self._path, self.is_found = name.split("."), [""], False

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

    visit_FunctionDef = visit_AsyncFunctionDef = _visit_function  # noqa: N815  as ast calls them
    visit_ClassDef = _inside  # noqa: N815
