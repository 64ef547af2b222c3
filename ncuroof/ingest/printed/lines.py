"""Yields the lines of a text file that may contain ncu's output: a log, a note, or a notebook with outputs in its cells.

What a terminal, a launcher or a log collector wrote before each line is left out: colours and times always, and any other prefix
once it is known that ncu's lines follow it.

Source: nbformat 3 and 4, "The Notebook file format" (Jupyter, Colab and VS Code write it); `mpirun --tag-output`, journald, Slurm.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ncuroof.errors import ReportFormatError

_ENCODING_BY_MARK = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
_OTHER_ENCODING = "cp1252"
"""Encoding of lines that are not UTF-8: the one of Windows in western Europe and America."""

_MARK = "\ufeff"
_LONGEST_LINE = 1 << 22
"""Longest line, in characters. A row with every counter of a full set has 30 000; with all instance values, a million."""

_ESCAPE = "\x1b"
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_TIME = re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]")

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|nbsp|#39|#x27);")
_ESCAPED = re.compile(r"\\([_%*#<>|\[\]])")
_BEFORE_ROW, _LEAST_BARS = " >", 3
"""Prefixes and fewest bars of a row in a Markdown table, which may be quoted and has at least two cells."""
_RULER = re.compile(r":?-+:?")

_NOTEBOOK = ".ipynb"
_LARGEST_NOTEBOOK = 1 << 28
"""Largest notebook, in bytes: it is held in memory several times. Notebooks with pictures have some ten megabytes."""

_FENCE = "```\n"
"""Separator of the cells of a notebook, as of the pieces of a note."""

_OF_NCU = re.compile(r'\s*Section: \w|"?ID"?[,;\t]"?Process ID"?[,;\t]|==PROF== ')
_NUMBERS = re.compile(r"( *\d+)")
_NUMBER = r" *(\d{1,18})"
"""A number in a prefix: programs that count lines align their numbers to the right."""

_LONGEST_PREFIX = 80
_MOST_RESTARTS = 3
"""How often the numbers in a prefix may decrease, where they are not those of ranks."""


class Prefix:
    """The prefix of each line of ncu, such as the rank that printed it. Its numbers may differ from line to line.

    Attributes:
        n_restarts: how often a number in it has decreased so far. Times and line numbers increase, ranks alternate.
    """

    def __init__(self, example: str) -> None:
        parts = (_NUMBER if part.strip().isdecimal() else re.escape(part) for part in _NUMBERS.split(example) if part)
        self._pattern = re.compile("".join(parts))
        self._is_time = ":" in example.rstrip().rstrip(":")
        self._numbers: tuple[int, ...] = ()
        self.n_restarts = 0

    @property
    def is_of_ranks(self) -> bool:
        """Whether the numbers show that lines of several ranks are interleaved."""
        return self.n_restarts > _MOST_RESTARTS

    def without(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines without the prefix; lines that do not begin with it are unchanged."""
        for line in lines:
            found = self._pattern.match(line)
            if found and not self._is_time:
                numbers = tuple(map(int, found.groups()))
                self.n_restarts += numbers < self._numbers
                self._numbers = numbers
            yield line[found.end() :] if found else line


def learned_prefix(lines: Iterable[str]) -> Prefix | None:
    """Return the prefix of all lines of ncu; None if a line of ncu has no prefix, or if there is no line of ncu."""
    found: dict[str, int] = {}
    for line in lines:
        match = _OF_NCU.search(line[: 4 * _LONGEST_PREFIX])
        if match is None:
            continue
        prefix = line[: match.start()]
        if not prefix.strip():
            return None
        if len(prefix) <= _LONGEST_PREFIX:
            shape = _NUMBERS.sub(" 0", prefix)
            found[shape] = found.get(shape, 0) + 1
    return Prefix(max(found, key=lambda each: found[each])) if found else None


def as_columns(line: str) -> str:
    """Return a line with the columns that a terminal shows, where a note has tabs, Markdown's escapes or a row of its tables.

    The ruler of a table in Markdown, which says nothing about ncu's columns, becomes an empty line.
    """
    line = line.expandtabs()
    if "\\" in line:
        line = _ESCAPED.sub(r"\1", line)
    row = line.lstrip(_BEFORE_ROW).rstrip()
    if not row.startswith("|") or not row.endswith("|") or row.count("|") < _LEAST_BARS:
        return line
    cells = [cell.strip() for cell in row[1:-1].split("|")]
    columns = "" if all(map(_RULER.fullmatch, cells)) else f"    {'  '.join(cells)}"
    return f"{line[: len(line) - len(line.lstrip(_BEFORE_ROW))]}{columns}\n"


