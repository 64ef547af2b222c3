"""Terms used in the output, and limiters in plain words, from `profiles/words.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from ncuroof.resources import profile_file
from ncuroof.wording import label


@dataclass(frozen=True, slots=True)
class Word:
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
def load_words() -> Mapping[str, Word]:
    """Return the terms by name.

    Raises:
        ProfileError: `profiles/words.toml` is malformed.
    """
    with profile_file("words.toml") as raw:
        return {
            name: Word(entry["doc"], tuple(entry.get("printed", ())), tuple(entry["see"]), entry["source"])
            for name, entry in raw["word"].items()
        }


def word_lines(name: str) -> Iterator[str]:
    """Yield the explanation of a term, line by line.

    Raises:
        ProfileError: `profiles/words.toml` is malformed.
    """
    word = load_words()[name]
    yield from (f"{name}: term", "", word.doc, "", f"See also: {', '.join(word.see)}", f"Source: {word.source}")


@cache
def _limiters() -> Mapping[str, str]:
    with profile_file("words.toml") as raw:
        return dict(raw["in_plain_words"])


def in_plain_words(limiter: str) -> str:
    """Return a limiter in plain words and its name ("waits for data from memory: long scoreboard"), else its name alone.

    Raises:
        ProfileError: `profiles/words.toml` is malformed.
    """
    plain = _limiters().get(limiter)
    return f"{plain}: {label(limiter)}" if plain else label(limiter)
