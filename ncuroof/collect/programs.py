"""The program that is profiled: what runs a script, where the runner goes in, which part of a launcher's call is a rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncuroof.collect.settings import Launcher, Settings
from ncuroof.errors import ProfileRequestError

_SCRIPT_SUFFIX = ".py"
_MODULE = "-m"
Find = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Program:
    """A program to profile.

    Attributes:
        launcher: words that come before each rank's; empty for a program without ranks.
        words: the program, or one rank, with its arguments.
        rank_variable: environment variable of a rank's number; None without ranks.
        script: place in `words` of the script, or of the `-m` before a module; None where no Python is seen.
    """

    launcher: tuple[str, ...]
    words: tuple[str, ...]
    rank_variable: str | None
    script: int | None

    def inside(self, runner: Sequence[str]) -> Program:
        """Return the program with the script inside `runner`, the words that run it.

        Raises:
            ProfileRequestError: there is no script.
        """
        if self.script is None:
            raise ProfileRequestError(
                f"a Python script was wanted, {self.words[0]!r} was found",
                hint="--step, --annotate, --cover and --per-shape need a script: ncuroof profile [OPTIONS] train.py",
            )
        words = (*self.words[: self.script], *runner, *self.words[self.script :])
        return Program(self.launcher, words, self.rank_variable, self.script + len(runner))


def find_program(
    words: Sequence[str], settings: Settings, *, python: str, find: Find, rank_variable: str | None = None
) -> Program:
    """Return the program that `words` call.

    A script runs with `python`. Behind a launcher of ranks (torchrun, mpirun, srun) the rank's own words are told from the
    launcher's options.

    Args:
        words: the program and its arguments, as on a command line.
        settings: of profiles/collect.toml.
        python: interpreter for scripts.
        find: path of an executable by name (`shutil.which`), or None.
        rank_variable: of a launcher that is not known; or in place of its own.

    Raises:
        ProfileRequestError: the launcher's call holds no program.
    """
    launcher = settings.launchers.get(Path(words[0]).name)
    if launcher is None and rank_variable is None:
        return _alone(tuple(words), python)
    known = launcher or Launcher(rank_variable or "", runs_scripts=False, flags=frozenset())
    place = _first_of_rank(words, known, find)
    before, rest = list(words[:place]), tuple(words[place:])
    if known.runs_scripts:
        before, rest = _without_python(before, rest, python)
    alone = _alone(rest, python)
    return Program(tuple(before), alone.words, rank_variable or known.rank, alone.script)


def _alone(words: tuple[str, ...], python: str) -> Program:
    if words[0].endswith(_SCRIPT_SUFFIX):
        return Program((), (python, *words), None, 1)
    return Program((), words, None, _script_in(words))


def _script_in(words: Sequence[str]) -> int | None:
    """Return where the script of `python [OPTIONS] SCRIPT` or `python [OPTIONS] -m MODULE` begins."""
    if not Path(words[0]).name.startswith("python"):
        return None
    for place, word in enumerate(words[1:], start=1):
        if word == _MODULE or word.endswith(_SCRIPT_SUFFIX):
            return place
        if word == "-c":
            return None
    return None


def _first_of_rank(words: Sequence[str], launcher: Launcher, find: Find) -> int:
    """Return where the rank's own words begin: the first script or executable that is no value of an option."""
    is_value = False
    for place, word in enumerate(words[1:], start=1):
        if launcher.runs_scripts and word in (_MODULE, "--module"):
            return place
        if word.startswith("-"):
            is_value = launcher.runs_scripts and word not in launcher.flags and "=" not in word
        elif is_value:
            is_value = False
        elif word.endswith(_SCRIPT_SUFFIX) or launcher.runs_scripts or find(word) is not None:
            return place
    raise ProfileRequestError(
        f"a program for {words[0]} to start was wanted, none was found",
        hint="write the program with its path, or Python before the script",
    )


def _without_python(before: list[str], rest: tuple[str, ...], python: str) -> tuple[list[str], tuple[str, ...]]:
    """Return torchrun's call with `--no-python`, so that a rank can be any program, and that program in full."""
    flag = next((word for word in before if word in ("--no-python", "--no_python")), None)
    if flag is not None:
        return before, rest
    if rest[0] in (_MODULE, "--module"):
        return [*before, "--no-python"], (python, "-u", _MODULE, *rest[1:])
    return [*before, "--no-python"], (python, "-u", *rest)
