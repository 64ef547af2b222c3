"""Which counters of a workload to read: those that are asked for by name, by prefix, or by a breakdown that lists them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ncuroof.errors import ReportFormatError
from ncuroof.ingest.raw_report import CounterSelection

_MAX_NAMES, _MAX_FAMILIES = 8192, 1000
"""Of counters that are chosen by prefix or list: names, and names up to the first dot. A full H100 report has 728 and 84."""

_COUNTER_MARK = "__"
"""Every counter that a breakdown lists has it in its name, and no column of ours does."""


class CounterChoice:
    """Chooses counters from what each workload of one report stores."""

    def __init__(self, selection: CounterSelection | None, report: str) -> None:
        self._selection = selection
        self._report = report
        self._found_names: set[str] = set()

    def instances_of(self, name: str) -> tuple[str, ...] | None:
        """Return what the names of a counter's wanted instances begin with; None where its own value is wanted."""
        return self._selection.instances.get(name) if self._selection else None

    @property
    def listings(self) -> frozenset[str]:
        """Text metrics whose values list further counters."""
        return self._selection.lists if self._selection else frozenset()

    def of(self, stored: Sequence[str], listed_in: Iterable[object]) -> list[str]:
        """Return the counters to read of a workload, in the order in which they are stored.

        Args:
            stored: names of all its counters.
            listed_in: values of its `listings`.

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
        """Refuse a file that names counters without end: the table would be as wide as the file says."""
        self._found_names.update(found)
        n_families = len({name.partition(".")[0] for name in self._found_names})
        if len(self._found_names) > _MAX_NAMES or n_families > _MAX_FAMILIES:
            raise ReportFormatError(
                f"{self._report}: lists {len(self._found_names)} counters of one kind, more than any GPU has",
                hint="the file is damaged or malicious; record it again",
            )
