"""Time by NVTX range as a tree: each range includes those nested in it.

Siblings whose names differ only in a number, such as iterations and layers, are taken together.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Annotated

from ncuroof import formatting
from ncuroof.present.page.kernel_detail import RANGE_MARK
from ncuroof.present.schemas.analysis import AnalysisDocument
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.breakdowns import NO_RANGE
from ncuroof.present.sentences.report_names import names_of_several
from ncuroof.present.view import n_represented

_MOST_NESTED = 20
"""Most ranges shown within one; the others are one line, which opens."""

_MOST_OTHERS = 100
"""Most ranges shown within a line of others."""

_LEAST_SHARE_FRAC = 0.002
"""Ranges with a smaller share of the run's GPU time are among the others within a range."""

_MOST_LINES = 400
"""With so many lines, no further ranges are opened, so that the page stays small: those with the least time."""

_OPEN_SHARE_FRAC = 0.1
"""Ranges with at least this share of the run's GPU time are open at first, if they are among the outer ones."""

_OPEN_LEVELS = 2
"""How many levels of ranges can be open at first."""

_MOST_LEVELS = 40
"""Most levels of lines, so that a page can be written of ranges nested thousands deep."""

_ABOUT_EQUAL_FRAC = 0.02
"""Ranges whose times differ by no more than this are in the order in which they ran: another run may reverse their times."""

_UNNAMED = "(unnamed)"
"""Stands for a range whose name is empty."""

_ITSELF = "(in none of these)"
"""Stands for the launches of a range that are in none of the ranges within it."""

_NUMBER = re.compile(r"([0-9]{1,15})")
"""Longer numbers count as several: Python does not read those of thousands of digits."""

_LEAST_ALIKE = 3
"""Fewer names than this are not worth one for all."""


@dataclass(frozen=True, slots=True)
class RangeLine:
    """An NVTX range with all ranges nested in it, or several ranges."""

    names: Annotated[Sequence[str], "name; several where a range has nothing but one other range in it"]
    index: Annotated[int, "place in RangeTree.places"]
    share: Annotated[str, "of the run's GPU time"]
    duration: Annotated[str, "GPU time of all its launches"]
    recoverable: Annotated[str, "time above the roofline of all its launches"]
    launches: Annotated[str, "number of launches"]
    is_open: Annotated[bool, "whether the lines within it are shown at first"]
    inner: Annotated[Sequence[RangeLine], "the lines within it, the longest first"]

    @property
    def name(self) -> str:
        """Return the names as one text."""
        return RANGE_MARK.join(self.names)


@dataclass(frozen=True, slots=True)
class RangePlace:
    """Where a line is in the tree."""

    names: Annotated[Sequence[str], "of the line"]
    outer: Annotated[int | None, "place of the line that contains it; None for an outermost one"]
    share_frac: Annotated[float | None, "of the run's GPU time; None where not known"]
    above_frac: Annotated[float | None, "share of its own time that is above the roofline; None where not known"]
    verdict: Annotated[str, "that of most of its time"]
    said: Annotated[str, "its share, time, time above the roofline and launches, in words"]


@dataclass(frozen=True, slots=True)
class RangeTree:
    """The run's time by NVTX range."""

    lines: Annotated[Sequence[RangeLine], "the outermost lines, the longest first"]
    places: Annotated[Sequence[RangePlace], "all lines"]
    line_by_launch: Annotated[
        Sequence[int | None],
        "place of the innermost line that counts each launch; None for one in no sum, as it failed",
    ]


@dataclass(frozen=True, slots=True)
class _Launch:
    position: int
    path: tuple[str, ...]
    duration_ns: float | None
    recoverable_ns: float | None
    n_represented: float
    verdict: str


