"""Pages of the commands, for the site and as man pages: both from the same source as --help, with examples of their own.

`python -m tools.command_pages FOLDER` writes the man pages, and without FOLDER `docs/commands.md`; the site is built with `page`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

import click

from ncuroof._version import __version__
from ncuroof.cli.program import program
from ncuroof.resources import read_toml

EXAMPLES = Path(__file__).with_name("command_examples.toml")
OVERVIEW = EXAMPLES.parents[1] / "docs/commands.md"
_OVERVIEW = """\
`-o FILE` takes its format from the suffix: `.html` the page, `.json` [the document](documents.md), `.md` a summary for a pull
request, `.csv` and `.parquet` [tables](columns.md), `.sarif` findings for [code scanning](ci.md), `.xml` gates as JUnit, `.svg` a
picture of the roofline, `.txt` the terminal's text. It can be repeated; `-o -` writes to standard output, with `--format FORMAT`.
`-q` prints nothing but errors, `-v` more detail; `--no-color`, or the variable `NO_COLOR`, gives plain text."""
_GUIDES = {"report": "input", "brief": "agents", "mcp": "agents", "ingest": "fleet"}
"""The page under docs/ that explains a command, where it is not named after the command."""

EXIT_CODES = (
    ("0", "done"),
    ("1", "a file, the machine or the run is at fault: the message on standard error says what, and what to do"),
    ("2", "the words of the command are wrong, whatever its files hold"),
    ("3", "a gate failed (ncuroof compare)"),
    ("130", "interrupted"),
)


@dataclass(frozen=True, slots=True)
class Option:
    """An option as it is printed: its flags with their metavar, and what it does."""

    flags: str
    text: str


@dataclass(frozen=True, slots=True)
class Described:
    """A command: its name, usage line, paragraphs, options, and examples as pairs of words and what they do."""

    name: str
    usage: str
    paragraphs: tuple[str, ...]
    options: tuple[Option, ...]
    examples: tuple[tuple[str, str], ...]


@cache
def commands() -> tuple[Described, ...]:
    """Return every command, in the order of --help."""
    context = click.Context(program, info_name="ncuroof", help_option_names=["-h", "--help"])
    examples = read_toml(EXAMPLES)
    return tuple(
        _described(name, command, examples[name], context)
        for name in program.list_commands(context)
        if (command := program.get_command(context, name))
    )


def _described(name: str, command: click.Command, examples: dict[str, str], parent: click.Context) -> Described:
    with click.Context(command, info_name=name, parent=parent) as context:
        usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
        options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
        records = [found for each in options if (found := each.get_help_record(context))]
    paragraphs = re.split(r"\n\s*\n", (command.help or "").strip())
    return Described(name, usage, tuple(paragraphs), tuple(Option(*each) for each in records), tuple(examples.items()))


def page(command: Described) -> str:
    """Return the page of a command as Markdown."""
    lines = [f"# ncuroof {command.name}", ""]
    for paragraph in command.paragraphs:
        lines += [_paragraph(paragraph), ""]
    lines += ["```text", command.usage, "```", "", "## Examples", "", "```bash"]
    width = max((len(words) for words, _ in command.examples), default=0)
    lines += [f"{words:<{width}}  # {what}" for words, what in command.examples]
    lines += ["```", "", "## Options", "", "| option | |", "|---|---|"]
    lines += [f"| `{_cell(option.flags)}` | {_cell(option.text)} |" for option in command.options]
    lines += [
        "",
        "## Exit codes",
        "",
        "| code | when |",
        "|---|---|",
        *(f"| {code} | {when} |" for code, when in EXIT_CODES),
    ]
    return "\n".join([*lines, ""])


def _paragraph(text: str) -> str:
    """Return a paragraph as Markdown: literally where click keeps its line breaks."""
    if text.startswith("\b"):
        lines = [line.strip() for line in text.removeprefix("\b").strip("\n").splitlines()]
        return "\n".join(["```text", *lines, "```"])
    return " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def overview() -> str:
    """Return `docs/commands.md`: what each command is for, with examples."""
    lines = ["# Commands", "", _OVERVIEW]
    for command in commands():
        width = max(len(words) for words, _ in command.examples)
        lines += ["", f"## {command.name}", "", _paragraph(command.paragraphs[0]), "", "```bash"]
        lines += [f"{words:<{width}}  # {what}" for words, what in command.examples]
        lines += ["```", "", f"All options: `ncuroof {command.name} --help`"]
        guide = _GUIDES.get(command.name, command.name)
        if (OVERVIEW.parent / f"{guide}.md").exists():
            lines[-1] += f" · [How]({guide}.md)"
    return "\n".join([*lines, ""])


def man_page(command: Described) -> str:
    """Return the page of a command in troff's man macros."""
    day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    first = " ".join(command.paragraphs[0].split())
    lines = [f'.TH "NCUROOF-{command.name.upper()}" "1" "{day}" "ncuroof {__version__}"', ".SH NAME"]
    lines += [f"ncuroof\\-{command.name} \\- {_troff(first)}", ".SH SYNOPSIS", _troff(command.usage), ".SH DESCRIPTION"]
    for paragraph in command.paragraphs:
        lines += [".PP", *_troff_paragraph(paragraph)]
    lines += [
        ".SH OPTIONS",
        *(line for each in command.options for line in (".TP", _bold(each.flags), _troff(each.text))),
    ]
    lines += [
        ".SH EXAMPLES",
        *(line for words, what in command.examples for line in (".TP", _bold(words), _troff(what))),
    ]
    lines += [".SH EXIT STATUS", *(line for code, when in EXIT_CODES for line in (".TP", _bold(code), _troff(when)))]
    return "\n".join([*lines, ""])


def _troff_paragraph(text: str) -> Iterator[str]:
    if not text.startswith("\b"):
        yield _troff(text)
        return
    yield from (".nf", *map(_troff, text.removeprefix("\b").strip("\n").splitlines()), ".fi")


def _troff(text: str) -> str:
    """Return text as troff takes it literally: no line begins a request."""
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _bold(text: str) -> str:
    return f"\\fB{_troff(text)}\\fR"


def main() -> None:
    """Write docs/commands.md, or the man pages into a folder."""
    if not sys.argv[1:]:
        OVERVIEW.write_text(overview(), encoding="utf-8")
        return
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for command in commands():
        (folder / f"ncuroof-{command.name}.1").write_text(man_page(command), encoding="utf-8")


if __name__ == "__main__":
    main()
