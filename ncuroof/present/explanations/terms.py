"""Terms used in the output, from `profiles/terms.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from ncuroof.resources import profile_file


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
