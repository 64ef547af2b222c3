"""Analyse the command to profile: which Python runs a script, where the runner goes, where a launcher's options end.

A command may precede the program (`uv run`, `env`, `numactl`). The Python of a script is the one that its first line names, or the
one that has the user's packages.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from ncuroof.errors import ProfileRequestError
from ncuroof.ncu.settings import Launcher, Settings, Wrapper, option_name

_SCRIPT_SUFFIX = ".py"
_MODULE = "-m"
_MODULES = (_MODULE, "--module")
_END = "--"
"""Ends a launcher's options, if the user writes it."""

_PYTHONS_ENDING = "cmWXQ"
"""Letters of Python's options that take a value: the rest of the word, or the next word."""

_PYTHONS_LONG_WITH_VALUE = ("--check-hash-based-pycs",)
Find = Callable[[str], str | None]
NamedPython = Callable[[str], Sequence[str]]

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
"""An assignment of a variable, which `env` accepts before the command."""

_Known = TypeVar("_Known")

_PYTHON = re.compile(r"python[\d.]*[a-z]?")
_LONGEST_BEGINNING = 1024
_THROUGH_SHELL = re.compile(r"""^'''exec' (?:"([^"]+)"|(\S+)) """)
"""Second line of a script whose interpreter's path is too long for `#!`, or has spaces, as pip and uv write it."""

_TOOL_ENVIRONMENT_FILES = ("pipx_metadata.json", "uv-receipt.toml")
"""Files that mark environments for a single command, as pipx and `uv tool install` make them."""

_UVX_FOLDER = re.compile(r"archive-v\d+")
"""Folder of uv's cache in which the environments of uvx lie."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to profile.

    Attributes:
        launcher: the launcher and its options, which come before the rank's words; empty for a program without ranks.
        words: the program, or one rank, with its arguments.
        rank_variable: environment variable that holds the rank; None without ranks.
        script: index in `words` of the script, or of the `-m` before a module; None if it is not a call of Python.
        may_lack_rank: the launcher may leave `rank_variable` unset for a single process.
    """

    launcher: tuple[str, ...]
    words: tuple[str, ...]
    rank_variable: str | None
    script: int | None
    may_lack_rank: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """Variables to set for the program unless our environment or the launcher sets them."""
        return {self.rank_variable: "0"} if self.may_lack_rank and self.rank_variable else {}

    def behind(self, wrapper: tuple[str, ...]) -> Program:
        """Return the program with the words of a wrapper before it; before the launcher, if there is one."""
        if self.launcher:
            return replace(self, launcher=(*wrapper, *self.launcher))
        script = None if self.script is None else self.script + len(wrapper)
        return replace(self, words=(*wrapper, *self.words), script=script)

    def inside(self, runner: Sequence[str]) -> Program:
        """Return the program with the words of `runner` inserted before the script, so that it runs the script.

        Raises:
            ProfileRequestError: the program is not a Python script.
        """
        if self.script is None:
            raise ProfileRequestError(
                f"expected a Python script, found {self.words[0]!r}",
                hint="--step and --annotate work on Python scripts only: ncuroof profile [OPTIONS] train.py",
            )
        words = (*self.words[: self.script], *runner, *self.words[self.script :])
        return replace(self, words=words, script=self.script + len(runner))


def find_program(
    words: Sequence[str],
    settings: Settings,
    *,
    python: str,
    find: Find,
    named_python: NamedPython = lambda _: (),
    rank_variable: str | None = None,
) -> Program:
    """Return the program that `words` call.

    A bare script runs with `python`. A command that is a Python script itself (`trl`, `axolotl`) becomes a call of Python, so that
    a runner can go in. A call of a launcher is split into the launcher with its options and the rank's own words.

    Args:
        words: the program and its arguments, as on a command line.
        settings: of profiles/collect.toml.
        python: interpreter for scripts that do not name one.
        find: returns the path of an executable by name, or None (`shutil.which`).
        named_python: returns the Python, with its options, that the first line of an executable names; empty if none.
        rank_variable: environment variable that holds the rank; needed for unknown launchers, overrides that of known ones.

    Raises:
        ProfileRequestError: the launcher's call names no program, or Python's `-m` no module.
    """
    wrapped = unwrapped(words, settings)
    if wrapped is not None:
        inner = find_program(
            wrapped.words,
            settings,
            python="python" if wrapped.own_python else python,
            find=(lambda _: None) if wrapped.own_python else find,  # the other environment has its own PATH
            named_python=named_python,
            rank_variable=rank_variable,
        )
        return inner.behind(wrapped.wrapper)
    plain = _plain_program(words, python)
    n_words, launcher = _launcher(plain, settings)
    if launcher is None and rank_variable is None:
        return _as_script(plain, find, named_python)
    words = plain.words
    place = _first_of_rank(words, n_words, launcher) if launcher else _first_program(words, find)
    before, rest = words[: place - (words[place - 1] == _END)], words[place:]
    if launcher is not None and launcher.own_program:
        named = words if plain.script is not None else named_python(find(words[0]) or words[0])
        interpreter = named[0] if named else python
        options, rest = _with_own_program(before[n_words:], rest, launcher, interpreter)
        before = (*before[:n_words], *options)
    rank = _program_of_rank(rest, settings, python, find, named_python)
    variable = rank_variable or (launcher.rank if launcher else None)
    may_lack_rank = launcher is not None and bool(launcher.own_program)
    return Program(tuple(before), rank.words, variable, rank.script, may_lack_rank)