def printed_lines(path: Path, where: str) -> Iterator[str]:
    """Yield the lines of a text file, in whichever encoding a shell's redirection wrote it: UTF-8, UTF-16 with a mark, or cp1252.

    Of a notebook, these are the lines in the outputs of its cells.

    Raises:
        ReportFormatError: a line is longer than any that ncu prints, or a notebook is malformed.
        OSError: the file cannot be read.
    """
    lines = _notebook_lines(path, where) if path.suffix.lower() == _NOTEBOOK else _text_lines(path, where)
    return (_plain(line) for line in lines)


def _text_lines(path: Path, where: str) -> Iterator[str]:
    with path.open("rb") as file:
        start = file.read(3)
    encoding = next((name for mark, name in _ENCODING_BY_MARK.items() if start.startswith(mark)), "utf-8")
    errors = "surrogateescape" if encoding.startswith("utf-8") else "replace"
    with path.open(encoding=encoding, errors=errors) as text:
        while line := text.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE and not line.endswith("\n"):
                raise ReportFormatError(
                    f"{where}: expected a table printed by ncu, found a line of more than {_LONGEST_LINE} characters",
                    hint="pass a .ncu-rep file, or the output of ncu --import REPORT --page raw --csv",
                )
            yield line if line.isascii() else _in_its_encoding(line).removeprefix(_MARK)


def _in_its_encoding(line: str) -> str:
    """Return a line that was decoded as UTF-8, with bytes that are not UTF-8 decoded as cp1252 instead."""
    if not any("\udc80" <= character <= "\udcff" for character in line):
        return line
    return line.encode("utf-8", "surrogateescape").decode(_OTHER_ENCODING, "replace")


def _plain(line: str) -> str:
    """Return a line without colours and times, and with the characters that a web page writes as entities."""
    if _ESCAPE in line:
        line = _COLOUR.sub("", line)
    if "&" in line:
        line = _ENTITY.sub(lambda entity: html.unescape(entity[0]), line)
    time = _TIME.match(line) if line[:1] in "[12" else None
    return line[time.end() :] if time else line


def _notebook_lines(path: Path, where: str) -> Iterator[str]:
    hint = "open and save the notebook, or copy the output of its cell into a text file"
    if path.stat().st_size > _LARGEST_NOTEBOOK:
        raise ReportFormatError(
            f"{where}: expected a notebook of at most {_LARGEST_NOTEBOOK} bytes, found a larger one", hint=hint
        )
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ReportFormatError(f"{where}: expected a notebook, found a file that is not JSON", hint=hint) from error
    for cell in _cells(document):
        yield _FENCE
        if _mapping(cell).get("cell_type") == "markdown":
            yield from _lines(_text(_mapping(cell).get("source")))
        for output in _list(_mapping(cell).get("outputs")):
            yield from _lines(_shown(_mapping(output)))


def _cells(document: object) -> Iterator[object]:
    """Yield the cells of a notebook; in version 3 they are in worksheets."""
    whole = _mapping(document)
    for holder in (whole, *map(_mapping, _list(whole.get("worksheets")))):
        yield from _list(holder.get("cells"))


def _shown(output: Mapping[str, Any]) -> str:
    """Return the text of an output: of a stream, or of a value that the cell displays."""
    if "text" in output:
        return _text(output["text"])
    value = _text(_mapping(output.get("data")).get("text/plain"))
    if value[:1] in "'\"" and "\n" not in value.strip():  # a string, shown with its quotes and escapes
        try:
            return str(ast.literal_eval(value))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
    return value


def _lines(text: str) -> Iterator[str]:
    yield from (f"{line}\n" for line in text.split("\n"))


def _text(value: object) -> str:
    """Return a text of a notebook, which is one string or a list of its lines."""
    return "".join(part for part in (value if isinstance(value, list) else [value]) if isinstance(part, str))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
