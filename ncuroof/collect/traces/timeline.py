"""What ran on the GPU and when, and the calls that launched it, whichever tool recorded them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

Shape = tuple[int, int, int]

MOST_NS = 1e18
"""Thirty years: what is longer was not measured."""

WHOLE_GRAPH = "CUDA graph"
"""Stands for the kernels of a CUDA graph that was recorded as a whole; no launch shape is known of them."""


def as_shape(values: Sequence[Any]) -> Shape:
    """Return a grid or block of a document.

    Raises:
        TypeError, ValueError: it is none.
    """
    x, y, z = (int(value) for value in values)
    return x, y, z


@dataclass(frozen=True, slots=True)
class Activity:
    """A kernel, a copy, or a CUDA graph as a whole, on a GPU.

    Attributes:
        name: of a kernel, as the tool writes it.
        start_ns: since any moment, the same for all.
        duration_ns: how long it ran.
        gpu: tells GPUs apart.
        launch: the launch that it came from; equal to that of a call.
        shape: grid and block of a kernel; None for a copy, and for a graph.
        is_copy: a copy or memset.
        stream: tells streams apart, of all GPUs and processes; None where the tool does not say.
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
        """When it had run."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the CUDA API on the host.

    Attributes:
        name: of the function.
        start_ns: on the activities' clock.
        end_ns: when it had returned.
        thread: that made it.
        launch: of the activities that it launched.
    """

    name: str
    start_ns: float
    end_ns: float
    thread: Hashable
    launch: Hashable


@dataclass(frozen=True, slots=True)
class HostRange:
    """Something that the host did, by the name that the program or its framework gave it.

    Attributes:
        name: an operator, or a range that the program opened.
        start_ns: on the activities' clock.
        end_ns: when it was over.
        thread: that did it.
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
        calls: those that launched them, and those that wait for the GPU, at least.
        ranges: what the host did; empty where the tool was not asked to record it.
        is_stretched: the tool took the kernels of CUDA graphs apart, which makes them wait for each other: gaps say nothing.
    """

    activities: Sequence[Activity]
    calls: Sequence[Call]
    ranges: Sequence[HostRange] = ()
    is_stretched: bool = False


def name_of(value: object) -> str:
    """Return a name out of JSON as text that can be written: a question mark in place of a lone surrogate."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def checked_duration(start_ns: float, duration_ns: float) -> float:
    """Return a duration that can be one.

    Raises:
        ValueError: it is none, or the start is not known.
    """
    if not (isfinite(start_ns) and 0 <= duration_ns < MOST_NS):
        raise ValueError(f"{duration_ns} ns from {start_ns}")
    return duration_ns
