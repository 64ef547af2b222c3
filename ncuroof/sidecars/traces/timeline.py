"""The contents of a trace, independent of the tool: GPU activities, the calls that launched them, and host ranges."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

Shape = tuple[int, int, int]

MOST_NS = 1e18
"""Thirty years; a longer time cannot have been measured."""

WHOLE_GRAPH = "CUDA graph"
"""Name for the kernels of a CUDA graph that was traced as a whole; their launch shapes are unknown."""


def as_shape(values: Sequence[Any]) -> Shape:
    """Return a grid or block read from a document.

    Raises:
        TypeError, ValueError: the values are not three integers.
    """
    shape = tuple(int(value) for value in values)
    if len(shape) != 3:
        raise ValueError(f"expected three numbers for a grid or block, found {len(shape)}")
    return shape


@dataclass(frozen=True, slots=True)
class Activity:
    """A kernel, copy, memset, or CUDA graph traced as a whole, on a GPU.

    Attributes:
        name: name of a kernel, as the tool writes it.
        start_ns: since an arbitrary origin, the same for all of a timeline.
        duration_ns: how long it ran.
        gpu: identifies the GPU.
        launch: identifies the launch; equal to `Call.launch` of the call that launched it.
        shape: grid and block of a kernel; None for a copy or a graph.
        is_copy: a copy or memset.
        stream: identifies the stream, across GPUs and processes; None if the tool does not say.
    """

    name: str
    start_ns: float
    duration_ns: float
    gpu: Hashable
    launch: Hashable
    shape: tuple[Shape, Shape] | None = None
    is_copy: bool = False
    stream: Hashable = None

    @property
    def end_ns(self) -> float:
        """When it ended."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A call of the CUDA API on the host.

    Attributes:
        name: of the function.
        start_ns: on the activities' clock.
        end_ns: when it returned.
        thread: the thread that made it.
        launch: identifies the launch, as in `Activity`; None if it launched nothing.
    """

    name: str
    start_ns: float
    end_ns: float
    thread: Hashable
    launch: Hashable


@dataclass(frozen=True, slots=True)
class HostRange:
    """A named range of time on the host, from the program or its framework.

    Attributes:
        name: an operator, or a range that the program opened.
        start_ns: on the activities' clock.
        end_ns: when it ended.
        thread: the thread of the range.
    """

    name: str
    start_ns: float
    end_ns: float
    thread: Hashable


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run, or a part of one.

    Attributes:
        activities: on all GPUs, in any order.
        calls: at least those that launched the activities, and those that wait for the GPU.
        ranges: what the host did; empty if the tool did not record it.
        is_stretched: the tool traced the kernels of CUDA graphs one by one, which serialises them: gaps mean nothing.
    """

    activities: Sequence[Activity]
    calls: Sequence[ApiCall]
    ranges: Sequence[HostRange] = ()
    is_stretched: bool = False


def name_of(value: object) -> str:
    """Return a name from JSON as text that can be encoded, with question marks in place of lone surrogates."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def checked_duration(start_ns: float, duration_ns: float) -> float:
    """Return the duration if it is plausible.

    Raises:
        ValueError: the duration is negative, not a number or longer than `MOST_NS`, or the start is not finite.
    """
    if not (isfinite(start_ns) and 0 <= duration_ns < MOST_NS):
        raise ValueError(f"found an implausible duration: {duration_ns} ns from {start_ns} ns on")
    return duration_ns
