"""Asks questions with known answers of briefs, and writes into docs/agents.md how many they answer, and in how many bytes.

    python -m tools.brief_questions

Each question of brief_questions.toml is answered from a packet of at most 4 096 bytes alone: that of the run, or of one kernel in
depth. The table compares the packets with what else there is to read of the same reports.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.present import render
from ncuroof.present.brief import BUDGET_BYTES, brief_text
from ncuroof.resources import read_toml
from tests.support.ncu import find_ncu
from tools.demo_report import decompressed

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs/agents.md"
QUESTIONS = ROOT / "tools/brief_questions.toml"
_BLOCK = re.compile(r"(<!-- questions -->\n).*?(<!-- end -->)", re.DOTALL)
_ANY = ("because", "evidence")
_STEP = re.compile(r"([a-z_]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a report; the keys of brief_questions.toml."""

    report: str
    ask: str
    at: str
    kernel: str | None = None
    answer: Any = None
    tolerance: float = 0.0

    def packet(self) -> str:
        """Return the packet that answers it."""
        return brief_text(analysis(self.report), "json", kernel=self.kernel)

    def is_answered(self) -> bool:
        """Return whether the packet holds the known answer."""
        text = self.packet()
        found = _found(json.loads(text), self.at)
        if isinstance(self.answer, (int, float)) and isinstance(found, (int, float)):
            return abs(found - self.answer) <= self.tolerance
        if isinstance(found, list):
            return str(self.answer) in map(str, found)
        if isinstance(found, str) and isinstance(self.answer, str):
            return self.answer in found
        return bool(found == self.answer)


def questions() -> list[Question]:
    """Return the questions."""
    return [Question(**entry) for entry in read_toml(QUESTIONS)["question"]]


@cache
def analysis(report: str) -> Analysis:
    """Return the analysis of a report of the fixtures."""
    return ncuroof.read(ROOT / "fixtures" / f"{report}.ncu-repz").analyse()


def _found(packet: Mapping[str, Any], at: str) -> Any:
    """Return what a packet has at a place, None if it has nothing there."""
    if at == "findings":
        return [todo["id"] for todo in packet["kernels"][0]["do"]]
    kind, _, rest = at.partition(" ")
    if kind in _ANY:
        quantity, _, is_threshold = rest.partition(" ")
        kernel = packet["kernels"][0]
        numbers = [*kernel["because"], *(each for todo in kernel["do"] for each in todo.get("evidence", ()))]
        number: Mapping[str, Any] = next((each for each in numbers if each["e"].endswith(f".{quantity}")), {})
        return number.get("t" if is_threshold else "v")
    found: Any = packet
    try:
        for name, place in _STEP.findall(at):
            found = found[name] if name else found[int(place)]
    except (KeyError, IndexError):  # left out for space
        return None
    return found


def rows() -> Iterator[Sequence[str]]:
    """Yield, by report, how many questions the packets answer, their bytes, and those of what else there is to read."""
    every = questions()
    for report in _reports():
        own = [question for question in every if question.report == report]
        packets = {question.kernel: len(question.packet().encode()) for question in own}
        sizes = [len(render(analysis(report), form)) for form in ("json", "md", "term")]
        answered = sum(question.is_answered() for question in own)
        yield (
            report.rpartition("/")[2],
            f"{answered} of {len(own)}",
            f"{len(packets)} × ≤ {max(packets.values())}",
            *map(str, sizes),
        )


def page(text: str) -> str:
    """Return the page with the table written anew; sizes of ncu's page stay as they are where there is no ncu."""
    known = dict(re.findall(r"^\| `([^`]+)` \|.*\| (\S+) \|$", text, re.MULTILINE))
    lines = [
        "| report | questions answered | bytes of packets | JSON | Markdown | terminal | ncu's details page |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, *cells in rows():
        lines.append(f"| `{name}` | {' | '.join(cells)} | {_details_bytes(name) or known.get(name, '–')} |")
    every = questions()
    n_answered = sum(question.is_answered() for question in every)
    head = f"{n_answered} of {len(every)} questions are answered, each from one packet of at most {BUDGET_BYTES} bytes.\n\n"
    return _BLOCK.sub(lambda found: found[1] + head + "\n".join(lines) + "\n" + found[2], text)


def _details_bytes(name: str) -> str | None:
    """Return the size of what ncu prints of a report; None without ncu. It reads a decompressed one, whatever its version."""
    ncu = find_ncu()
    if ncu is None:
        return None
    (report,) = (ROOT / "fixtures" / f"{each}.ncu-repz" for each in _reports() if each.endswith(f"/{name}"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.ncu-rep"
        path.write_bytes(decompressed(report))
        command = [str(ncu), "--import", str(path), "--page", "details"]
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  NVIDIA's program, on a report of ours
    return str(len(done.stdout)) if done.returncode == 0 else None


def _reports() -> list[str]:
    return list(dict.fromkeys(question.report for question in questions()))


def main() -> None:
    """Write the table."""
    FILE.write_text(page(FILE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
