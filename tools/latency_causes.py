"""Writes into docs/verdict.md what may limit a latency-bound kernel, in the order of profiles/rules.toml.

`make pages` runs it; the tests compare.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ncuroof.diagnosis import load_rules
from ncuroof.formatting import label

FILE = Path(__file__).resolve().parents[1] / "docs/verdict.md"
_BLOCK = re.compile(r"(<!-- causes -->\n).*?(<!-- end -->)", re.DOTALL)
_STALL = "stall"
_ANY_STALL = ("the stall reason", "A reason for which warps wait, such as `long_scoreboard`")
"""Said of the findings on stalls, which are many; the limiter is named after the reason."""


def page(text: str) -> str:
    """Return the page with the list of causes written anew."""
    listed = "\n".join(_lines())
    return _BLOCK.sub(lambda found: f"{found[1]}{listed}\n{found[2]}", text)


def _lines() -> Iterator[str]:
    rules = load_rules()
    yield from ("", "| | limiter | finding |", "|---|---|---|")
    for number, cause in enumerate(rules.latency_causes, start=1):
        names = ", ".join(f"`{finding.id}`" for finding in rules.members(cause))
        is_stall = cause.finding == _STALL
        limiter, found = _ANY_STALL if is_stall else (label(cause.limiter), rules.findings[cause.finding].title)
        yield f"| {number} | {limiter} | {found}{'' if is_stall else f' ({names})'} |"
    yield ""


def main() -> None:
    """Write the list."""
    FILE.write_text(page(FILE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
