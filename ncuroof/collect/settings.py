"""What `profiles/collect.toml` says: levels, their counters and costs, launchers, failures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ncuroof.errors import ProfileRequestError
from ncuroof.resources import stated

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """How much is asked for.

    Attributes:
        doc: one sentence.
        set: NVIDIA's section set, or None.
        sections: beside the set.
    """

    doc: str
    set: str | None
    sections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CounterStanza:
    """Counters of the level roofline that belong together.

    Attributes:
        reason: what they are for.
        names: full names, as `--metrics` takes them.
        sections: asked for where single names are not known.
        capabilities: compute capabilities (major × 10 + minor) that have them; empty: all.
        since: first version of ncu that knows the names; empty: all.
    """

    reason: str
    names: tuple[str, ...]
    sections: tuple[str, ...]
    capabilities: tuple[int, ...]
    since: Version


@dataclass(frozen=True, slots=True)
class Launcher:
    """A program that starts ranks.

    Attributes:
        rank: environment variable that holds a rank's number.
        module: that `python -m` starts it by; None where it is no Python.
        own_program: options that make a launcher of Python scripts run any program; empty where it does that anyway.
        flags: of a launcher of scripts, the options without a value, as `option_name` gives them.
        values: of another, the options with a value.
        two_values: those with two.
    """

    rank: str
    module: str | None = None
    own_program: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    two_values: frozenset[str] = frozenset()

    def n_values(self, option: str) -> int:
        """Return how many of the words after an option are its values."""
        name = option_name(option)
        if "=" in name:
            return 0
        if self.own_program:
            return int(name not in self.flags)
        return 2 if name in self.two_values else int(name in self.values)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of ncu: how its words are known, and what to say instead."""

    id: str
    pattern: re.Pattern[str]
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Settings:
    """All of `profiles/collect.toml`.

    Attributes:
        capabilities: compute capabilities (major × 10 + minor) whose counters it lists.
        oldest_ncu: the oldest version that has what the levels ask for.
        levels: by name.
        section_since: first version of sections that came later.
        option_since: first version of options that came later.
        chips: by compute capability (major × 10 + minor), a chip as ncu names it.
        given_by_ncuroof: what to ask ncuroof for in place of options that it gives to ncu itself, by the option in each spelling.
        counters: of the level roofline.
        passes: fewest and most replay passes of a launch, by level and compute capability; absent where not known.
        replay_s: what a replay takes beside the kernel's own time, in seconds.
        per_shape_from_launches: a counted run with more launches is recorded once per kernel and launch shape.
        line_sections: what lines of the source take beside a level's.
        line_options: of ncu, for the same.
        collectives: pattern of the names of kernels that wait for other GPUs.
        waiting_calls: pattern of the names of calls of the CUDA API that wait for the GPU.
        nsys_options: with which Nsight Systems counts launches.
        launchers: by the words that call them.
        failures: in the order in which they are looked for.
    """

    capabilities: tuple[int, ...]
    oldest_ncu: Version
    levels: Mapping[str, Level]
    section_since: Mapping[str, Version]
    option_since: Mapping[str, Version]
    chips: Mapping[int, str]
    given_by_ncuroof: Mapping[str, str]
    counters: tuple[CounterStanza, ...]
    passes: Mapping[tuple[str, int], tuple[int, int]]
    replay_s: float
    per_shape_from_launches: int
    line_sections: tuple[str, ...]
    line_options: tuple[str, ...]
    collectives: str
    waiting_calls: str
    nsys_options: tuple[str, ...]
    launchers: Mapping[str, Launcher]
    failures: tuple[Failure, ...]


def option_name(option: str) -> str:
    """Return an option's name as launchers take it in several spellings: `--no_python` is `no-python`."""
    return option.lstrip("-").replace("_", "-")


def parse_version(text: str) -> Version:
    """Return a dotted version as numbers: "2024.1.1" is (2024, 1, 1)."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def parse_capability(text: str) -> int:
    """Return a compute capability as major × 10 + minor: "9.0" is 90.

    Raises:
        ProfileRequestError: it is none.
    """
    match = re.fullmatch(r"(\d+)\.(\d)", text)
    if match is None:
        raise ProfileRequestError(
            f"expected a compute capability, found {text!r}",
            hint="--compute-capability 9.0; ncuroof gpus lists them",
        )
    return 10 * int(match[1]) + int(match[2])


@cache
def load_settings() -> Settings:
    """Return the settings that ship with ncuroof.

    Raises:
        ProfileError: `profiles/collect.toml` is malformed.
    """
    with stated("collect.toml") as raw:
        return _settings(raw)


def _settings(raw: Mapping[str, Any]) -> Settings:
    return Settings(
        capabilities=tuple(raw["compute_capabilities"]),
        oldest_ncu=parse_version(raw["oldest_ncu"]),
        levels={
            name: Level(entry["doc"], entry.get("set"), tuple(entry.get("sections", ())))
            for name, entry in raw["level"].items()
        },
        section_since={name: parse_version(since) for name, since in raw["section_since"].items()},
        option_since={name: parse_version(since) for name, since in raw["option_since"].items()},
        chips={parse_capability(capability): chip for capability, chip in raw["chips"].items()},
        given_by_ncuroof={
            spelling: instead
            for spellings, instead in raw["given_by_ncuroof"].items()
            for spelling in spellings.split()
        },
        counters=tuple(map(_stanza, raw["counters"])),
        passes={
            (entry["level"], capability): (entry["range"][0], entry["range"][1])
            for entry in raw["passes"]
            for capability in entry["compute_capability"]
        },
        replay_s=raw["replay"]["seconds"],
        per_shape_from_launches=raw["per_shape"]["from_launches"],
        line_sections=tuple(raw["lines"]["sections"]),
        line_options=tuple(raw["lines"]["options"]),
        collectives=raw["collectives"]["name_pattern"],
        waiting_calls=raw["waiting_calls"]["name_pattern"],
        nsys_options=tuple(raw["nsys"]["options"]),
        launchers={
            name: _launcher({**raw["launcher"].get(entry.get("as"), {}), **entry})
            for name, entry in raw["launcher"].items()
        },
        failures=tuple(
            Failure(entry["id"], re.compile(entry["pattern"]), entry["message"], entry["hint"])
            for entry in raw["failure"]
        ),
    )


def _launcher(entry: Mapping[str, Any]) -> Launcher:
    named = {name: frozenset(entry.get(name, ())) for name in ("flags", "values", "two_values")}
    return Launcher(entry["rank"], entry.get("module"), tuple(entry.get("own_program", ())), **named)


def _stanza(entry: Mapping[str, Any]) -> CounterStanza:
    return CounterStanza(
        entry["for"],
        tuple(entry["names"]),
        tuple(entry.get("sections", ())),
        tuple(entry.get("compute_capability", ())),
        parse_version(entry.get("since", "")),
    )
