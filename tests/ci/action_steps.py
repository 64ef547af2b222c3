"""Runs the shell steps of a composite action one by one, as GitHub does, without the actions that it uses."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_TERM = re.compile(r"^(?P<left>[\w.-]+)\s*(?P<op>==|!=)\s*'(?P<right>[^']*)'$")


@dataclass
class Runner:
    """A runner's machine.

    Attributes:
        folder: the checkout, in which steps run.
        environment: variables of the job.
        github: the context `github` by name, such as `event_name`.
        outputs: of the steps that ran, by step and name.
        log: name of each step that ran, with its exit status.
    """

    folder: Path
    environment: Mapping[str, str]
    github: Mapping[str, str] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    log: dict[str, int] = field(default_factory=dict)
    printed: str = ""

    def run(self, **inputs: str) -> int:
        """Run the steps with these inputs (`_` for `-` in a name); return the status of the first that fails, 0 for none."""
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() <= ACTION["inputs"].keys()
        values = {name: str(given.get(name, entry.get("default", ""))) for name, entry in ACTION["inputs"].items()}
        for step in ACTION["runs"]["steps"]:
            if not self._is_wanted(str(step.get("if", "")), values) or "run" not in step:
                continue
            if status := self._step(step, values):
                return status
        return 0

    def _step(self, step: Mapping[str, Any], inputs: Mapping[str, str]) -> int:
        assert step["shell"] == "bash"
        output = self.folder / ".output"
        output.write_text("", encoding="utf-8")
        variables = {name: self._filled(str(value), inputs) for name, value in step.get("env", {}).items()}
        script = self.folder / ".step.sh"
        script.write_text(step["run"], encoding="utf-8")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.folder,
            env={**self.environment, **variables, "GITHUB_OUTPUT": str(output)},
            capture_output=True,
            text=True,
            check=False,
        )
        self.printed += done.stdout + done.stderr
        self.log[step["name"]] = done.returncode
        pairs = (line.partition("=") for line in output.read_text(encoding="utf-8").splitlines())
        self.outputs.setdefault(str(step.get("id", "")), {}).update({name: value for name, _, value in pairs})
        return done.returncode

    def _filled(self, text: str, inputs: Mapping[str, str]) -> str:
        return _EXPRESSION.sub(lambda found: self._value(found[1], inputs), text)

    def _value(self, path: str, inputs: Mapping[str, str]) -> str:
        kind, _, name = path.partition(".")
        if kind == "inputs":
            return inputs[name]
        if kind == "steps":
            step, _, output = name.partition(".outputs.")
            return self.outputs.get(step, {}).get(output, "")
        assert kind == "github", path
        return self.github.get(name, "")

    def _is_wanted(self, condition: str, inputs: Mapping[str, str]) -> bool:
        """Return whether a condition of comparisons joined by `&&`, or by `||`, holds."""
        text = condition.strip().removeprefix("${{").removesuffix("}}").strip()
        if not text:
            return True
        joined = any if "||" in text else all
        return joined(self._holds(term.strip(), inputs) for term in re.split(r"&&|\|\|", text))

    def _holds(self, term: str, inputs: Mapping[str, str]) -> bool:
        found = _TERM.match(term)
        assert found is not None, f"a condition that these tests do not read: {term}"
        return (self._value(found["left"], inputs) == found["right"]) == (found["op"] == "==")


def machine(folder: Path, python: str, more: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the environment of a job, with commands `ncuroof`, `python` and a `gh` that only notes its arguments."""
    commands = folder / "bin"
    commands.mkdir()
    for name, body in {
        "ncuroof": f'exec "{python}" -m ncuroof "$@"',
        "python": f'exec "{python}" "$@"',
        "gh": f'printf "%s\\n" "$*" >> "{folder}/gh.log"; [ "$2" != --paginate ] || cat "{folder}/comments" 2>/dev/null || true',
    }.items():
        path = commands / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
    temporary = folder / "temp"
    temporary.mkdir()
    return {
        "PATH": f"{commands}:/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join([str(ROOT)]),
        "HOME": str(folder),
        "RUNNER_TEMP": str(temporary),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_REPOSITORY": "owner/project",
        "GITHUB_ACTIONS": "true",
        **(more or {}),
    }
