"""Converts units as ncu prints them, with prefixes that fit the column, to the units in which a report stores its numbers.

Source: `profiles/printed.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ncuroof.resources import profile_file

_NANOSECONDS_PER_SECOND = 1e9


@dataclass(frozen=True, slots=True)
class PrintedUnits:
    """How ncu prints units.

    Attributes:
        factor_by_prefix: factor of each decimal prefix.
        prefixed: units that are printed with prefixes.
        nanoseconds: nanoseconds in each unit of time, by the word for it.
        hertz: units that mean hertz.
    """

    factor_by_prefix: Mapping[str, float]
    prefixed: frozenset[str]
    nanoseconds: Mapping[str, float]
    hertz: frozenset[str]

    def stored(self, unit: str) -> tuple[str, float]:
        """Return the unit in which a report stores a value printed in `unit`, and the factor from printed to stored values.

        Of a partly unknown unit, only the known parts are converted; code that scales counters rejects what remains.
        """
        counted, slash, per = unit.strip().partition("/")
        if not slash:
            return self._counted(counted)
        what, factor = self._counted(counted)
        if per in self.nanoseconds:
            stored, factor = f"{what or '1'}/s", factor * _NANOSECONDS_PER_SECOND / self.nanoseconds[per]
            return ("hz" if stored in self.hertz else stored), factor
        each, divisor = self._counted(per)
        if not what:
            return "", factor / divisor  # as in a report, where something counted per cycle may have no unit
        return (f"{what}/{each}" if each else what), factor / divisor

    def _counted(self, word: str) -> tuple[str, float]:
        if word in self.nanoseconds:
            return "ns", self.nanoseconds[word]
        if word[1:] in self.prefixed and word[0] in self.factor_by_prefix:
            return word[1:], self.factor_by_prefix[word[0]]
        return word, 1.0


@cache
def load_printed_units() -> PrintedUnits:
    """Return what ships with ncuroof.

    Raises:
        ProfileError: the installation is broken.
    """
    with profile_file("printed.toml") as raw:
        table = raw["units"]
        return PrintedUnits(
            table["prefixes"], frozenset(table["prefixed"]), table["nanoseconds"], frozenset(table["hertz"])
        )
