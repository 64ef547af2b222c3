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
REPORT = ROOT / "demo/train_transformer.roofline.ncu-repz"
_BLOCK = re.compile(r"(<!-- (demo|step) -->\n```text\n).*?(```\n<!-- end -->)", re.DOTALL)


def page(text: str) -> str:
    """Return the page with its examples written anew: the first screen, or of the detail what a step's time goes to."""
    return _BLOCK.sub(lambda found: f"{found[1]}{_PRINTED[found[2]]()}{found[3]}", text)


def _step() -> str:
    (step,) = (part for part in _printed("-v").split("\n\n") if part.startswith("a step takes"))
    return f"{step.rstrip()}\n"


def _printed(*options: str) -> str:
    command = [sys.executable, "-m", "ncuroof", "report", str(REPORT), *options, "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603  its own interpreter
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


_PRINTED = {"demo": _printed, "step": _step}
"""What stands in each kind of block."""


def main() -> None:
    """Write the pages."""
    for path in (PAGE, STEP_PAGE):
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
