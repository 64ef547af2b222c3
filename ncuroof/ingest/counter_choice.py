"""Decides which counters of a workload to read: those selected by name, by prefix, or by a breakdown that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ncuroof.errors import ReportFormatError
from ncuroof.ingest.raw_report import CounterSelection

_MAX_NAMES, _MAX_FAMILIES = 8192, 1000
"""Limits for counters not selected by name: distinct names, and distinct names up to the first dot. A full H100 report has 728
and 84."""

_COUNTER_MARK = "__"
"""Part of the name of every counter that a breakdown lists, and of none of ncuroof's own columns."""


class CounterChoice:
    """Chooses counters from those that each workload of one report stores.

    Args:
        selection: which counters to choose; None for all of them.
        report: the file's name, for error messages.
    """

    def __init__(self, selection: CounterSelection | None, report: str) -> None:
        self._selection = selection
        self._report = report
        self._found_names: set[str] = set()

    def instances_of(self, name: str) -> tuple[str, ...] | None:
        """Return the name prefixes of a counter's wanted instances; None if the counter's own value is wanted."""
        return self._selection.instances.get(name) if self._selection else None

    @property
    def listings(self) -> frozenset[str]:
        """Names of the text metrics whose values list further counters."""
        return self._selection.lists if self._selection else frozenset()

    def of(self, stored: Sequence[str], listed_in: Iterable[object]) -> list[str]:
        """Return the counters of a workload to read, in the order in which they are stored.

        Args:
            stored: the names of all counters of the workload.
            listed_in: the values of its `listings`.

        Raises:
            ReportFormatError: the report lists more counters of a kind than any GPU has.
        """
        selection = self._selection
        if selection is None:
            return list(stored)
        listed = {name for listing in listed_in for name in str(listing).split(",") if _COUNTER_MARK in name}
        chosen = selection.names | selection.texts | selection.lists | selection.instances.keys() | listed
        wanted = [name for name in stored if name in chosen or name.startswith(selection.prefixes)]
        self._limit(name for name in wanted if name not in selection.names)
        return wanted

    def _limit(self, found: Iterable[str]) -> None:
        """Raise if a file names too many counters: a hostile one could make the table arbitrarily wide."""
        self._found_names.update(found)
        n_families = len({name.partition(".")[0] for name in self._found_names})
        if len(self._found_names) > _MAX_NAMES or n_families > _MAX_FAMILIES:
            raise ReportFormatError(
                f"{self._report}: lists {len(self._found_names)} counters of one kind, more than any GPU has",
                hint="the file is damaged or malicious; record it again",
            )
