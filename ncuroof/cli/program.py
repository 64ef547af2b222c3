"""The program `ncuroof`: its commands, and the only place where errors become messages and exit codes."""

from __future__ import annotations

import atexit
import difflib
import errno
import gc
import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from ncuroof._version import __version__
from ncuroof.cli.options import EXIT_INTERRUPTED, common, say
from ncuroof.cli.streams import ClosedOutput, echo, refuse_closed_output, replace_what_cannot_be_encoded
from ncuroof.errors import NcuroofError
from ncuroof.formatting import printable
from ncuroof.interrupts import interrupted_by_signals

_N_OBJECTS_BETWEEN_SEARCHES = 100_000

_SUMMARY_BY_COMMAND = {
    "profile": "Profile a program with ncu, keep the report, diagnose every kernel.",
    "report": "Read reports, diagnose every kernel, write a summary and a page.",
    "brief": "Say what matters in a report in at most 4 KB, for programs and prompts.",
    "compare": "Compare two runs: what changed, by how much, and why; gates for CI.",
    "whatif": "Estimate a run on other GPUs, or a change before you write it.",
    "calibrate": "Measure the bandwidth and FLOP rates that this GPU really reaches.",
    "model": "Estimate the best possible time of an operation, before any code.",
    "ingest": "Load many reports into a dataset, on this machine or a cluster.",
    "fleet": "Query a dataset: slowest kernels, regressions, other GPUs.",
    "mcp": "Serve the reports of a folder to agents (Model Context Protocol).",
    "redact": "Strip machine, user, program and source details from a report.",
    "explain": "Explain a verdict, finding, caveat, quantity or column.",
    "demo": "Analyse the report that ships with ncuroof.",
    "gpus": "List the GPUs whose data sheets ncuroof knows.",
    "doctor": "Check whether this machine can profile, and how to fix it if not.",
}
"""Each command is a module of this package with the same name, loaded only when it runs."""

_COMMAND_BY_SUFFIX = {
    ".ncu-rep": "report", ".ncu-repz": "report", ".csv": "report", ".log": "report", ".py": "profile",
}  # fmt: skip
"""The command for a file, by suffix."""

_READER_IS_GONE = {errno.EINVAL} if os.name == "nt" else set()
"""Errors of writing to a pipe without a reader, besides EPIPE: on Windows, an invalid argument."""


class _ReaderGoneError(Exception):
    """The reader of the output is gone (`| head`). Replaces BrokenPipeError, for which click would exit with 1."""


class _Commands(click.Group):
    """Loads commands by name, so that `--help` and each command import only what they need."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:  # --help prints in here
        try:
            return super().make_context(*args, **more)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; `help COMMAND` stands for `COMMAND --help`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_SUMMARY_BY_COMMAND)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in _SUMMARY_BY_COMMAND:
            return None
        return _loaded(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        Raises:
            UsageError: the name is not a command; the message suggests one.
        """
        name = args[0]
        if name not in _SUMMARY_BY_COMMAND and not name.startswith("-"):
            raise click.UsageError(f"no command {printable(name)!r}{_suggestion(name)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_SUMMARY_BY_COMMAND.items()))


def _suggestion(name: str) -> str:
    """Return a suggestion for an unknown command: the command for a file, or one with a similar name."""
    suffix = next((each for each in _COMMAND_BY_SUFFIX if name.lower().endswith(each)), None)
    if suffix is not None:
        return f"; did you mean: ncuroof {_COMMAND_BY_SUFFIX[suffix]} {shlex.quote(printable(name))}?"
    near = difflib.get_close_matches(name.lower(), _SUMMARY_BY_COMMAND, n=1)
    return f"; did you mean: ncuroof {near[0]}?" if near else "; ncuroof --help lists them"


def _commands_with_option(error: click.NoSuchOption) -> str:
    """Return the commands that have a misplaced option, as they are typed; "" if none has it."""
    name = error.option_name
    context = click.Context(program)
    commands = [each for each in _SUMMARY_BY_COMMAND if any(name in p.opts for p in _loaded(each).get_params(context))]
    where = ", after the command's name" if error.ctx is not None and error.ctx.command is program else ""
    return f"{' and '.join(f'ncuroof {each}' for each in commands)}{where}" if commands else ""


def _loaded(name: str) -> click.Command:
    command: click.Command = getattr(import_module(f"ncuroof.cli.{name}"), name)
    return command


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="ncuroof")
@common("quiet", "verbose", "no_color")
def program(*, quiet: bool, verbose: bool, no_color: bool) -> None:
    """Place every kernel of a CUDA run on a hierarchical roofline: what bounds it, why, and what to change.

    ncuroof help COMMAND lists the options of a command.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit: 0 success, 1 a named error, 2 wrong usage, 3 a gate failed, 130 interrupted.

    If a command returns a number, that is the exit status: `profile` returns the status of the program that it ran.
    """
    try:
        collect_rarely()
        refuse_closed_output()
        replace_what_cannot_be_encoded()
        words = None if arguments is None else list(arguments)
        with interrupted_by_signals():
            status = program.main(args=words, prog_name="ncuroof", standalone_mode=False)
            sys.stdout.flush()
        if isinstance(status, int) and status:
            sys.exit(status)
    except NcuroofError as error:
        _fail(f"ncuroof: {error}", error.hint, error.exit_code)
    except click.ClickException as error:
        error.show(sys.stderr)  # in the encoding of standard error, as `echo` does
        if isinstance(error, click.NoSuchOption) and (others := _commands_with_option(error)):
            say(f"  hint: {error.option_name} is an option of {others}")
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        echo("ncuroof: interrupted", err=True)  # not `say`: its modules may have been interrupted while loading
        sys.exit(EXIT_INTERRUPTED)
    except (BrokenPipeError, _ReaderGoneError):
        _abandon_output()
        sys.exit(0)
    except OSError as error:
        # Files that cannot be read or written raise an NcuroofError, so this must be standard output.
        _abandon_output()
        if error.errno in _READER_IS_GONE:
            sys.exit(0)
        _fail(
            f"ncuroof: cannot write to standard output: {error.strerror or error}",
            "free some disk space, or redirect the output elsewhere",
            1,
        )


def _fail(message: str, hint: str | None, exit_code: int) -> NoReturn:
    say(" ".join(message.split()))
    if hint is not None:
        say(f"  hint: {hint}")
    sys.exit(exit_code)


def collect_rarely() -> None:
    """Make garbage collection rare, and skip it at exit.

    What a command builds, tables and texts, lives until its end. The default collections took 0.15 s of the 0.9 s for a report of a
    thousand kernels, and found nothing.
    """
    gc.set_threshold(_N_OBJECTS_BETWEEN_SEARCHES, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def _abandon_output() -> None:
    """Discard what is still buffered for standard output, so that the interpreter does not fail to flush it at exit."""
    if not isinstance(sys.stdout, ClosedOutput):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
