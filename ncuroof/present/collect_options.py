"""Options of ncu that collect what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise


def collect_options(options: Iterable[str]) -> str:
    """Return one line of ncu options that collects what several lines would; remarks in brackets are dropped."""
    sections: dict[str, None] = {}
    metrics: dict[str, None] = {}
    for words in map(str.split, options):
        for flag, value in pairwise(words):
            if flag == "--metrics":
                metrics |= dict.fromkeys(value.split(","))
            elif flag.startswith("--"):
                sections[f"{flag} {value}"] = None
    return " ".join([*sections, *([f"--metrics {','.join(metrics)}"] if metrics else [])])
