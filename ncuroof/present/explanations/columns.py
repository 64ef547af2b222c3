"""Meaning of the columns that are not quantities, from `profiles/columns.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from ncuroof.metrics import precisions
from ncuroof.resources import profile_file
from ncuroof.words import MemoryLevel

LEVEL, PRECISION = "<level>", "<precision>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table that ncuroof writes.

    Attributes:
        name: of the column; `<level>` and `<precision>` are placeholders for every level and precision.
        unit: of the value, or None.
        doc: what it means.
        printed: its titles in the terminal and on the page.
    """

    name: str
    unit: str | None
    doc: str
    printed: tuple[str, ...] = ()

    def expanded(self) -> Iterator[Column]:
        """Yield one column per level or precision where the name has a placeholder, else the column itself."""
        for place, names in ((LEVEL, [level.value for level in MemoryLevel]), (PRECISION, precisions())):
            if place in self.name:
                yield from (
                    Column(
                        self.name.replace(place, each),
                        self.unit,
                        self.doc.replace(place, each),
                        tuple(title.replace(place, each) for title in self.printed),
                    )
                    for each in names
                )
                return
        yield self


@cache
def load_columns() -> Mapping[str, Column]:
    """Return the columns by name as in the file, with placeholders for levels and precisions.

    Raises:
        ProfileError: `profiles/columns.toml` is malformed.
    """
    return _columns("column")


def columns_by_name() -> Mapping[str, Column]:
    """Return the columns by name, with an entry for each level and precision."""
    return {each.name: each for column in load_columns().values() for each in column.expanded()}


@cache
def load_page_columns() -> Mapping[str, Column]:
    """Return the columns that exist only on the page, by name.

    Raises:
        ProfileError: `profiles/columns.toml` is malformed.
    """
    return _columns("page")


def _columns(table: str) -> Mapping[str, Column]:
    with profile_file("columns.toml") as raw:
        return {
            name: Column(name, entry.get("unit"), entry["doc"], tuple(entry.get("printed", ())))
            for name, entry in raw[table].items()
        }
