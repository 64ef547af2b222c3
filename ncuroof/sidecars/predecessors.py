"""Find the kernels that ran right before each kernel in its stream, in a timeline."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass

from ncuroof.sidecars.traces.timeline import Activity, Shape, Timeline

KernelKey = tuple[str, Shape, Shape]
"""Name, grid and block of a kernel: equal for all launches with one shape."""

_NO_SHAPE = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Predecessor:
    """A kernel and shape that ran right before another kernel in its stream.

    Attributes:
        name: as the profiler writes it.
        grid: x, y, z.
        block: x, y, z.
        n_launches: how often it ran there.
    """

    name: str
    grid: Shape
    block: Shape
    n_launches: int

    @property
    def key(self) -> KernelKey:
        """Name, grid and block."""
        return self.name, self.grid, self.block


def predecessors_of(timeline: Timeline) -> dict[KernelKey, tuple[Predecessor, ...]] | None:
    """Return the kernels that ran right before each kernel in its stream, without copies; None if streams are unknown."""
    if any(activity.stream is None for activity in timeline.activities):
        return None
    found: dict[KernelKey, list[Predecessor]] = defaultdict(list)
    last: dict[Hashable, Activity] = {}
    for activity in sorted(timeline.activities, key=lambda each: each.start_ns):
        previous = last.get(activity.stream)
        if not activity.is_copy and previous is not None and not previous.is_copy:
            found[kernel_key(activity)].append(Predecessor(*kernel_key(previous), 1))
        last[activity.stream] = activity
    return defaultdict(tuple, {key: summed(*each) for key, each in found.items()})


def summed(*predecessors: Predecessor) -> tuple[Predecessor, ...]:
    """Sum the launches of equal predecessors; the most frequent come first."""
    counted: Counter[KernelKey] = Counter()
    for each in predecessors:
        counted[each.key] += each.n_launches
    return tuple(Predecessor(*key, n_launches) for key, n_launches in counted.most_common())


def kernel_key(activity: Activity) -> KernelKey:
    """Return the key of an activity's kernel; for a CUDA graph traced as a whole, grid and block are 0."""
    return (activity.name, *(activity.shape or (_NO_SHAPE, _NO_SHAPE)))
