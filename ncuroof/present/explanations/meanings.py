"""Meanings of what the output contains besides findings: columns, groups of quantities, terms and limiters.

They come from `profiles/columns.toml`, `profiles/terms.toml` and `profiles/limiters.toml`. A group of quantities is the name before
the dot, a key of the JSON document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from ncuroof import formatting
from ncuroof.enums import MemoryLevel
from ncuroof.formatting import first_sentence, label
from ncuroof.metrics import load_catalogue, precisions
from ncuroof.metrics.catalogue_types import Quantity
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.resources import profile_file

LEVEL, PRECISION = "<level>", "<precision>"

STALLS = "stalls."
"""Prefix of the quantities of stall reasons."""

_NOT_SPLIT, _EITHER = "stage_not_split", "l1_or_shared"
"""The caveat that holds where which of the two it is was not collected, and the finding that is then about both."""


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


@cache
def every_quantity() -> Mapping[str, Quantity]:
    """Return the quantities of the catalogue by name, except the stall reasons."""
    catalogue = load_catalogue()
    return {quantity.name: quantity for quantity in (*catalogue.described(), *catalogue.measured)}


def quantities_by_group() -> Mapping[str, Mapping[str, str]]:
    """Return the description of each quantity by its name, by group; "" is the group of those without one."""
    groups: dict[str, dict[str, str]] = {}
    for name, quantity in every_quantity().items():
        group = name.split(".")[0] if "." in name else ""
        groups.setdefault(group, {})[name] = quantity.doc
    reasons = load_catalogue().stalls.reasons
    groups[STALLS.removesuffix(".")] = {f"{STALLS}{reason}": doc for reason, doc in reasons.items()}
    return groups


def group_lines(group: str) -> Iterator[str]:
    """Yield the quantities of a group, each with the first sentence of its description."""
    yield from (f"{group}: group of quantities", "")
    if group == STALLS.removesuffix("."):
        yield from (load_catalogue().stalls.doc, "")
    yield from (f"  {name}: {first_sentence(doc)}" for name, doc in quantities_by_group()[group].items())


@cache
def quantity_label(name: str) -> str:
    """Return a quantity's label from the catalogue, else the words of its name: "achieved occupancy", "L1 hit share"."""
    label = {quantity.name: quantity.label for quantity in load_catalogue().described()}.get(name)
    return label or formatting.label(name.rpartition(".")[2].removesuffix("_ns"))


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the field.

    Attributes:
        doc: definition.
        printed: other spellings.
        see: related names that `ncuroof explain` knows.
        source: reference for the definition.
    """

    doc: str
    printed: tuple[str, ...]
    see: tuple[str, ...]
    source: str


@cache
def load_terms() -> Mapping[str, Term]:
    """Return the terms by name.

    Raises:
        ProfileError: `profiles/terms.toml` is malformed.
    """
    with profile_file("terms.toml") as raw:
        return {
            name: Term(entry["doc"], tuple(entry.get("printed", ())), tuple(entry["see"]), entry["source"])
            for name, entry in raw["term"].items()
        }


def term_lines(name: str) -> Iterator[str]:
    """Yield the explanation of a term, line by line.

    Raises:
        ProfileError: `profiles/terms.toml` is malformed.
    """
    term = load_terms()[name]
    yield from (f"{name}: term", "", term.doc, "", f"See also: {', '.join(term.see)}", f"Source: {term.source}")


@cache
def load_limiters() -> Mapping[str, str]:
    """Return the meaning of each limiter by name, except the stall reasons that limit latency-bound launches.

    Raises:
        ProfileError: `profiles/limiters.toml` is malformed.
    """
    return _table("limiter")


def limiter_label(kernel: KernelEntry) -> str | None:
    """Return the label of a kernel's limiter, or None; "L1 or shared" where nothing says which of them fills their stage."""
    return label(_limiter(kernel)) if kernel["limiter"] else None


def limiter_in_plain_words(kernel: KernelEntry) -> str:
    """Return a kernel's limiter in plain words and its name ("waits for data from memory: long scoreboard"), else its name alone.

    Raises:
        ProfileError: `profiles/limiters.toml` is malformed.
    """
    limiter = _limiter(kernel)
    plain = _plain_words().get(limiter)
    return f"{plain}: {label(limiter)}" if plain else label(limiter)


def _limiter(kernel: KernelEntry) -> str:
    return _EITHER if _NOT_SPLIT in kernel["caveats"] else kernel["limiter"] or ""


@cache
def _plain_words() -> Mapping[str, str]:
    return _table("in_plain_words")


@cache
def verdicts_in_plain_words() -> Mapping[str, str]:
    """Return what limits the kernels of each verdict, in plain words: "too little work in flight".

    Raises:
        ProfileError: `profiles/limiters.toml` is malformed.
    """
    return _table("verdict_in_plain_words")


@cache
def findings_in_plain_words() -> Mapping[str, str]:
    """Return of each finding what it means and why it costs time, in two sentences.

    Raises:
        ProfileError: `profiles/in_plain_words.toml` is malformed.
    """
    with profile_file("in_plain_words.toml") as raw:
        return dict(raw["finding"])


def _table(name: str) -> Mapping[str, str]:
    with profile_file("limiters.toml") as raw:
        return dict(raw[name])
