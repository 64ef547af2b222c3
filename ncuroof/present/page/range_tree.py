"""Time by NVTX range as a tree: each range includes those nested in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from ncuroof import wording
from ncuroof.present.analysed import Record
from ncuroof.present.page.kernel_detail import RANGE_MARK
from ncuroof.present.page.launch_rows import n_represented
from ncuroof.present.sentences.breakdowns import NO_RANGE

_MOST_NESTED = 20
"""Most ranges shown within one; the others are one line."""

_LEAST_SHARE_FRAC = 0.002
"""Ranges with a smaller share of the run's GPU time are not shown by themselves."""

_OPEN_SHARE_FRAC = 0.1
"""Ranges with at least this share of the run's GPU time are open at first, if they are among the outer ones."""

_OPEN_LEVELS = 2
"""How many levels of ranges can be open at first."""

_MOST_LEVELS = 40
"""Most levels of lines, so that a page can be written of ranges nested thousands deep."""

_UNNAMED = "(unnamed)"
"""Stands for a range whose name is empty."""

_ITSELF = "(in none of these)"
"""Stands for the launches of a range that are in none of the ranges within it."""


@dataclass(frozen=True, slots=True)
class RangeLine:
    """An NVTX range with all ranges nested in it, or what is left of one."""

    name: Annotated[str, "name; names joined where a range has nothing but one other range in it"]
    share: Annotated[str, "of the run's GPU time"]
    duration: Annotated[str, "GPU time of all its launches"]
    recoverable: Annotated[str, "time above the roofline of all its launches"]
    launches: Annotated[str, "number of launches"]
    index: Annotated[int | None, "place in RangeTree.paths; None for what is no range"] = None
    is_open: Annotated[bool, "whether the ranges within it are shown at first"] = False
    inner: Annotated[Sequence[RangeLine], "the ranges within it, the longest first"] = ()


@dataclass(frozen=True, slots=True)
class RangeTree:
    """The run's time by NVTX range."""

    lines: Annotated[Sequence[RangeLine], "the outermost ranges, the longest first"]
    paths: Annotated[
        Sequence[str], "all ranges with a line, each as the names from the outermost, joined by RANGE_MARK"
    ]


@dataclass(frozen=True, slots=True)
class _Launch:
    path: tuple[str, ...]
    duration_ns: float | None
    recoverable_ns: float | None
    n_represented: float


def range_tree(document: Record) -> RangeTree:
    """Return the NVTX ranges of a document `ncuroof.analysis/1`; no lines where no launch is in a range."""
    launches = list(_launches(document["kernels"]))
    growing = _Growing(document["summary"]["duration_ns"])
    has_ranges = any(launch.path for launch in launches)
    return RangeTree(growing.lines(launches, (), level=0) if has_ranges else (), growing.paths)


def _launches(kernels: Sequence[Record]) -> Iterable[_Launch]:
    """Yield the profiled launches, with times multiplied by their weights."""
    represented = n_represented(kernels) or [1.0] * len(kernels)
    for kernel, number in zip(kernels, represented, strict=True):
        if kernel["failed"]:
            continue
        duration_ns, recoverable_ns = (
            None if kernel[key] is None else kernel[key] * kernel.get("weight", 1.0)
            for key in ("duration_ns", "recoverable_ns")
        )
        yield _Launch(tuple(kernel["nvtx"] or ()), duration_ns, recoverable_ns, number)


class _Growing:
    """A tree of ranges while it is made; `paths` are its ranges so far."""

    def __init__(self, run_ns: float | None) -> None:
        self._run_ns = run_ns
        self.paths: list[str] = []

    def lines(self, launches: Sequence[_Launch], outer: tuple[str, ...], level: int) -> Sequence[RangeLine]:
        """Return the ranges within a range, or in the whole run (level 0), the longest first."""
        parts: dict[tuple[str, ...], list[_Launch]] = defaultdict(list)
        for launch in launches:
            parts[launch.path[: len(outer) + 1]].append(launch)
        if set(parts) == {outer} or level == _MOST_LEVELS:
            return ()
        longest_first = sorted(parts.items(), key=lambda part: -(_total(part[1], "duration_ns") or 0.0))
        shown = [part for part in longest_first[:_MOST_NESTED] if self._is_shown(part[1])]
        lines = [self._line(path, within, outer, level) for path, within in shown]
        rest = longest_first[len(shown) :]
        if rest:
            together = [launch for _, within in rest for launch in within]
            lines.append(self._sums(together, f"({wording.counted(len(rest), 'shorter range')})"))
        return lines

    def _is_shown(self, launches: Sequence[_Launch]) -> bool:
        share = self._share(launches)
        return share is None or share >= _LEAST_SHARE_FRAC

    def _line(
        self, path: tuple[str, ...], launches: Sequence[_Launch], outer: tuple[str, ...], level: int
    ) -> RangeLine:
        if path == outer:
            return self._sums(launches, _ITSELF if outer else NO_RANGE)
        path = _only_path(launches, path)
        name = RANGE_MARK.join(each or _UNNAMED for each in path[len(outer) :])
        self.paths.append(wording.printable(RANGE_MARK.join(path)))
        return replace(
            self._sums(launches, name),
            index=len(self.paths) - 1,
            is_open=level < _OPEN_LEVELS and (self._share(launches) or 0.0) >= _OPEN_SHARE_FRAC,
            inner=self.lines(launches, path, level + 1),
        )

    def _sums(self, launches: Sequence[_Launch], name: str) -> RangeLine:
        return RangeLine(
            name=wording.printable(name),
            share=wording.share(self._share(launches)),
            duration=wording.duration(_total(launches, "duration_ns")),
            recoverable=wording.duration(_total(launches, "recoverable_ns")),
            launches=str(round(sum(launch.n_represented for launch in launches))),
        )

    def _share(self, launches: Sequence[_Launch]) -> float | None:
        duration_ns = _total(launches, "duration_ns")
        return duration_ns / self._run_ns if self._run_ns and duration_ns is not None else None


def _only_path(launches: Sequence[_Launch], path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the innermost range that all launches of a range are in."""
    common = list(path)
    for names in zip(*(launch.path[len(path) :] for launch in launches), strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    return tuple(common)


def _total(launches: Sequence[_Launch], key: str) -> float | None:
    """Return the sum of the known times; None where none is known."""
    known = [time for launch in launches if (time := getattr(launch, key)) is not None]
    return sum(known) if known else None
