"""Extracts counters from the sentences of NVIDIA's rules that the details page does not print as values.

Source: `profiles/printed.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ncuroof.ingest.printed.tables import PrintedRule
from ncuroof.resources import profile_file

_STALLS = re.compile(r"spends ([\d.,]+) cycles being stalled (.{1,160})")
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence that contains numbers.

    Attributes:
        pattern: pattern of the sentence on one line; its groups are numbers.
        numbers: by counter, the groups of `pattern` it is computed from: the first minus the others.
    """

    pattern: re.Pattern[str]
    numbers: Mapping[str, Sequence[int]]


def mentioned_counters(rules: Iterable[PrintedRule]) -> dict[int, dict[str, float]]:
    """Return the counters mentioned by rules: values by row of the launch and by counter, printed with at most two decimals."""
    found: dict[int, dict[str, float]] = {}
    for rule in rules:
        text = " ".join(rule.cells["Rule Description"].split())
        for counter, value in (*_stalls(text), *_values_in_sentences(text)):
            found.setdefault(rule.row, {}).setdefault(counter, value)
    return found


def _stalls(text: str) -> Iterator[tuple[str, float]]:
    """Yield stall counters, in cycles per issued instruction; rules mention only reasons with a large share, and the largest."""
    for stall in _STALLS.finditer(text):
        cycles, reason = _cycles(stall[1]), _reason(stall[2])
        if cycles is not None and reason is not None:
            yield _STALL.format(reason), cycles


def _values_in_sentences(text: str) -> Iterator[tuple[str, float]]:
    for sentence in _sentences():
        if found := sentence.pattern.search(text):
            numbers = [float(printed.replace(",", ".")) for printed in found.groups()]
            for counter, (first, *others) in sentence.numbers.items():
                yield counter, numbers[first - 1] - sum(numbers[other - 1] for other in others)


def _cycles(printed: str) -> float | None:
    """Return a number with one decimal, after a point or a comma; None if it is not one."""
    try:
        return float(printed.replace(",", "."))
    except ValueError:
        return None


def _reason(words: str) -> str | None:
    return next((reason for part, reason in _reason_by_words().items() if part in words), None)


@cache
def _reason_by_words() -> Mapping[str, str]:
    """Return the stall reason by the words that identify it."""
    with profile_file("printed.toml") as raw:
        return {part: reason for reason, parts in raw["stall_words"].items() for part in parts}


@cache
def _sentences() -> tuple[_Sentence, ...]:
    with profile_file("printed.toml") as raw:
        return tuple(_Sentence(re.compile(entry["pattern"]), entry["numbers"]) for entry in raw["sentence"])
