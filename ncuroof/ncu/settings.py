"""Read `profiles/collect.toml`: levels, their counters and costs, launchers of ranks, ncu's failures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ncuroof.errors import ProfileRequestError
from ncuroof.resources import profile_file

NOTHING_PROFILED = re.compile(r"No (?:kernels|graphs|ranges) were")
FOLLOWS_FROM_ANOTHER = re.compile(rf"{NOTHING_PROFILED.pattern}|The application returned an error code")
"""Messages of ncu that only follow from a different message, if there is one."""

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """How much to collect.

    Attributes:
        doc: one sentence.
        set: NVIDIA's section set, or None.
        sections: sections in addition to the set.
    """

    doc: str
    set: str | None
    sections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CounterStanza:
    """A group of counters of the level roofline.

    Attributes:
        reason: what they are for.
        names: full names, as `--metrics` takes them.
        sections: sections to collect if the names of the single counters are unknown.
        capabilities: compute capabilities (major × 10 + minor) that have the counters; empty: all.
        since: first version of ncu that knows the names; empty: all.
    """

    reason: str
    names: tuple[str, ...]
    sections: tuple[str, ...]
    capabilities: tuple[int, ...]
    since: Version


@dataclass(frozen=True, slots=True)
class Launcher:
    """A launcher of ranks, such as torchrun or mpirun.

    Attributes:
        rank: environment variable that holds a process's rank.
        module: module with which `python -m` starts it; None if it is not a Python module.
        own_program: options that make a launcher of Python scripts run any program; empty for launchers that always do.
        flags: for a launcher of Python scripts, its options without a value, named as by `option_name`.
        values: for other launchers, the options with one value.
        two_values: for other launchers, the options with two values.
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
class Wrapper:
    """A command that runs a given command, such as `uv run` or `numactl`.

    Attributes:
        values: its options with a value, named as by `option_name`.
        n_words: words between its options and the command.
        own_python: the command finds its Python in a different environment than ncuroof's.
    """

    values: frozenset[str] = frozenset()
    n_words: int = 0
    own_python: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of ncu: the pattern of its messages, and the message and hint to print instead.

    Attributes:
        is_of_machine: whether it is caused by the machine's set-up, which `ncuroof doctor` checks, and not by program or options.
        is_before_kernels: whether its messages mean this failure only before the first kernel.
    """

    id: str
    pattern: re.Pattern[str]
    message: str
    hint: str
    is_of_machine: bool
    is_before_kernels: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """All of `profiles/collect.toml`.

    Attributes:
        capabilities: compute capabilities (major × 10 + minor) with a counter list.
        oldest_capability: oldest compute capability that Nsight Compute supports.
        oldest_ncu: oldest ncu version that has all that the levels need.
        levels: by name.
        section_since: first ncu version of sections that are newer than `oldest_ncu`.
        option_since: first ncu version of options that are newer.
        chips: name that ncu gives to a chip, by compute capability (major × 10 + minor).
        given_by_ncuroof: the options of ncu that ncuroof sets itself, in each spelling, with the option of ncuroof to use instead.
        counters: counters of the level roofline.
        passes: fewest and most replay passes per launch, by level and compute capability; absent if unknown.
        replay_s: overhead of one replay beyond the kernel's own time, in seconds.
        per_shape_from_launches: with more launches than this, each kernel and launch shape is recorded once.
        line_sections: sections that source lines need in addition to a level's.
        line_options: ncu options that source lines need.
        collectives: pattern of the names of kernels that wait for other GPUs.
        waiting_calls: pattern of the names of CUDA API calls that wait for the GPU.
        nsys_options: options with which Nsight Systems counts launches.
        launchers: by the words that call them (`torchrun`, `accelerate launch`).
        wrappers: by the words that call them (`uv run`, `numactl`).
        failures: in the order in which they are matched.
        reasons: other reasons for a run that recorded nothing, by the name that is printed in parentheses.
    """

    capabilities: tuple[int, ...]
    oldest_capability: int
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
    wrappers: Mapping[str, Wrapper]
    failures: tuple[Failure, ...]
    reasons: Mapping[str, str]


def option_name(option: str) -> str:
    """Return an option's name in one spelling: `--no_python` and `--no-python` become `no-python`."""
    return option.lstrip("-").replace("_", "-")


def parse_version(text: str) -> Version:
    """Return a dotted version as numbers: "2024.1.1" is (2024, 1, 1)."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def version_text(version: Version) -> str:
    """Return a version as NVIDIA writes it: (2024, 1, 1) is "2024.1.1"."""
    return ".".join(map(str, version))


def parse_capability(text: str) -> int:
    """Return a compute capability as major × 10 + minor: "9.0" is 90.

    Raises:
        ProfileRequestError: the text is not a compute capability.
    """
    capability = capability_number(text)
    if capability is None:
        raise ProfileRequestError(
            f"expected a compute capability, found {text!r}",
            hint="--compute-capability 9.0; ncuroof gpus lists them",
        )
    return capability


def capability_number(text: str) -> int | None:
    """Return a compute capability as major × 10 + minor; None if the text is not a compute capability."""
    match = re.fullmatch(r"(\d+)\.(\d)", text)
    return None if match is None else 10 * int(match[1]) + int(match[2])


@cache
def load_settings() -> Settings:
    """Return the settings that ship with ncuroof.

    Raises:
        ProfileError: `profiles/collect.toml` is malformed.
    """
    with profile_file("collect.toml") as raw:
        return _settings(raw)


def _settings(raw: Mapping[str, Any]) -> Settings:
    return Settings(
        capabilities=tuple(raw["compute_capabilities"]),
        oldest_capability=raw["oldest_compute_capability"],
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
        wrappers={name: _wrapper(raw["wrapper"].get(entry.get("as"), entry)) for name, entry in raw["wrapper"].items()},
        failures=tuple(
            Failure(
                entry["id"],
                re.compile(entry["pattern"]),
                entry["message"],
                entry["hint"],
                is_of_machine=entry.get("is_of_machine", False),
                is_before_kernels=entry.get("before_kernels", False),
            )
            for entry in raw["failure"]
        ),
        reasons=raw["reason"],
    )


def _launcher(entry: Mapping[str, Any]) -> Launcher:
    named = {name: frozenset(entry.get(name, ())) for name in ("flags", "values", "two_values")}
    return Launcher(entry["rank"], entry.get("module"), tuple(entry.get("own_program", ())), **named)


def _wrapper(entry: Mapping[str, Any]) -> Wrapper:
    return Wrapper(frozenset(entry.get("values", ())), entry.get("n_words", 0), entry.get("own_python", False))


def _stanza(entry: Mapping[str, Any]) -> CounterStanza:
    return CounterStanza(
        entry["for"],
        tuple(entry["names"]),
        tuple(entry.get("sections", ())),
        tuple(entry.get("compute_capability", ())),
        parse_version(entry.get("since", "")),
    )


def known_failure(messages: Iterable[str], failures: Sequence[Failure], *, has_kernels: bool = True) -> Failure | None:
    """Return the first of `failures` whose pattern matches one of ncu's messages, or None.

    Args:
        messages: messages of ncu.
        failures: in the order in which they are matched.
        has_kernels: whether ncu had begun to profile a kernel.
    """
    said = list(messages)
    possible = (failure for failure in failures if not (failure.is_before_kernels and has_kernels))
    return next((failure for failure in possible if any(failure.pattern.search(line) for line in said)), None)
