"""Derives the unit of a counter from its name, because reports store numbers without units.

Source: `profiles/units.toml`, which is checked against the units that NVIDIA's module gives for recorded reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from ncuroof.resources import profile_file

_PERCENT = re.compile(r".*\.pct(_of_peak_\w+)?")
_NAME = re.compile(
    r"(?P<counted>.+?)\.(?:sum|avg|min|max)(?:\.(?P<rate>per_cycle_\w+|peak_sustained|(?:.*\.)?per_second))?"
)
_MAX_NAME_LENGTH = 512
"""The longest counter name in a recorded report has 143 characters; longer ones come from damage and are not matched."""

_N_CACHED = 1 << 12
"""Counter names whose unit is cached: reports of one program store the same counters."""


@dataclass(frozen=True, slots=True)
class UnitTable:
    """Patterns of counter names, tried in the order in which they are listed.

    Attributes:
        exactly: by unit, the pattern of the full names of counters with that unit.
        counted: by kind of thing counted, the pattern of the name's part before `.sum`, `.avg`, `.min` or `.max`.
        rates: by kind, then by rate ("sum", "per_cycle", "per_second"), the unit.
    """

    exactly: Mapping[str, re.Pattern[str]]
    counted: Mapping[str, re.Pattern[str]]
    rates: Mapping[str, Mapping[str, str]]

    def unit(self, counter: str) -> str | None:
        """Return a counter's unit, "" if it has none, or None if it is not known."""
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
    """Return a counter's unit by the table that ships with ncuroof, "" if it has none, or None if it is not known.

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
    with profile_file("units.toml") as raw:
        exactly, counted = ({key: _any_of(each) for key, each in raw[part].items()} for part in ("exactly", "counted"))
        return UnitTable(exactly, counted, raw["rates"])


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def _first(patterns: Mapping[str, re.Pattern[str]], text: str) -> str | None:
    return next((key for key, pattern in patterns.items() if pattern.fullmatch(text)), None)


def _rate(suffix: str | None) -> str:
    """Return the key into a kind's units for a name suffix; `peak_sustained` is a value per cycle."""
    if not suffix:
        return "sum"
    return "per_second" if suffix.endswith("per_second") else "per_cycle"
