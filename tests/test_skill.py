"""The skill names commands, keys and verdicts that exist, and is short enough to be read whole."""

from __future__ import annotations

import json
import re

import pytest
from click import Context

from ncuroof.cli.program import program
from ncuroof.enums import Confidence
from ncuroof.present.explanations.explain import names
from ncuroof.resources import folder

SKILL, FOR_PROJECTS = folder("skills") / "ncuroof/SKILL.md", folder("skills") / "AGENTS.md"
_MOST_BYTES = 6000


@pytest.mark.parametrize("path", [SKILL, FOR_PROJECTS], ids=lambda path: path.name)
def test_every_command_and_option_in_it_exists(path) -> None:
    text = path.read_text(encoding="utf-8")
    commands = re.findall(r"`ncuroof (\w+)([^`]*)`", text)
    assert len(commands) >= 4
    for name, rest in commands:
        command = program.get_command(Context(program), name)
        assert command is not None, name
        options = {option for parameter in command.params for option in parameter.opts}
        own = rest.partition(" -- ")[0]
        assert set(re.findall(r"--[a-z-]+", own)) <= options, rest


@pytest.mark.parametrize("path", [SKILL, FOR_PROJECTS], ids=lambda path: path.name)
def test_it_is_short(path) -> None:
    assert len(path.read_bytes()) <= _MOST_BYTES


def test_it_says_what_each_confidence_means_and_when_to_stop() -> None:
    text = SKILL.read_text(encoding="utf-8")
    for confidence in Confidence:
        assert f"- `{confidence.value}`:" in text
    assert "## When to stop" in text
    assert {"overhead", "unknown"} <= {*re.findall(r"`(\w+)`", text)} & {*names()}


def test_the_keys_in_it_exist() -> None:
    known = "".join(path.read_text(encoding="utf-8") for path in (SKILL.parents[2] / "ncuroof/present").rglob("*.py"))
    keys = {*re.findall(r"`(\w+_(?:ns|frac|builds))`", SKILL.read_text(encoding="utf-8"))}
    assert len(keys) >= 6
    assert [key for key in sorted(keys) if key not in known] == []


def test_its_head_has_a_name_and_a_description() -> None:
    head = SKILL.read_text(encoding="utf-8").split("---")[1]
    assert re.search(r"^name: ncuroof$", head, re.MULTILINE)
    assert len(re.search(r"^description: (.+)$", head, re.MULTILINE)[1]) < 500


def test_the_plugin_starts_a_command_that_exists_and_brings_the_skill() -> None:
    at = SKILL.parents[2]
    plugin = json.loads((at / ".claude-plugin/plugin.json").read_text(encoding="utf-8"))
    market = json.loads((at / ".claude-plugin/marketplace.json").read_text(encoding="utf-8"))
    (offered,) = market["plugins"]
    assert offered["name"] == plugin["name"] == "ncuroof"
    assert (
        at / offered["source"] / "skills/ncuroof/SKILL.md"
    ).is_file()  # an agent program looks for skills/*/SKILL.md
    server = plugin["mcpServers"]["ncuroof"]
    name, *options = server["args"]
    command = program.get_command(Context(program), name)
    assert command is not None
    command.make_context(name, options)
    assert server["command"] == plugin["name"]
