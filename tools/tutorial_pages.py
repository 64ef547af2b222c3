"""Writes into the tutorials what their commands print: each is run, in order, in a folder with the files that the tutorial names.

A block of ```console holds commands behind "$ " and what they print; `$ echo $?` prints the exit code of the command before it.
`make pages` runs this; the tests compare.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ncuroof.cli import main as program

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs/tutorials"
_FILES = re.compile(r"^<!-- files: (.+) -->$", re.MULTILINE)
_BLOCK = re.compile(r"(```console\n).*?(```)", re.DOTALL)
_COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)
_EXIT_CODE = "echo $?"


@dataclass(slots=True)
class _Shell:
    """Runs commands of ncuroof in this process, with standard output and error as one text."""

    code: int = 0

    def output(self, words: str) -> str:
        """Return what a command prints."""
        if words == _EXIT_CODE:
            return f"{self.code}\n"
        name, *arguments = shlex.split(words)
        if name != "ncuroof":
            raise ValueError(f"a tutorial runs ncuroof alone, found {words!r}")
        printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                program(arguments)
                self.code = 0
            except SystemExit as exited:
                self.code = int(exited.code or 0)
        printed.seek(0)
        return "".join(f"{line.rstrip()}\n" for line in printed.read().splitlines())


def files_of(text: str) -> dict[str, Path]:
    """Return the files that a tutorial works on, by the names that they have there."""
    found = _FILES.search(text)
    pairs = (each.split("=") for each in found[1].split()) if found else ()
    return {name: ROOT / path for name, path in pairs}


def commands_of(text: str) -> list[str]:
    """Return the commands of a tutorial in their order."""
    return [command for block in _BLOCK.finditer(text) for command in _COMMAND.findall(block[0])]


def page(text: str) -> str:
    """Return a tutorial with what its commands print now."""
    shell = _Shell()
    with _folder_with(files_of(text)):

        def run(block: re.Match[str]) -> str:
            ran = (f"$ {command}\n{shell.output(command)}" for command in _COMMAND.findall(block[0]))
            return f"{block[1]}{''.join(ran)}{block[2]}"

        return _BLOCK.sub(run, text)


@contextlib.contextmanager
def _folder_with(files: dict[str, Path]) -> Iterator[None]:
    """Work in a new folder with copies of files, as in a terminal of 80 columns."""
    before, kept = Path.cwd(), {name: os.environ.pop(name, None) for name in ("COLUMNS", "GITHUB_ACTIONS")}
    os.environ["COLUMNS"] = "80"
    with tempfile.TemporaryDirectory() as folder:
        for name, source in files.items():
            shutil.copy(source, Path(folder) / name)
            counts = source.with_suffix(".counts.json")
            if counts.exists():
                shutil.copy(counts, (Path(folder) / name).with_suffix(".counts.json"))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
            del os.environ["COLUMNS"]
            os.environ.update({name: value for name, value in kept.items() if value is not None})


def main() -> None:
    """Write the tutorials."""
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if all(source.exists() for source in files_of(text).values()):
            path.write_text(page(text), encoding="utf-8")


if __name__ == "__main__":
    main()
