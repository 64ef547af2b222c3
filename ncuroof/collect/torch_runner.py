"""Runs a PyTorch script, unchanged, and profiles some of its steps; it needs the standard library and the user's torch alone.

    python torch_runner.py [OPTIONS] -- SCRIPT|-m MODULE [ARGS]

Under `ncu --profile-from-start off`, the steps of --step N[:M] lie between cudaProfilerStart and cudaProfilerStop; --of says
what a step is, --stop-after ends the script after the last. --annotate opens NVTX ranges. With --count FILE, PyTorch's own
profiler takes ncu's place and writes its trace; with --operators that tells what the host does, too. --status FILE keeps a journal
of what happened, a JSON value per line.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import functools
import importlib
import importlib.util
import io
import os
import re
import runpy
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncuroof.collect.torch_tools import Journal, Tool

HERE = os.path.abspath(__file__)  # noqa: PTH100  this file starts other people's programs: as few modules as it can do with
NO_TORCH = "no-torch"
_STEP_NAME = "__ncuroof_step__"
Function = Callable[..., Any]


class Enough(SystemExit):
    """Ends the script after the last step, past handlers of Exception, through its finally clauses."""


class Window:
    """Counts steps, and has the tools at work during the wanted ones."""

    def __init__(self, steps: tuple[int, int], *, stops_after: bool, tools: list[Tool], journal: Journal) -> None:
        self._first, self._last = steps
        self._stops_after, self._tools, self._journal = stops_after, tools, journal
        self._n_done, self._is_open, self._process = 0, False, os.getpid()

    def before_first(self) -> None:
        """Open at once where the first step is wanted."""
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
        elif self._n_done == self._first - 1:
            self._open()

    def close(self) -> None:
        """Close if it is open, which it is at the end of a script that has fewer steps than wanted."""
        if self._is_open and os.getpid() == self._process:
            self._is_open = False
            for tool in reversed(self._tools):
                tool.stop()
            self._journal.tell("stop", after=self._n_done)

    def _open(self) -> None:
        self._is_open = True
        self._journal.tell("start", before=self._n_done + 1)
        for tool in self._tools:
            tool.start()


def count_optimizer_steps(window: Window) -> None:
    """Take each step of the first optimizer that steps for a step of the script."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    first: list[Any] = []

    def after_step(stepped: Any, args: Any, kwargs: Any) -> None:  # noqa: ARG001  what torch calls a hook with
        if not first:
            first.append(stepped)
        if stepped is first[0]:
            window.step_done()

    register_optimizer_step_post_hook(after_step)


def count_batches(window: Window) -> None:
    """Take each batch of the first DataLoader that is iterated for a step: it ends when the next one is asked for."""
    from torch.utils import data
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    first: list[Any] = []
    in_hand: list[bool] = []
    iterate, fetch = data.DataLoader.__iter__, _BaseDataLoaderIter.__next__

    def counted_iterate(loader: Any) -> Any:
        batches = iterate(loader)
        if not first:
            first.append(loader)
        batches.__dict__["_ncuroof_counts"] = loader is first[0]
        return batches

    def counted_fetch(batches: Any) -> Any:
        if not batches.__dict__.get("_ncuroof_counts"):
            return fetch(batches)
        if in_hand:
            in_hand.clear()
            window.step_done()
        batch = fetch(batches)
        in_hand.append(True)
        return batch

    data.DataLoader.__iter__, _BaseDataLoaderIter.__next__ = counted_iterate, counted_fetch


def counted(window: Window) -> Callable[[Function], Function]:
    """Return a decorator that takes each call of a function for a step."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            window.step_done()
            return result

        return call

    return decorate


def count_calls(window: Window, module: str, name: str) -> None:
    """Take each call of a module's function for a step; the name may lie within a class."""
    *path, last = name.split(".")
    owner = functools.reduce(getattr, path, importlib.import_module(module))
    setattr(owner, last, counted(window)(getattr(owner, last)))


