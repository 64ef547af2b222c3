"""What to ask ncu for on given GPUs: set, sections and counters, and how many passes they take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ncuroof.errors import ProfileRequestError
from ncuroof.ncu.settings import Settings, Version, version_text

_EXPLICIT = "roofline"
"""The level that requests single counters by name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to collect from each launch.

    Attributes:
        level: its name.
        set: NVIDIA's section set, or None.
        sections: sections in addition to the set.
        metrics: single metrics.
        passes: fewest and most replay passes per launch; None if unknown.
        capabilities: compute capabilities (major × 10 + minor) of the GPUs that the plan is for; empty if unknown.
    """

    level: str
    set: str | None
    sections: tuple[str, ...]
    metrics: tuple[str, ...]
    passes: tuple[int, int] | None
    capabilities: tuple[int, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """The plan as options of ncu."""
        chosen = ["--set", self.set] if self.set else []
        for section in self.sections:
            chosen += ["--section", section]
        return [*chosen, *(["--metrics", ",".join(self.metrics)] if self.metrics else [])]


def plan_collection(
    level: str,
    settings: Settings,
    *,
    capabilities: Iterable[int] = (),
    ncu_version: Version = (),
    sections: Iterable[str] = (),
    metrics: Iterable[str] = (),
) -> Plan:
    """Return what to ask ncu for.

    Args:
        level: quick, roofline or full.
        settings: of profiles/collect.toml.
        capabilities: compute capabilities (major × 10 + minor) of the GPUs at hand. Only counters that all of them have are
            requested; without any, or with an unknown one, only counters that all GPUs in the settings have.
        ncu_version: version of the ncu to ask; if empty, only what every version has is requested.
        sections: sections in addition to the level's; always requested.
        metrics: metrics in addition to the level's.

    Raises:
        ProfileRequestError: the level does not exist, or ncu is too old.
    """
    if level not in settings.levels:
        raise ProfileRequestError(f"unknown level {level!r}", hint=f"levels: {', '.join(settings.levels)}")
    if ncu_version and ncu_version < settings.oldest_ncu:
        found, oldest = map(version_text, (ncu_version, settings.oldest_ncu))
        raise ProfileRequestError(
            f"ncu {oldest} or later is needed, found {found}", hint="point NCUROOF_NCU to a newer ncu"
        )
    wanted, asked = settings.levels[level], tuple(sections)
    known = tuple(dict.fromkeys(capabilities))
    stanzas = settings.counters if level == _EXPLICIT else ()
    places = known if known and set(known) <= set(settings.capabilities) else settings.capabilities
    chosen = [
        stanza
        for stanza in stanzas
        if (not stanza.capabilities or set(places) <= set(stanza.capabilities)) and ncu_version >= stanza.since
    ]
    all_sections = dict.fromkeys((*wanted.sections, *(name for stanza in chosen for name in stanza.sections), *asked))
    return Plan(
        level=level,
        set=wanted.set,
        sections=tuple(
            name for name in all_sections if name in asked or _is_in(ncu_version, settings.section_since.get(name))
        ),
        metrics=tuple(dict.fromkeys((*(name for stanza in chosen for name in stanza.names), *metrics))),
        passes=_passes(level, known, settings),
        capabilities=known,
    )


def _is_in(version: Version, since: Version | None) -> bool:
    return since is None or version >= since  # () is less than any: an unknown version may be older


def _passes(level: str, capabilities: tuple[int, ...], settings: Settings) -> tuple[int, int] | None:
    ranges = [settings.passes.get((level, capability)) for capability in capabilities]
    found = [each for each in ranges if each is not None]
    if not found or len(found) < len(ranges):
        return None
    return min(low for low, _ in found), max(high for _, high in found)
