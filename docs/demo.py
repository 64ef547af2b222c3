"""Writes into README.md what `make demo` prints of the embedded report: `python docs/demo.py`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "README.md"
REPORT = ROOT / "fixtures/h100-80gb-hbm3/train_transformer.roofline.ncu-repz"
_BLOCK = re.compile(r"(<!-- demo -->\n```text\n).*?(```\n<!-- end -->)", re.DOTALL)
_N_KERNELS = 3


def page(text: str) -> str:
    """Return the page with the example written anew."""
    return _BLOCK.sub(lambda found: found[1] + _summary() + found[2], text)


def _summary() -> str:
    """Return the device and its run, a step's time, what would give most, and the first kernels."""
    command = [sys.executable, "-m", "ncuroof", "report", str(REPORT), "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603  its own interpreter
    paragraphs = [[line.rstrip() for line in paragraph.splitlines()] for paragraph in done.stdout.strip().split("\n\n")]
    (step,) = (lines for lines in paragraphs if lines[0].startswith("a step takes"))
    (most,) = (lines for lines in paragraphs if lines[0].startswith("what would give most"))
    (table,) = (lines for lines in paragraphs if lines[0].lstrip().startswith("# "))
    starts = [number for number, line in enumerate(table) if re.match(r" *\d+ ", line)]
    head = [line for line in paragraphs[0] if not line.startswith("ncuroof · ")]
    return "\n\n".join("\n".join(lines) for lines in (head, step, most, table[: starts[_N_KERNELS]])) + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
