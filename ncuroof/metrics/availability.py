"""Which architecture has which counter, read from `profiles/availability.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ncuroof.errors import ProfileError
from ncuroof.resources import folder, read_toml


@dataclass(frozen=True, slots=True)
class CounterGroup:
    """Counters of one kind: where they are, and what is to be said of them.

    Attributes:
        available: compute capabilities (major × 10 + minor) that have them.
        unknown: compute capabilities of which it is not known.
        note: where they come from, or None of hardware counters.
        collect: options of ncu that collect them, or None.
    """

    available: tuple[int, ...]
    unknown: tuple[int, ...] = ()
    note: str | None = None
    collect: str | None = None


@dataclass(frozen=True, slots=True)
class Availability:
    """All of `profiles/availability.toml`.

    Attributes:
        capabilities: compute capabilities (major × 10 + minor) that it tells of.
        group_by_counter: by base name, which is what stands before the first dot of a counter's name.
    """

    capabilities: tuple[int, ...]
    group_by_counter: Mapping[str, CounterGroup]

    def has(self, counter: str, capability: int) -> bool | None:
        """Return whether chips of a compute capability have a counter; None where it is not known.

        Args:
            counter: base name, one of `group_by_counter`.
            capability: compute capability, one of `capabilities`.
        """
        group = self.group_by_counter[counter]
        return None if capability in group.unknown else capability in group.available


@cache
def load_availability() -> Availability:
    """Return the availability of counters that ships with ncuroof.

    Raises:
        ProfileError: `profiles/availability.toml` is malformed, or names a counter twice.
    """
    raw = read_toml(folder("profiles") / "availability.toml")
    groups = {name: CounterGroup(tuple(capabilities)) for name, capabilities in raw["chips"].items()}
    for entry in raw["group"]:
        group = CounterGroup(
            tuple(entry["available"]), tuple(entry.get("unknown", ())), entry["note"], entry.get("collect")
        )
        for name in entry["counters"]:
            if name in groups:
                raise ProfileError(f"availability.toml: {name} stands in it twice")
            groups[name] = group
    return Availability(tuple(raw["compute_capabilities"]), groups)