class _Decorate(ast.NodeTransformer):
    """Decorates a function of the script; lines stay as they are."""

    def __init__(self, name: str) -> None:
        self._wanted, self._path, self.is_found = name.split("."), [""], False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if [*self._path[1:], node.name] == self._wanted:
            node.decorator_list.append(ast.copy_location(ast.Name(_STEP_NAME, ast.Load()), node))
            self.is_found = True
        return self._inside(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._inside(node)

    def _inside(self, node: ast.FunctionDef | ast.ClassDef) -> ast.AST:
        self._path.append(node.name)
        self.generic_visit(node)
        self._path.pop()
        return node


def run_script(path: str, *, step_name: str | None, window: Window) -> None:
    """Run a script as `python path` does; return after it has ended.

    Args:
        path: of the script.
        step_name: function of the script whose calls are steps, or None.
        window: that counts them.
    """
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __cached__=None, __builtins__=__builtins__)
    try:
        with io.open_code(os.path.abspath(path)) as file:  # noqa: PTH100
            tree: Any = ast.parse(file.read(), path)
        if step_name is not None:
            transform = _Decorate(step_name)
            tree = transform.visit(tree)
            if not transform.is_found:
                raise SystemExit(f"ncuroof: {path} has no function {step_name!r} to count the calls of")
            module.__dict__[_STEP_NAME] = counted(window)
        code = compile(tree, path, "exec", dont_inherit=True)
        module.__dict__["__ncuroof_runner__"] = sys.modules["__main__"]  # keeps this module's globals
        sys.modules["__main__"] = module
        exec(code, module.__dict__)  # noqa: S102  the user's own script
    except Exception:
        _tell_without_us()
        sys.exit(1)


def _tell_without_us() -> None:
    """Print an exception as the interpreter does, without this file's frames at its top."""
    kind, error, trace = sys.exc_info()
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    if kind is not None and error is not None:
        sys.excepthook(kind, error.with_traceback(trace), trace)


def _arguments(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--step", type=lambda text: (int(text.split(":")[0]), int(text.split(":")[-1])))
    parser.add_argument("--of", default="optimizer")
    parser.add_argument("--stop-after", action="store_true")
    parser.add_argument("--annotate", action="store_true")
    parser.add_argument("--count")
    parser.add_argument("--operators", action="store_true")
    parser.add_argument("--status")
    place = words.index("--")
    options = parser.parse_args(words[:place])
    options.count, options.status = _of_rank(options.count), _of_rank(options.status)
    return options, words[place + 1 :]


def _of_rank(path: str | None) -> str | None:
    """Return a path with the values of variables in place of %q{NAME}, as ncu has it in the names of reports."""
    return path and re.sub(r"%q\{(\w+)\}", lambda match: os.environ.get(match[1], ""), path)


def _sibling(name: str) -> Any:
    """Return the module in the file beside this one."""
    spec = importlib.util.spec_from_file_location(f"ncuroof_{name}", os.path.join(os.path.dirname(HERE), f"{name}.py"))  # noqa: PTH118, PTH120
    assert spec is not None  # noqa: S101  for the type checker
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _count_steps(of: str, window: Window) -> str | None:
    """Count what a step is; return the script's function whose calls are steps, or None."""
    if of == "optimizer":
        count_optimizer_steps(window)
    elif of == "dataloader":
        count_batches(window)
    elif ":" in of:
        count_calls(window, *of.split(":", 1))
    else:
        return of
    return None


def main(words: list[str]) -> None:
    """Run the script that `words` name inside the hooks that they ask for."""
    options, program = _arguments(words)
    at_work = _sibling("torch_tools")
    journal: Journal = at_work.Journal(options.status)
    if options.count and importlib.util.find_spec("torch") is None:
        journal.tell(NO_TORCH)
        return
    is_module = program[0] == "-m"
    sys.argv = program[1:] if is_module else program
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(HERE):  # noqa: PTH100, PTH120
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.realpath(program[0]))  # noqa: PTH109, PTH120
    tools: list[Tool] = [at_work.Annotations(journal)] if options.annotate else []
    if options.count:
        tools.insert(0, at_work.Counting(options.count, journal, with_operators=options.operators))
    elif options.step:
        tools.insert(0, at_work.CudaProfiler())
    window = Window(options.step or (1, 0), stops_after=options.stop_after, tools=tools, journal=journal)
    atexit.register(window.close)
    step_name = _count_steps(options.of, window) if options.step else None
    if is_module and step_name is not None:
        raise SystemExit(
            f"ncuroof: {step_name!r} cannot be counted in a module that runs with -m: run its file instead"
        )
    window.before_first()
    try:
        if is_module:
            runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        else:
            run_script(program[0], step_name=step_name, window=window)
    finally:
        window.close()


if __name__ == "__main__":
    main(sys.argv[1:])
