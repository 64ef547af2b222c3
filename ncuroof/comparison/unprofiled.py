"""Kernels of one run that the other launched, too, as its counting run shows, but did not profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from ncuroof.comparison.run import Run
from ncuroof.comparison.signatures import numbered, texts_without_versions
from ncuroof.diagnosis import UnprofiledLaunches
from ncuroof.ncu.kernel_names import same_kernel_key

_Kernel = tuple[str, ...]
_Shape = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class CountedOnly:
    """A group of one run that the other run counted, and did not profile.

    Attributes:
        group: its number.
        launches: what the other run counted of it; of several groups, such as of NVTX ranges, the same.
        is_same_shape: whether they were launched with its grid and block; else its kernel was, with others.
    """

    group: int
    launches: UnprofiledLaunches
    is_same_shape: bool


def only_counted(
    groups: pl.DataFrame, alone: Collection[int], unprofiled: Sequence[UnprofiledLaunches]
) -> tuple[CountedOnly, ...]:
    """Return which groups without a match the other run counted, in their order.

    Of other shapes, each stands for one alone, as the n-th shape of a kernel may be the n-th of the other run.

    Args:
        groups: of a run.
        alone: those without a match.
        unprofiled: what the other run counted and did not profile.
    """
    if not unprofiled:
        return ()
    entries = dict(zip(_keys(unprofiled), unprofiled, strict=True))
    keys = _keys_of(groups)
    exact = {keys[group] for group in alone} & entries.keys()
    of_other_shapes: dict[_Kernel, list[UnprofiledLaunches]] = defaultdict(list)
    for (kernel, shape), entry in entries.items():
        if (kernel, shape) not in exact:
            of_other_shapes[kernel].append(entry)
    by_shape: dict[tuple[_Kernel, _Shape], UnprofiledLaunches] = {}
    found = []
    for group in sorted(alone):
        key = keys[group]
        if key not in exact and key not in by_shape and of_other_shapes[key[0]]:
            by_shape[key] = of_other_shapes[key[0]].pop(0)
        if launches := entries.get(key) if key in exact else by_shape.get(key):
            found.append(CountedOnly(group, launches, key in exact))
    return tuple(found)


def surely_counted_only(
    groups: pl.DataFrame, others: pl.DataFrame, unprofiled: Sequence[UnprofiledLaunches]
) -> list[int]:
    """Return the groups whose name and shape the other run counted and did not profile: no other group is their like.

    A name that a compiler numbers says too little for that.
    """
    if not unprofiled:
        return []
    known = set(_keys(unprofiled)) - set(_keys_of(others).values())
    is_numbered = dict(groups.select("group", numbered(pl.col("name")).alias("is_numbered")).iter_rows())
    return [group for group, key in _keys_of(groups).items() if key in known and not is_numbered[group]]


def unclear_ns(run: Run, found: Sequence[CountedOnly], other: Run) -> float:
    """Return GPU time of what a run counted and did not profile, and the other run may have under another name.

    Args:
        run: that counted.
        found: what of it is a group of the other run.
        other: the other run; what it only counted, too, is known.
    """
    if not run.unprofiled:
        return run.not_recorded_ns or 0.0  # of a baseline of an earlier version
    in_both = set(_keys(other.unprofiled))
    known = {id(each.launches) for each in found}
    return sum(
        each.duration_ns
        for key, each in zip(_keys(run.unprofiled), run.unprofiled, strict=True)
        if id(each) not in known and key not in in_both
    )


def _keys_of(groups: pl.DataFrame) -> dict[int, tuple[_Kernel, _Shape]]:
    """Return by group the kernel, whichever tool named it, and its shape."""
    names = groups["name"].fill_null("").to_list()
    kernels = [same_kernel_key(name) for name in texts_without_versions(names)]
    shapes = [_shape(*shape) for shape in groups.select("grid", "block").iter_rows()]
    return dict(zip(groups["group"].to_list(), zip(kernels, shapes, strict=True), strict=True))


def _keys(unprofiled: Sequence[UnprofiledLaunches]) -> list[tuple[_Kernel, _Shape]]:
    kernels = [same_kernel_key(name) for name in texts_without_versions([each.name for each in unprofiled])]
    return [(kernel, _shape(each.grid, each.block)) for kernel, each in zip(kernels, unprofiled, strict=True)]


def _shape(grid: Sequence[int] | None, block: Sequence[int] | None) -> _Shape:
    return tuple(grid or ()), tuple(block or ())
