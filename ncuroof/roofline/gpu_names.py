"""Find the GPU profile that a user means by "4090d", "a100 80gb" or "dgx spark", or the ones that come close."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from functools import cache

from ncuroof import resources
from ncuroof.errors import UnknownNameError
from ncuroof.roofline.gpu_profiles import GpuProfile, load_profiles, normalise_device_name

_SERIES = ("rtx", "gtx")
_CAPACITY = re.compile(r"\d+gb")
_GIB = 2**30
_MOST_HINTS = 6
_LEAST_LIKENESS = 0.5


def profile_by_name(name: str) -> GpuProfile:
    """Return the profile with this name, with or without RTX or GTX, else the only one whose names contain all of its words.

    Case, brand words, blanks, hyphens and underscores do not matter. A memory size must fit, and decides between profiles that the
    other words match.

    Raises:
        UnknownNameError: no profile or several fit; the hint lists the fitting ones, or those with similar names.
        ProfileError: a file is malformed.
    """
    words = normalise_device_name(name).split()
    whole = [profile for profile in load_profiles() if "".join(words) in _spellings(profile)]
    if len(whole) == 1:
        return whole[0]
    sizes = [word for word in words if _CAPACITY.fullmatch(word)]
    found: list[GpuProfile] = []
    for fits in _readings([word for word in words if word not in sizes]):
        fitting = [profile for profile in load_profiles() if fits(profile)]
        found = [profile for profile in fitting if all(_has_memory(profile, size) for size in sizes)]
        if len(found) == 1:
            return found[0]
        if fitting and not found:
            break
    near = [profile.id for profile in found] or _nearest("".join(words))
    count = f"{len(found)} GPU profiles match" if found else "no GPU profile matches"
    if not found and name.strip().lower() in _accelerators():
        raise UnknownNameError(f"{count} {name!r}", hint=f"{name} is for `ncuroof model` only: --gpu {name}")
    raise UnknownNameError(f"{count} {name!r}", hint=f"use one of: {', '.join(near)}")


@cache
def _accelerators() -> frozenset[str]:
    """Return the ids of the machines that exist only for models."""
    return frozenset(path.stem for path in (resources.folder("profiles") / "accelerators").glob("*.toml"))


def _readings(words: Sequence[str]) -> list[Callable[[GpuProfile], bool]]:
    """Return predicates for whether the words mean a profile, the strictest first."""
    joined = "".join(words)
    return [
        lambda profile: joined in _spellings(profile),
        lambda profile: any(series + joined in _spellings(profile) for series in _SERIES),
        lambda profile: bool(words) and _words(profile).issuperset(words),
    ]


@cache
def _names(profile: GpuProfile) -> tuple[str, ...]:
    known = (profile.id, re.sub(r"[()]", " ", profile.name), *profile.device_names)
    return tuple(normalise_device_name(each) for each in known)


@cache
def _spellings(profile: GpuProfile) -> frozenset[str]:
    """Return all names of a GPU, without blanks between words."""
    return frozenset(name.replace(" ", "") for name in _names(profile))


@cache
def _words(profile: GpuProfile) -> frozenset[str]:
    return frozenset(word for name in _names(profile) for word in name.split())


def _has_memory(profile: GpuProfile, size: str) -> bool:
    """Return whether a GPU has that much memory ("80gb") by a name or its profile; also True if the profile states no size."""
    return profile.dram_bytes is None or size in _words(profile) or size == f"{round(profile.dram_bytes / _GIB)}gb"


def _nearest(joined: str) -> list[str]:
    """Return the ids of the profiles with the most similar names, or words that contain a digit; all ids if none is similar."""

    def likeness(profile: GpuProfile) -> float:
        numbers = {word for word in _words(profile) if any(map(str.isdigit, word)) and not _CAPACITY.fullmatch(word)}
        return max(difflib.SequenceMatcher(None, joined, each).ratio() for each in _spellings(profile) | numbers)

    by_likeness = sorted((-likeness(profile), profile.id) for profile in load_profiles())
    near = [id_ for likeness_, id_ in by_likeness if -likeness_ >= _LEAST_LIKENESS][:_MOST_HINTS]
    return near or [profile.id for profile in load_profiles()]