@dataclass(slots=True)
class _Node:
    """A line while the tree grows."""

    names: tuple[str, ...]
    launches: Sequence[_Launch]
    depth: int
    """How many names of the launches' paths lead here."""
    members: Sequence[_Node] | None = None
    """The nodes that this one stands for; None for a range."""
    is_rest: bool = False
    level: int = 0
    index: int = -1
    inner: list[_Node] = field(default_factory=list)

    def total(self, key: str) -> float | None:
        """Return the sum of the known times; None where none is known."""
        known = [time for launch in self.launches if (time := getattr(launch, key)) is not None]
        return sum(known) if known else None

    @property
    def duration_ns(self) -> float:
        """Return the known time."""
        return self.total("duration_ns") or 0.0

    @property
    def verdict(self) -> str:
        """Return the verdict of most of the time."""
        time_by_verdict: dict[str, float] = defaultdict(float)
        for launch in self.launches:
            time_by_verdict[launch.verdict] += launch.duration_ns or 0.0
        return max(time_by_verdict, key=lambda verdict: time_by_verdict[verdict])


def range_tree(document: AnalysisDocument) -> RangeTree:
    """Return the NVTX ranges of a document `ncuroof.analysis/1`, by report if there are several; empty without any."""
    kernels = document["kernels"]
    launches = list(_launches(kernels, names_of_several(document["sources"])))
    if not any(kernel["nvtx"] for kernel in kernels if not kernel["failed"]):
        return RangeTree((), (), [None] * len(kernels))
    growing = _Growing(document["summary"]["duration_ns"], len(kernels))
    root = _Node((), launches, depth=0, level=-1)
    growing.grow(root)
    return RangeTree([growing.line(node) for node in root.inner], growing.places, growing.line_by_launch)


def _launches(kernels: Sequence[KernelEntry], reports: Sequence[str]) -> Iterable[_Launch]:
    """Yield the profiled launches, with times multiplied by their weights; of several reports, these are the outermost ranges."""
    represented = n_represented(kernels) or [1.0] * len(kernels)
    for position, (kernel, number) in enumerate(zip(kernels, represented, strict=True)):
        if kernel["failed"]:
            continue
        weight = kernel.get("weight", 1.0)
        duration_ns, recoverable_ns = (
            None if each_ns is None else each_ns * weight
            for each_ns in (kernel["duration_ns"], kernel["recoverable_ns"])
        )
        outermost = reports[kernel["source"] : kernel["source"] + 1]
        yield _Launch(
            position, (*outermost, *(kernel["nvtx"] or ())), duration_ns, recoverable_ns, number, kernel["verdict"]
        )


class _Growing:
    """A tree while it grows, the longest ranges first."""

    def __init__(self, run_ns: float | None, n_launches: int) -> None:
        self._run_ns = run_ns
        self.places: list[RangePlace] = []
        self.line_by_launch: list[int | None] = [None] * n_launches

    def grow(self, root: _Node) -> None:
        """Give each node its inner ones, until there are enough lines."""
        waiting = [(0.0, -1, root)]
        while waiting and len(self.places) < _MOST_LINES:
            _, _, node = heapq.heappop(waiting)
            node.inner = self._arranged(node)
            for inner in node.inner:
                self._place(inner, node)
                if inner.level + 1 < _MOST_LEVELS:
                    heapq.heappush(waiting, (-inner.duration_ns, inner.index, inner))

    def _arranged(self, node: _Node) -> list[_Node]:
        """Return the longest ranges within a node, and one for all others, the longest first."""
        most = _MOST_OTHERS if node.is_rest else _MOST_NESTED
        least_frac = _LEAST_SHARE_FRAC if node.members is None else 0.0
        ordered = _longest_first(_parts(node))
        shown = list(takewhile(lambda part: self._is_shown(part, least_frac), ordered[:most]))
        rest = ordered[len(shown) :]
        if len(rest) <= 1:
            return ordered
        together = [launch for part in rest for launch in part.launches]
        others = _Node((f"({len(rest)} others)",), together, node.depth, members=rest, is_rest=True)
        return _longest_first([*shown, others])

    def _is_shown(self, node: _Node, least_frac: float) -> bool:
        share = self._share(node)
        return share is None or share >= least_frac

    def _place(self, node: _Node, outer: _Node) -> None:
        node.level, node.index = outer.level + 1, len(self.places)
        names = [formatting.printable(name) or _UNNAMED for name in node.names]
        self.places.append(self._described(node, names, outer.index if outer.names else None))
        for launch in node.launches:
            self.line_by_launch[launch.position] = node.index

    def _described(self, node: _Node, names: Sequence[str], outer: int | None) -> RangePlace:
        duration_ns, recoverable_ns = node.total("duration_ns"), node.total("recoverable_ns")
        above = f", {formatting.duration(recoverable_ns)} above the roofline" if recoverable_ns is not None else ""
        count = formatting.launches(round(sum(launch.n_represented for launch in node.launches)))
        return RangePlace(
            names=names,
            outer=outer,
            share_frac=self._share(node),
            above_frac=recoverable_ns / duration_ns if duration_ns and recoverable_ns is not None else None,
            verdict=node.verdict,
            said=f"{formatting.share(self._share(node))}, {formatting.duration(duration_ns)}{above}, {count}",
        )

    def line(self, node: _Node) -> RangeLine:
        """Return a node and those in it, as text."""
        share = self._share(node)
        return RangeLine(
            names=self.places[node.index].names,
            index=node.index,
            share=formatting.share(share),
            duration=formatting.duration(node.total("duration_ns")),
            recoverable=formatting.duration(node.total("recoverable_ns")),
            launches=str(round(sum(launch.n_represented for launch in node.launches))),
            is_open=not node.is_rest and node.level < _OPEN_LEVELS and (share or 0.0) >= _OPEN_SHARE_FRAC,
            inner=[self.line(inner) for inner in node.inner],
        )

    def _share(self, node: _Node) -> float | None:
        duration_ns = node.total("duration_ns")
        return duration_ns / self._run_ns if self._run_ns and duration_ns is not None else None


