"""Kernels of one run that the counting run of the other shows, but that the other run did not profile."""

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
    """A group of one run that the other run counted, but did not profile.

    Attributes:
        group: its number.
        launches: what the other run counted; groups that differ only in their NVTX range share it.
        is_same_shape: whether the counted launches have the group's grid and block; if not, only the kernel agrees.
    """

    group: int
    launches: UnprofiledLaunches
    is_same_shape: bool


def only_counted(
    groups: pl.DataFrame, alone: Collection[int], unprofiled: Sequence[UnprofiledLaunches]
) -> tuple[CountedOnly, ...]:
    """Return the groups without a match that the other run counted, in their order.

    Counted launches of a different shape stand for one shape only: the n-th shape of a kernel is taken to be the n-th of the other
    run.

    Args:
        groups: `groups` of a run.
        alone: numbers of the groups without a match.
        unprofiled: launches that the other run counted, but did not profile.
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
    """Return the groups whose name and shape the other run counted, but did not profile, so that nothing in it can match them.

    Groups with numbered names are left out, because equal numbers are no evidence.
    """
    if not unprofiled:
        return []
    known = set(_keys(unprofiled)) - set(_keys_of(others).values())
    is_numbered = dict(groups.select("group", numbered(pl.col("name")).alias("is_numbered")).iter_rows())
    return [group for group, key in _keys_of(groups).items() if key in known and not is_numbered[group]]


def unclear_ns(run: Run, found: Sequence[CountedOnly], other: Run) -> float:
    """Return the GPU time that a run counted, but did not profile, and that may match kernels of the other run by other names.

    Args:
        run: the run that counted.
        found: counted launches that are known to be groups of the other run.
        other: the other run; launches that it also only counted are known to be the same.
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
    """Return kernel and shape by group. The key of a kernel does not depend on the tool that wrote its name."""
    names = groups["name"].fill_null("").to_list()
    kernels = [same_kernel_key(name) for name in texts_without_versions(names)]
    shapes = [_shape(*shape) for shape in groups.select("grid", "block").iter_rows()]
    return dict(zip(groups["group"].to_list(), zip(kernels, shapes, strict=True), strict=True))


def _keys(unprofiled: Sequence[UnprofiledLaunches]) -> list[tuple[_Kernel, _Shape]]:
    kernels = [same_kernel_key(name) for name in texts_without_versions([each.name for each in unprofiled])]
    return [(kernel, _shape(each.grid, each.block)) for kernel, each in zip(kernels, unprofiled, strict=True)]


def _shape(grid: Sequence[int] | None, block: Sequence[int] | None) -> _Shape:
    return tuple(grid or ()), tuple(block or ())
