"""What NVIDIA's rules say of stalls in words: the details page prints no counter of theirs.

Source: `profiles/printed.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from ncuroof import resources
from ncuroof.ingest.printed_tables import PrintedRule

_SENTENCE = re.compile(r"spends ([\d.,]+) cycles being stalled (.{1,160})", re.DOTALL)
_COUNTER = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def stalls_told(rules: Iterable[PrintedRule]) -> dict[int, dict[str, float]]:
    """Return what rules say of stalls: by row of the launch and by counter, the cycles per issued instruction, of one decimal.

    A rule tells of the reasons that have a large share, the largest among them.
    """
    found: dict[int, dict[str, float]] = {}
    for rule in rules:
        for told in _SENTENCE.finditer(rule.cells["Rule Description"]):
            cycles, reason = _cycles(told[1]), _reason(" ".join(told[2].split()))
            if cycles is not None and reason is not None:
                found.setdefault(rule.row, {}).setdefault(_COUNTER.format(reason), cycles)
    return found


def _cycles(printed: str) -> float | None:
    """Return a number of one decimal, whatever its mark."""
    try:
        return float(printed.replace(",", "."))
    except ValueError:
        return None


def _reason(words: str) -> str | None:
    return next((reason for part, reason in _reason_by_words().items() if part in words), None)


@cache
def _reason_by_words() -> Mapping[str, str]:
    """Return the words that tell a reason, with the reason."""
    table: Mapping[str, list[str]] = resources.read_toml(resources.folder("profiles") / "printed.toml")["stall_words"]
    return {part: reason for reason, parts in table.items() for part in parts}
