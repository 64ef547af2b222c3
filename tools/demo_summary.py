"""Writes into README.md and docs/profile.md what `make demo` prints of the embedded report.

`make pages` runs it; the tests compare.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, STEP_PAGE = ROOT / "README.md", ROOT / "docs/profile.md"
REPORT = ROOT / "fixtures/h200/train_transformer.roofline.ncu-repz"
_BLOCK = re.compile(r"(<!-- (demo|step) -->\n```text\n).*?(```\n<!-- end -->)", re.DOTALL)
_N_KERNELS = 3


def page(text: str) -> str:
    """Return the page with the example written anew: the summary, or of it what a step's time goes to."""
    head, step, most, kernels = _summary()
    parts = {"demo": (head, step, most, kernels), "step": (step,)}
    return _BLOCK.sub(lambda found: f"{found[1]}{_text(parts[found[2]])}{found[3]}", text)


def _text(paragraphs: tuple[list[str], ...]) -> str:
    return "\n\n".join("\n".join(lines) for lines in paragraphs) + "\n"


def _summary() -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the lines on the device and its run, a step's time, the largest savings, and the first kernels."""
    command = [sys.executable, "-m", "ncuroof", "report", str(REPORT), "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603  its own interpreter
    paragraphs = [[line.rstrip() for line in paragraph.splitlines()] for paragraph in done.stdout.strip().split("\n\n")]
    (step,) = (lines for lines in paragraphs if lines[0].startswith("a step takes"))
    (most,) = (lines for lines in paragraphs if lines[0].startswith("largest potential savings"))
    (table,) = (lines for lines in paragraphs if lines[0].lstrip().startswith("# "))
    starts = [number for number, line in enumerate(table) if re.match(r" *\d+ ", line)]
    head = [line for line in paragraphs[0] if not line.startswith("ncuroof · ")]
    return head, step, most, table[: starts[_N_KERNELS]]


def main() -> None:
    """Write the pages."""
    for path in (PAGE, STEP_PAGE):
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
