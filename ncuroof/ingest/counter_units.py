"""The unit of a counter, from its name: reports store numbers and no units.

Source: `profiles/units.toml`, which is checked against what NVIDIA's module says of recorded reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from ncuroof.resources import stated

_PERCENT = re.compile(r".*\.pct(_of_peak_\w+)?")
_NAME = re.compile(
    r"(?P<counted>.+?)\.(?:sum|avg|min|max)(?:\.(?P<rate>per_cycle_\w+|peak_sustained|(?:.*\.)?per_second))?"
)
_MAX_NAME_LENGTH = 512
"""The longest counter of a recorded report has 143 characters; patterns need not be tried on what only damage writes."""

_N_CACHED = 1 << 12
"""Reports of one program store the same counters."""


@dataclass(frozen=True, slots=True)
class UnitTable:
    """Patterns of names, in the order in which they are tried.

    Attributes:
        exactly: pattern of whole names by unit.
        counted: pattern of what is counted by kind.
        rates: unit by kind and rate ("sum", "per_cycle", "per_second").
    """

    exactly: Mapping[str, re.Pattern[str]]
    counted: Mapping[str, re.Pattern[str]]
    rates: Mapping[str, Mapping[str, str]]

    def unit(self, counter: str) -> str | None:
        """Return a counter's unit, "" where it has none, or None where it is not known."""
        if len(counter) > _MAX_NAME_LENGTH:
            return None
        if _PERCENT.fullmatch(counter):
            return "%"
        unit = _first(self.exactly, counter)
        if unit is not None:
            return unit
        parts = _NAME.fullmatch(counter)
        kind = _first(self.counted, parts["counted"]) if parts else None
        return self.rates[kind].get(_rate(parts["rate"])) if parts and kind else None


@lru_cache(maxsize=_N_CACHED)
def unit_of(counter: str) -> str | None:
    """Return a counter's unit by the table that ships with ncuroof, "" where it has none, or None where it is not known.

    Raises:
        ProfileError: the installation is broken.
    """
    return load_units().unit(counter)


@cache
def load_units() -> UnitTable:
    """Return the table that ships with ncuroof.

    Raises:
        ProfileError: the installation is broken.
    """
    with stated("units.toml") as raw:
        exactly, counted = ({key: _any_of(each) for key, each in raw[part].items()} for part in ("exactly", "counted"))
        return UnitTable(exactly, counted, raw["rates"])


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def _first(patterns: Mapping[str, re.Pattern[str]], text: str) -> str | None:
    return next((key for key, pattern in patterns.items() if pattern.fullmatch(text)), None)


def _rate(suffix: str | None) -> str:
    """Return which of a kind's units holds; a peak per cycle is counted per cycle."""
    if not suffix:
        return "sum"
    return "per_second" if suffix.endswith("per_second") else "per_cycle"
