"""A run as presentations see it: what several of them compute from a document, each once.

Page, terminal, Markdown and notebooks read it: rows and names of launches, the tree of NVTX ranges, shares of verdicts, what to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ncuroof import formatting
from ncuroof.present.schemas.analysis import ActionEntry, AnalysisDocument, WallTimeEntry
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.actions import LargestSavings, outlook, worth_a_row
from ncuroof.present.sentences.breakdowns import VerdictShare, by_verdict
from ncuroof.present.sentences.report_names import distinguishing_words, names_of_several
from ncuroof.present.sentences.wall_time import told_time
from ncuroof.present.texts.answer_sentences import SOME, answer_sentences

if TYPE_CHECKING:
    from ncuroof.present.page.range_tree import RangeTree

MOST_NAME = 80
"""Most characters of a name in a table; the full name is shown on hover."""

_LEAST_OF_SHORT, _MOST_WORD = 16, 40
"""Least characters that are left of a short name, and most of a word that distinguishes it from another."""


class RunView:
    """A document `ncuroof.analysis/1`, of all launches or of some, with what follows from it."""

    def __init__(self, document: AnalysisDocument) -> None:
        self.document = document
        self.summary = document["summary"]
        self.kernels = document["kernels"]

    @cached_property
    def rows(self) -> list[LaunchRow]:
        """A row per group, then one per launch outside all groups; of a document of all launches."""
        return launch_rows(self.document)

    @cached_property
    def names(self) -> list[str]:
        """The short name of each launch, with what distinguishes it from others."""
        return launch_names(self.kernels)

    @cached_property
    def ranges(self) -> RangeTree:
        """The tree of NVTX ranges; of a document of all launches."""
        from ncuroof.present.page.range_tree import range_tree  # noqa: PLC0415  reads what is here

        return range_tree(self.document)

    @cached_property
    def reports(self) -> list[str]:
        """What to call each report; empty for a single one."""
        return names_of_several(self.document["sources"])

    @cached_property
    def is_simulated(self) -> bool:
        """Whether ncuroof wrote a report, instead of recording it on a GPU."""
        return any(source["simulated"] for source in self.document["sources"])

    @cached_property
    def shares(self) -> tuple[VerdictShare, ...]:
        """The run's time by verdict."""
        return by_verdict(self.summary)

    @cached_property
    def actions(self) -> list[ActionEntry]:
        """What to do, by what is expected to be saved: the actions that are worth a row."""
        return worth_a_row(self.document)

    @cached_property
    def outlook(self) -> LargestSavings:
        """The largest potential savings over the run."""
        return outlook(self.document)

    @cached_property
    def answer(self) -> tuple[str, str]:
        """What takes the time, and what else belongs to it, or empty."""
        return answer_sentences(self.document, self.actions)

    @cached_property
    def step(self) -> WallTimeEntry | None:
        """The wall-clock time whose parts are shown; None if unknown, of selected launches, or the GPU hardly idles in it."""
        time = told_time(self.summary.get("weighting"))
        return None if time is None or "selection" in self.summary or time["idle_frac"] < SOME else time


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """A group of equal launches, or a single launch.

    Attributes:
        position: of the representative launch, in the document's kernels.
        launches: positions of all profiled launches of the group.
        n_launches: launches that they represent, with a counting run; else the number of profiled ones.
        duration_ns, recoverable_ns: sums over all represented launches; None where not known.
    """

    position: int
    launches: tuple[int, ...]
    n_launches: int
    duration_ns: float | None
    recoverable_ns: float | None


def launch_rows(document: AnalysisDocument) -> list[LaunchRow]:
    """Return a row per group of the document, then one per launch outside all groups, whose collection failed."""
    kernels = document["kernels"]
    position_by_id = {kernel["id"]: position for position, kernel in enumerate(kernels)}
    rows = [
        LaunchRow(
            position_by_id[group["id"]],
            tuple(position_by_id[number] for number in group["launches"]),
            group["n_launches"],
            group["duration_ns"],
            group["recoverable_ns"],
        )
        for group in document["groups"]
    ]
    grouped = {position for row in rows for position in row.launches}
    alone = [position for position in position_by_id.values() if position not in grouped]
    return rows + [LaunchRow(position, (position,), 1, kernels[position]["duration_ns"], None) for position in alone]


def most_recoverable_first(rows: Iterable[LaunchRow]) -> list[LaunchRow]:
    """Return rows by recoverable time, then by duration, both descending with unknown values last."""

    def rank(row: LaunchRow) -> tuple[float, float, int]:
        times = (row.recoverable_ns, row.duration_ns)
        recoverable, duration = (math.inf if time is None else -time for time in times)
        return recoverable, duration, row.position

    return sorted(rows, key=rank)


def n_represented(kernels: Sequence[KernelEntry]) -> list[float] | None:
    """Return how many launches each kernel represents, 1 if it failed, as it is in no sum; None without a counting run."""
    if not kernels or "n_represented" not in kernels[0]:
        return None
    return [1.0 if kernel["failed"] else kernel["n_represented"] for kernel in kernels]


def launch_names(kernels: Sequence[KernelEntry], n_characters: int = MOST_NAME) -> list[str]:
    """Return the short name of each launch, with the words that tell it from others of that name: "copy · Wide, block 32×16".

    Args:
        kernels: of the document.
        n_characters: most characters of a name.
    """
    names = map(formatting.kernel_name, kernels)
    return [
        _with(short, words, n_characters) for short, words in zip(names, distinguishing_words(kernels), strict=True)
    ]


def _with(short: str, words: Sequence[str], n_characters: int) -> str:
    """Return a short name with as many of the last words as there is room for: the first ones are shared by more names."""
    shown = [formatting.shortened(word, _MOST_WORD) for word in words]
    separator = " · " if shown else ""
    while len(shown) > 1 and _LEAST_OF_SHORT + len(separator) + len(", ".join(shown)) > n_characters:
        del shown[0]
    tail = separator + ", ".join(shown)
    return formatting.shortened(short, n_characters - len(tail)) + tail