def _parts(node: _Node) -> Sequence[_Node]:
    """Return the ranges within a node, and one for its launches in none of these; none where it has no ranges within it."""
    if node.members is not None:
        return node.members
    by_name: dict[str | None, list[_Launch]] = defaultdict(list)
    for launch in node.launches:
        by_name[launch.path[node.depth] if len(launch.path) > node.depth else None].append(launch)
    if set(by_name) <= {None}:
        return ()
    parts = [_part(name, launches, node.depth) for name, launches in by_name.items()]
    return parts if len(parts) <= _MOST_NESTED else _merged(parts, node.depth)


def _part(name: str | None, launches: Sequence[_Launch], depth: int) -> _Node:
    if name is None:
        return _Node((_ITSELF if depth else NO_RANGE,), launches, depth, members=())
    inmost = _depth_of_all(launches, depth + 1)
    return _Node(launches[0].path[depth:inmost], launches, inmost)


def _depth_of_all(launches: Sequence[_Launch], depth: int) -> int:
    """Return how many names lead to the innermost range that all of these launches are in, which have `depth` names in common."""
    for names in zip(*(launch.path[depth:] for launch in launches), strict=False):
        if len(set(names)) > 1:
            break
        depth += 1
    return depth


def _merged(parts: Sequence[_Node], depth: int) -> Sequence[_Node]:
    """Return the parts with one for those whose outermost names differ only in a number."""
    by_name = {part.names[0]: part for part in parts if part.members is None}
    merged = []
    for name, names in alike(list(by_name)).items():
        members = [by_name.pop(each) for each in names]
        launches = [launch for member in members for launch in member.launches]
        merged.append(_Node((f"{name} ({len(members)} ranges)",), launches, depth, members=members))
    return [*merged, *by_name.values(), *(part for part in parts if part.members is not None)]


def _longest_first(nodes: Sequence[_Node]) -> list[_Node]:
    """Return nodes by time; those of about equal time in the order of their first launches."""
    ordered: list[_Node] = []
    equal: list[_Node] = []
    for node in sorted(nodes, key=lambda node: -node.duration_ns):
        if equal and node.duration_ns < (1 - _ABOUT_EQUAL_FRAC) * equal[0].duration_ns:
            ordered += sorted(equal, key=_first)
            equal = []
        equal.append(node)
    return ordered + sorted(equal, key=_first)


def _first(node: _Node) -> int:
    return min(launch.position for launch in node.launches)


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
