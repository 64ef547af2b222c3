"""Names of siblings that differ only in a number, such as iterations and layers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

_NUMBER = re.compile(r"([0-9]{1,15})")
"""Longer numbers count as several: Python does not read those of thousands of digits."""

_LEAST_ALIKE = 3
"""Fewer names than this are not worth one for all."""


def alike(names: Sequence[str]) -> dict[str, list[str]]:
    """Return what stands for names that differ in the same single number, with these names: "layer 0 to 31".

    Args:
        names: all different.
    """
    by_frame: dict[tuple[str, ...], list[list[str]]] = defaultdict(list)
    for name in names:
        pieces = _NUMBER.split(name)  # texts at even places, numbers at odd ones
        by_frame[tuple(pieces[::2])].append(pieces)
    return {
        _common(members, places[0]): ["".join(pieces) for pieces in members]
        for members in by_frame.values()
        if len(members) >= _LEAST_ALIKE and len(places := _differing(members)) == 1
    }


def _differing(members: Sequence[Sequence[str]]) -> list[int]:
    return [place for place, pieces in enumerate(zip(*members, strict=True)) if len(set(pieces)) > 1]


def _common(members: Sequence[Sequence[str]], place: int) -> str:
    low, high = (choose((pieces[place] for pieces in members), key=int) for choose in (min, max))
    return "".join((*members[0][:place], f"{low} to {high}", *members[0][place + 1 :]))