def _program_of_rank(
    words: tuple[str, ...], settings: Settings, python: str, find: Find, named_python: NamedPython
) -> Program:
    """Return the program of a rank, which may have a wrapper: `mpirun -n 2 numactl --localalloc train.py`."""
    wrapped = unwrapped(words, settings)
    if wrapped is None:
        return _as_script(_plain_program(words, python), find, named_python)
    return _program_of_rank(wrapped.words, settings, python, find, named_python).behind(wrapped.wrapper)


def _plain_program(words: Sequence[str], python: str) -> Program:
    if words[0].endswith(_SCRIPT_SUFFIX):
        return Program((), (python, *words), None, 1)
    if is_python(words[0]):
        plain, script = _python_call(words)
        return Program((), plain, None, script)
    return Program((), tuple(words), None, None)


def _as_script(program: Program, find: Find, named_python: NamedPython) -> Program:
    """Return a call of Python if the program is an executable whose first line names a Python."""
    path = find(program.words[0]) if program.script is None else None
    python = named_python(path) if path is not None else ()
    if path is None or not python:
        return program
    return Program((), (*python, path, *program.words[1:]), None, len(python))


def _python_call(words: Sequence[str]) -> tuple[tuple[str, ...], int | None]:
    """Return a call of Python with `-m` as a separate word, and the index of `-m` or of the script; None if there is neither.

    Raises:
        ProfileRequestError: `-m` has no module.
    """
    place = 1
    while place < len(words) and words[place].startswith("-") and words[place] != "-":
        word = words[place]
        letters = "" if word.startswith("--") else word[1:]
        last = next((number for number, letter in enumerate(letters) if letter in _PYTHONS_ENDING), None)
        if last is None:
            place += 2 if word in _PYTHONS_LONG_WITH_VALUE else 1
            continue
        before, letter, value = letters[:last], letters[last], letters[last + 1 :]
        if letter == "c":
            return tuple(words), None
        if letter == "m":
            module = (value, *words[place + 1 :]) if value else tuple(words[place + 1 :])
            if not module:
                raise ProfileRequestError(
                    f"{words[0]} -m: expected a module, found none", hint="name one: -m package.train"
                )
            flags = (f"-{before}",) if before else ()
            return (*words[:place], *flags, _MODULE, *module), place + len(flags)
        place += 1 if value else 2
    return tuple(words), place if place < len(words) and words[place] != "-" else None


def _launcher(plain: Program, settings: Settings) -> tuple[int, Launcher | None]:
    """Return how many words call the launcher (before its options), and the launcher; None if the program is not a known one."""
    words, script = plain.words, plain.script
    if script is not None and words[script] == _MODULE:
        modules = {launcher.module: launcher for launcher in settings.launchers.values()}
        return script + 2, modules.get(words[script + 1])
    return known_command(words, settings.launchers)


def _first_of_rank(words: Sequence[str], place: int, launcher: Launcher) -> int:
    """Return the index of the rank's first word: after the launcher's options and their values, or after `--`."""
    while place < len(words) and words[place].startswith("-"):
        if words[place] == _END:
            return _checked(words, place + 1)
        place += 1 + launcher.n_values(words[place])
    return _checked(words, place)


def _first_program(words: Sequence[str], find: Find) -> int:
    """Return the index of the rank's first word after an unknown launcher: after `--`, else the first script or executable."""
    if _END in words:
        return _checked(words, words.index(_END) + 1)
    for place, word in enumerate(words[1:], start=1):
        if not word.startswith("-") and (word.endswith(_SCRIPT_SUFFIX) or find(word) is not None):
            return place
    return _checked(words, len(words))


