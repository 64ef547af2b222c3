"""The documentation as a site: tutorials print what they say, every command has its page, and no link is broken."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ncuroof.cli.program import program
from tests.support.patience import PATIENCE_S
from tools import command_pages, tutorial_pages

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = sorted(tutorial_pages.FOLDER.glob("*.md"))
COMMANDS = {command.name: command for command in command_pages.commands()}


@pytest.mark.long
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_shows_what_its_commands_print(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if missing := [str(file) for file in tutorial_pages.files_of(text).values() if not file.exists()]:
        pytest.skip(f"not in this checkout: {missing[0]}")
    assert len(tutorial_pages.commands_of(text)) > 2
    assert tutorial_pages.page(text) == text, "run make pages"
    assert "Traceback" not in text


def test_a_tutorial_runs_nothing_but_ncuroof() -> None:
    with pytest.raises(ValueError, match="runs ncuroof alone, found 'rm -r x'"):
        tutorial_pages.page("```console\n$ rm -r x\n```\n")


def test_what_a_tutorial_prints_takes_the_place_of_what_stood_there() -> None:
    text = "```console\n$ ncuroof gpus nosuch\nold\n$ echo $?\n```\nafter\n"
    written = tutorial_pages.page(text)
    assert written.startswith("```console\n$ ncuroof gpus nosuch\nncuroof: no GPU profile matches 'nosuch'\n")
    assert written.endswith("\n$ echo $?\n2\n```\nafter\n")
    assert "old" not in written


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_it_takes(name: str) -> None:
    examples = [words for words, _ in COMMANDS[name].examples]
    assert len(examples) >= 3
    parent = click.Context(program)
    for words in examples:
        first, command, *arguments = shlex.split(words.partition(" && ")[0])
        assert (first, command) == ("ncuroof", name)
        found = program.get_command(parent, name)
        assert found is not None
        if "--help" not in arguments and name != "model":  # whose operations are commands of their own
            found.make_context(name, arguments, parent=parent)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_has_every_option(name: str) -> None:
    written, man = command_pages.page(COMMANDS[name]), command_pages.man_page(COMMANDS[name])
    for option in COMMANDS[name].options:
        flag = option.flags.split()[0].rstrip(",")
        assert flag in written
        assert flag.replace("-", "\\-") in man
    assert not [line for line in man.splitlines() if line.startswith("'")]  # would be a request
    assert "## Exit codes" in written


def test_the_page_of_all_commands_is_fresh() -> None:
    assert command_pages.OVERVIEW.read_text(encoding="utf-8") == command_pages.overview(), "run make pages"


@pytest.mark.long
def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-d", tmp_path / "site"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "NO_MKDOCS_2_WARNING": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for page in ("index", "glossary", "commands/report", "tutorials/slow_step"):
        assert "ncuroof" in (tmp_path / f"site/{page}.html").read_text(encoding="utf-8")
