"""Check everything before the program runs, so that no long counting run is wasted on a recording that cannot work."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ncuroof.collect.arguments import LaunchFilter, ncu_command
from ncuroof.collect.doctor import FAILED, PERMISSION, Surroundings, examine
from ncuroof.collect.failures import refusal
from ncuroof.collect.programs import Program, is_python
from ncuroof.collect.recording import Recorder
from ncuroof.collect.request import Steps
from ncuroof.errors import ProfileRequestError, ProfilingError
from ncuroof.temporary_files import temporary_folder

_PATIENCE_S = 60.0
_MOST_NAMED = 8
_NO_DRIVER = ("no-driver", "driver-mismatch")
_IGNORED_IN_TRIAL = ("program-never-used-cuda", "replay-failed")
"""Failures to ignore in ncu's trial run: a program that does nothing causes them."""

_LEFT_TO_NCU = ("ncu", "driver")
"""Checks of `doctor` left to ncu itself, which knows better: nvidia-smi can be missing although the driver is there."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def preflight(recorder: Recorder, machine: Surroundings) -> None:
    """Check the program, the machine, and whether ncu accepts the options.

    Behind a launcher, this machine is not checked, because ranks may run on different machines.

    Raises:
        ProfileRequestError: the request contradicts itself, the script has no such step function, or ncu lacks an option.
        ProfilingError: the program or script does not exist, the machine cannot profile, or ncu refuses the options.
    """
    program = recorder.program
    _check_command((program.launcher or program.words)[0])  # first, because the checks of scripts read the file
    recorder.command()  # raises if the request contradicts itself
    _check_script(recorder)
    if not program.launcher:
        _check_machine(recorder, machine)
    if recorder.counts_first:
        _ask_ncu(recorder)


def _check_command(word: str) -> None:
    if shutil.which(word) is None and not (Path(word).is_file() and os.access(word, os.X_OK)):
        raise _no_program(word)


def _check_script(recorder: Recorder) -> None:
    program = recorder.program
    is_called_from_here = not program.launcher and is_python(program.words[0])  # a wrapper may change the folder first
    script = program.words[program.script] if is_called_from_here and program.script is not None else None
    if script not in (None, "-m") and not Path(str(script)).exists():
        raise ProfilingError(f"{script}: no such script (program-not-found)", hint="check its path")
    if recorder.request.steps is not None and program.script is not None:
        _check_steps(recorder.request.steps, str(program.words[program.script]))


def _no_program(word: str) -> ProfilingError:
    """Return the error for a word that names no program, by what it names instead."""
    if Path(word).is_dir():
        return ProfilingError(
            f"{word}: expected a program, found a directory (program-not-found)", hint="name a program in it"
        )
    if Path(word).exists():
        return ProfilingError(
            f"{word}: is not executable (program-not-found)",
            hint=f"chmod +x {shlex.quote(word)}, or put its interpreter in front",
        )
    if Path(word).name == word:
        return ProfilingError(
            f"{word}: not found on PATH (program-not-found)",
            hint="give its path, or activate the environment that has it; the Python of a script is chosen with --python PATH",
        )
    return ProfilingError(
        f"{word}: no such program (program-not-found)",
        hint="give its path; the Python of a script is chosen with --python PATH",
    )


def _check_steps(steps: Steps, script: str) -> None:
    """Refuse a step function that the script does not define. A function of a module (MODULE:NAME) is checked at its import."""
    of = steps.of
    if not steps.are_calls or ":" in of:
        return
    if script == "-m":
        raise ProfileRequestError(
            f"--step-of {of}: calls of a function cannot be counted in a module run with -m",
            hint="run the module's file instead, or name a function of a module that it imports as MODULE:NAME",
        )
    functions = functions_in(Path(script))
    if functions is None or of in functions:
        return
    alike = [name for name in functions if name.split(".")[-1] == of.rsplit(".", maxsplit=1)[-1]]
    defined = f"it defines {', '.join(functions[:_MOST_NAMED]) or 'no function'}"
    found = f"did you mean {' or '.join(alike)}?" if alike else f"{defined};"
    raise ProfileRequestError(
        f"--step-of {of}: {script} has no such function", hint=f"{found} name functions of other modules as MODULE:NAME"
    )


def _check_machine(recorder: Recorder, machine: Surroundings) -> None:
    for check in examine(machine, recorder.settings):
        if check.state != FAILED or check.name in _LEFT_TO_NCU:
            continue
        if check.name == PERMISSION:  # ncu may be a wrapper with the privilege; without it, ncu reports that itself
            recorder.say(f"warning: {check.name}: {check.found}")
        else:
            raise ProfilingError(f"{check.name}: {check.found}", hint=check.fix)


def _ask_ncu(recorder: Recorder) -> None:
    """Try all options with ncu on a program that does nothing; takes about a second."""
    nothing = shutil.which("true")
    if nothing is None:
        return
    with temporary_folder() as folder:
        is_once = recorder.request.per_shape is not False
        command = ncu_command(
            replace(recorder.request, report=folder / "nothing.ncu-rep"),
            recorder.plan,
            Program((), (nothing,), None, None),
            recorder.settings,
            ncu=str(recorder.ncu),
            selection=LaunchFilter(per_shape=is_once, by_mangled_names=is_once),
            ncu_version=recorder.ncu_version,
        )
        try:
            done = subprocess.run(  # noqa: S603  no shell
                command,
                stdin=subprocess.DEVNULL,  # ours belongs to the program
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PATIENCE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):  # the recording will fail too and say why
            return
    if done.returncode:
        passed_over = (*_IGNORED_IN_TRIAL, *(_NO_DRIVER if recorder.program.launcher else ()))
        error = refusal(done.stdout + done.stderr, recorder.settings.failures, passed_over)
        if error is not None:
            raise error


def functions_in(script: Path) -> list[str] | None:
    """Return the functions in a script, nested ones as `Trainer.step` or `main.step`; None if it cannot be read or parsed."""
    try:
        return list(_functions(ast.parse(script.read_bytes()), ""))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _functions(node: ast.AST, within: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        name = f"{within}{child.name}" if isinstance(child, _SCOPES) else ""
        if name and not isinstance(child, ast.ClassDef):
            yield name
        yield from _functions(child, f"{name}." if name else within)