def _checked(words: Sequence[str], place: int) -> int:
    if place < len(words):
        return place
    raise ProfileRequestError(
        f"expected a program for {words[0]} to start, found none",
        hint="give the program's path, or put `--` before it",
    )


def _with_own_program(
    options: Sequence[str], rest: tuple[str, ...], launcher: Launcher, python: str
) -> tuple[list[str], tuple[str, ...]]:
    """Return the options that let a launcher of Python scripts start any program, and the rank's words with the interpreter."""
    named = {option_name(word) for word in options}
    without_module = [word for word in options if word not in _MODULES]
    wanted = [*without_module, *(word for word in launcher.own_program if option_name(word) not in named)]
    if option_name(launcher.own_program[0]) in named:
        return wanted, rest
    is_module = len(without_module) < len(options)
    return wanted, (python, "-u", *([_MODULE] if is_module else []), *rest)


class Wrapped(NamedTuple):
    """A command after its wrapper.

    Attributes:
        wrapper: the words of the wrapper with its options.
        words: the command with its arguments.
        own_python: the command finds its Python in a different environment than ncuroof's.
    """

    wrapper: tuple[str, ...]
    words: tuple[str, ...]
    own_python: bool


def unwrapped(words: Sequence[str], settings: Settings) -> Wrapped | None:
    """Return the command that a known wrapper runs; None if the words call no known wrapper, or the wrapper runs nothing.

    If the wrapper has its own Python, a script counts as a command: `uv run train.py` is a call of Python, and so is `uv run -m
    train`.

    Args:
        words: a command and its arguments.
        settings: of profiles/collect.toml.
    """
    n_words, wrapper = known_command(words, settings.wrappers)
    if wrapper is None:
        return None
    place, is_module = _first_of_command(words, n_words, wrapper)
    if place >= len(words):
        return None
    command = ("python", "-m", *words[place + 1 :]) if is_module else tuple(words[place:])
    return Wrapped(tuple(words[:place]), command, wrapper.own_python)


def known_command(words: Sequence[str], known: Mapping[str, _Known]) -> tuple[int, _Known | None]:
    """Return how many of the first words call a command that is in `known`, and its entry; 0 and None if none is called."""
    for n_words in (1, 2):
        found = known.get(" ".join((Path(words[0]).name, *words[1:n_words])))
        if found is not None:
            return n_words, found
    return 0, None


def _first_of_command(words: Sequence[str], place: int, wrapper: Wrapper) -> tuple[int, bool]:
    """Return the index of the command's first word, and whether that word is an option of the wrapper to run a Python module."""
    while place < len(words) and (words[place].startswith("-") or _ASSIGNMENT.fullmatch(words[place])):
        if words[place] == _END:
            return place + 1 + wrapper.n_words, False
        name = option_name(words[place])
        if wrapper.own_python and words[place] in _MODULES and name not in wrapper.values:
            return place, True
        place += 2 if name in wrapper.values and words[place].startswith("-") else 1
    return place + wrapper.n_words, False


def is_python(word: str) -> bool:
    """Return whether a command's first word calls Python."""
    return _PYTHON.fullmatch(Path(word).name) is not None


def python_named_in(script: str) -> tuple[str, ...]:
    """Return the Python, with its options, that a script's `#!` line names; empty if it names none or cannot be read."""
    try:
        with open(script, "rb") as file:  # noqa: PTH123  Path.open raises for a word that holds a null character
            first, second, *_ = (*file.read(_LONGEST_BEGINNING).decode("utf-8", "replace").split("\n"), "")
        words = shlex.split(first.removeprefix("#!")) if first.startswith("#!") else []
    except (OSError, ValueError):
        return ()
    if words and Path(words[0]).name == "sh" and (through := _THROUGH_SHELL.match(second)):
        words = [through[1] or through[2]]
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S"]
    return tuple(words) if words and is_python(words[0]) else ()


def python_of_scripts(environment: Mapping[str, str]) -> str:
    """Return the Python for scripts: the one that runs ncuroof, or, if ncuroof has an environment to itself, the next on PATH."""
    prefix = Path(sys.prefix)
    if _UVX_FOLDER.fullmatch(prefix.parent.name) or any((prefix / name).exists() for name in _TOOL_ENVIRONMENT_FILES):
        folders = environment.get("PATH", os.defpath).split(os.pathsep)
        outside = os.pathsep.join(folder for folder in folders if prefix not in (Path(folder), *Path(folder).parents))
        return shutil.which("python", path=outside) or shutil.which("python3", path=outside) or sys.executable
    return sys.executable
