"""Tells launches apart where a text names only some of them.

ncu prints each section once per launch. A section that comes again below the same name, with another value for the same label, is
that of a launch whose name was not copied; one that comes again with the same values is a quotation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ncuroof.ingest.printed.console_parts import Place, Rule, Value, row
from ncuroof.ingest.printed.records import Header

_OF_GPU = ("Device", "CC")
"""What a launch without a name shares with the one before: a note is mostly about one GPU, but may be about several programs."""


class RepeatedSections:
    """Assigns what a text contains to its launches.

    Attributes:
        n_apart: by kernel name, the number of tables assigned to it so far that are in another piece of a note than its name.
        n_unnamed: number of launches so far that have no name, below one that has.
    """

    def __init__(self) -> None:
        self.n_apart: Counter[str] = Counter()
        self.n_unnamed = 0
        self._place: Place | None = None
        self._counted: Place | None = None
        self._launch: dict[str, str] = {}
        self._headings: set[str] = set()
        self._printed: dict[tuple[str, str], str] = {}
        self._is_repeat = False
        self._held: list[Rule | Value] = []
        """What the repeated section contains, while all of it may be a quotation."""

    def rows(self, parts: Iterable[Rule | Value]) -> Iterator[tuple[Header, list[str]]]:
        """Yield a row per part, with the cells of its launch."""
        for part in parts:
            if self._place is None or part.place.table != self._place.table:
                yield from self._released()
                self._meet(part.place)
            if isinstance(part, Value) and self._is_of_another(part):
                self._begin_unnamed()
            self._held.append(part)
            if not self._is_repeat:
                yield from self._released()
        yield from self._released()

    def _meet(self, place: Place) -> None:
        """Begin a section."""
        if self._place is None or place.launch is not self._place.launch:
            self._begin(dict(place.launch))
        self._is_repeat = place.heading in self._headings
        self._headings.add(place.heading)
        self._place = place

    def _begin(self, launch: dict[str, str]) -> None:
        self._launch = launch
        self._headings, self._printed = set(), {}

    def _is_of_another(self, value: Value) -> bool:
        if not self._is_repeat or value.section != value.place.heading:
            return False
        return self._printed.get((value.section, value.label), value.text) != value.text

    def _begin_unnamed(self) -> None:
        """Begin a launch of which only the GPU is assumed, with what has been held back."""
        self.n_unnamed += 1
        heading = self._place.heading if self._place else ""
        shared = {name: cell for name, cell in self._launch.items() if name in _OF_GPU}
        self._begin({**shared, "ID": f"without a name {self.n_unnamed}"})
        self._headings.add(heading)
        self._is_repeat = False

    def _released(self) -> Iterator[tuple[Header, list[str]]]:
        for part in self._held:
            if isinstance(part, Value) and (key := (part.section, part.label)) not in self._printed:
                self._printed[key] = part.text
                self._count(part.place)
            yield row({**self._launch, **part.cells})
        self._held = []

    def _count(self, place: Place) -> None:
        if place.is_apart and place is not self._counted and "Kernel Name" in self._launch:
            self.n_apart[self._launch["Kernel Name"]] += 1
            self._counted = place
