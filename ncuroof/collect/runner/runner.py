"""Run an unchanged PyTorch script and profile some of its steps, with only the standard library and the user's PyTorch.

    python runner.py [OPTIONS] -- SCRIPT|-m MODULE [ARGS]

--step N[:M] puts these steps between cudaProfilerStart and cudaProfilerStop, for `ncu --profile-from-start off`. --of says what a
step is, and --stop-after ends the script after the last one. --annotate opens NVTX ranges. With --count FILE, PyTorch's profiler
is used instead of ncu, and writes its trace; with --operators the trace also has the operators of the host. --status FILE keeps a
journal of what happened, a JSON object per line.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import importlib.machinery
import importlib.util
import io
import os
import re
import runpy
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncuroof.collect.runner.steps import Window
    from ncuroof.collect.runner.tools import Journal, Tool

HERE = os.path.abspath(__file__)  # noqa: PTH100  it starts programs of users: as few imports as possible


def run_script(path: str, *, step_name: str | None, window: Window, steps: Any) -> None:
    """Run a script as `python path` does, and return when it has ended.

    Args:
        path: path of the script.
        step_name: function of the script whose calls are steps, or None.
        window: counts the steps.
        steps: the module `steps`.
    """
    if os.path.isdir(path):  # noqa: PTH112
        runpy.run_path(path, run_name="__main__")
        return
    path = os.path.abspath(path)  # noqa: PTH100  absolute as in Python since 3.9
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=path,
        __cached__=None,
        __builtins__=__builtins__,
        __loader__=importlib.machinery.SourceFileLoader("__main__", path),
    )
    try:
        with io.open_code(path) as file:
            tree: Any = ast.parse(file.read(), path)
        if step_name is not None:
            transform = steps.Decorate(step_name)
            tree = transform.visit(tree)
            if not transform.is_found:
                window.refuse(f"{path} has no function {step_name!r} whose calls could be counted")
            module.__dict__[steps.STEP_NAME] = steps.counted(window, step_name)
        code = compile(tree, path, "exec", dont_inherit=True)
        module.__dict__["__ncuroof_runner__"] = sys.modules["__main__"]  # keeps this module's globals
        sys.modules["__main__"] = module
        exec(code, module.__dict__)  # noqa: S102  the user's own script
    except Exception:
        _print_exception()
        sys.exit(1)


def _print_exception() -> None:
    """Print the current exception as the interpreter does, without this file's frames at the top of the traceback."""
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
    """Return a path with each %q{NAME} replaced by that environment variable's value, as ncu does in report names."""
    return path and re.sub(r"%q\{(\w+)\}", lambda match: os.environ.get(match[1], ""), path)


def _sibling(name: str) -> Any:
    """Load and return the module `name` from the file beside this one."""
    spec = importlib.util.spec_from_file_location(f"ncuroof_{name}", os.path.join(os.path.dirname(HERE), f"{name}.py"))  # noqa: PTH118, PTH120
    assert spec is not None  # noqa: S101  for the type checker
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # torch.compile looks up there what it traces
    spec.loader.exec_module(module)
    return module


def _tools(options: argparse.Namespace, tools: Any, journal: Journal, after_import: Any) -> list[Tool]:
    """Return the tools that the options ask for."""
    script_profilers = tools.ScriptProfilers()
    if options.count or options.annotate:
        after_import("torch.autograd.profiler", script_profilers.take_over)
    annotations = [tools.Annotations(script_profilers)] if options.annotate else []
    if options.count:
        batches = tools.BatchClock()
        after_import("torch.utils.data.dataloader", batches.watch)
        return [tools.Counting(options.count, journal, script_profilers, batches, with_operators=options.operators)]
    return [*([tools.CudaProfiler()] if options.step else []), *annotations]


def main(words: list[str]) -> None:
    """Run the script or module in `words` (`[OPTIONS] -- SCRIPT|-m MODULE [ARGS]`) with the tools that the options ask for."""
    options, program = _arguments(words)
    hooks, steps, tools = map(_sibling, ("hooks", "steps", "tools"))
    journal: Journal = tools.Journal(options.status)
    if options.count and importlib.util.find_spec("torch") is None:
        journal.tell("no-torch")
        return
    is_module = program[0] == "-m"
    sys.argv = program[1:] if is_module else program
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(HERE):  # noqa: PTH100, PTH120
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.realpath(program[0]))  # noqa: PTH109, PTH120
    journal.tell("began")
    window = steps.Window(
        options.step or (1, 0),
        stops_after=options.stop_after,
        tools=_tools(options, tools, journal, hooks.after_import),
        journal=journal,
        when_cuda_begins=hooks.when_cuda_begins,
    )
    atexit.register(window.end)
    step_name = steps.count_steps(options.of, window, hooks.after_import) if options.step else None
    if is_module and step_name is not None:
        window.refuse(
            f"calls of {step_name!r} cannot be counted in a module run with -m: use --step-of MODULE:NAME, or run its file"
        )
    window.before_first()
    try:
        if is_module:
            runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        else:
            run_script(program[0], step_name=step_name, window=window, steps=steps)
    finally:
        window.end()


if __name__ == "__main__":
    main(sys.argv[1:])
