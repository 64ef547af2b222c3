"""Replaces characters that the output's encoding lacks by similar ASCII, where possible, instead of question marks."""

from __future__ import annotations

import codecs
import io
import sys
import unicodedata

import click

ERRORS = "ncuroof.plain"
_PLAIN_BY_CHARACTER = {
    "µ": "u", "μ": "u", "×": "x", "·": ".", "…": "~", "−": "-", "–": "-", "—": "-", "→": ">", "›": ">", "«": "<<", "±": "+-",
    "≥": ">=", "≤": "<=", "÷": "/", "√": "sqrt", "²": "^2", "█": "#", "▓": "=", "▒": "+", "░": ":", "Σ": "sum ", "β": "beta",
    "γ": "gamma", "ε": "eps", "σ": "sigma", "φ": "phi", "Φ": "Phi", "“": '"', "”": '"', "’": "'",
    "▲": "^", "▼": "v",
}  # fmt: skip
_UNKNOWN = "?"


def replace_what_cannot_be_encoded() -> None:
    """Make standard output and standard error replace characters that their encoding lacks, instead of failing."""
    codecs.register_error(ERRORS, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ERRORS)


def echo(message: str | bytes, *, nl: bool = True, err: bool = False) -> None:
    """Print on standard output, or on standard error, in the stream's own encoding.

    Where that is ASCII, `click.echo` would choose UTF-8, of which such a terminal shows most characters as several wrong ones.
    """
    click.echo(message, file=sys.stderr if err else sys.stdout, nl=nl, err=err)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_alike, error.object[error.start : error.end])), error.end


def _alike(character: str) -> str:
    """Return similar ASCII, such as "e" for "é"; a question mark if there is none."""
    if character in _PLAIN_BY_CHARACTER:
        return _PLAIN_BY_CHARACTER[character]
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or _UNKNOWN
