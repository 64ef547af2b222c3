"""Source lines as entries of the document and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ncuroof import formatting
from ncuroof.metrics import Catalogue
from ncuroof.present.analysed import Record
from ncuroof.present.schemas.kernels import (
    AwaitedEntry,
    InlinedEntry,
    LineEntry,
    PositionEntry,
    SampledLineEntry,
    WhereEntry,
)

_SAMPLES, _NOT_ISSUED = "samples", "not_issued"
_N_SAMPLED = 10
_LEAST_FRAC = 0.1
_N_LINES = 3
"""A finding names the lines with at least this share of its measure, at most this many."""

_N_CALLERS = 3
_HEADERS = (".h", ".hpp", ".inl")


def sampled_lines(rows: Sequence[Record]) -> list[SampledLineEntry]:
    """Return the ten lines of a kernel that cost the most: place, shares of the samples, and most frequent stall reason.

    These are the lines with the most samples in which nothing was issued: what waits while other warps issue costs no time. Where
    such samples were not taken, they are the lines with the most samples.

    Args:
        rows: of LINES, for one kernel.
    """
    not_issued = {_key(row): row["frac"] for row in rows if row["measure"] == _NOT_ISSUED}
    lines: list[SampledLineEntry] = [
        {
            **_entry(row),
            "stall": row["stall"],
            "not_issued_frac": not_issued.get(_key(row), 0.0) if not_issued else None,
        }
        for row in rows
        if row["measure"] == _SAMPLES
    ]
    return sorted(lines, key=cost, reverse=True)[:_N_SAMPLED]


def cost(line: SampledLineEntry) -> float:
    """Return a line's share of what the lines of a kernel are ranked by: of the samples without an issue, else of all."""
    found: float = line["frac"] if line["not_issued_frac"] is None else line["not_issued_frac"]
    return found


def _key(row: Record) -> tuple[object, ...]:
    return row["file"], row["line"], row["text"]


def where(rows: Sequence[Record], measures: Iterable[str], catalogue: Catalogue) -> WhereEntry | None:
    """Return the source lines that cause a finding, and the measure of their shares; None where they are not known.

    Args:
        rows: of LINES, for one kernel.
        measures: of the finding, in order of preference; the first with rows is used.
        catalogue: describes the measures.
    """
    known = {row["measure"] for row in rows}
    measure = next((name for name in measures if name in known), None)
    lines = [_entry(row) for row in rows if row["measure"] == measure and row["frac"] >= _LEAST_FRAC][:_N_LINES]
    return {"measure": measure, "of": catalogue.by_line[measure].label, "lines": lines} if measure and lines else None


def callers(chain: str | None) -> list[PositionEntry]:
    """Return the text `callers` of LINES as entries of a document."""
    found = (each.rpartition(":") for each in (chain or "").split("\n") if each)
    return [{"file": file, "line": int(line)} for file, _, line in found]


def position(line: PositionEntry) -> str:
    """Return the place of a line of the document without its callers: "gemm.cu:80"."""
    return f"{formatting.printable(line['file'])}:{line['line']}"


def place(line: InlinedEntry) -> str:
    """Return the place of a line of the document: "gemm.cu:80", or "copy.h:12, called at tile.h:7, gemm.cu:80".

    Callers in the same file as what they call are skipped. Of more than three, the innermost two and the outermost are named.
    """
    called_at: list[str] = []
    inner = line["file"]
    for caller in line["callers"]:
        if caller["file"] != inner:
            called_at.append(position(caller))
        inner = caller["file"]
    if len(called_at) > _N_CALLERS:
        called_at = [*called_at[: _N_CALLERS - 1], "…", called_at[-1]]
    return f"{position(line)}, called at {', '.join(called_at)}" if called_at else position(line)


def waits_for(line: LineEntry) -> str:
    """Return what warps at a line of the document wait for: ":80 and copy.h:12, called at gemm.cu:81"; empty where not known.

    An awaited line in the same file is written without the file's name. One whose address is loaded, too, is followed by the line
    of that load: ":80 (at an address that :78 loads)".
    """
    return " and ".join(f"{_seen_from(line, each, place(each))}{_at_address(line, each)}" for each in line["awaits"])


def _at_address(line: LineEntry, awaited: AwaitedEntry) -> str:
    source = awaited["address_from"]
    if not source:
        return ""
    if _is_same(awaited, source):
        return " (at an address that it loads itself, one iteration before)"
    return f" (at an address that {_seen_from(line, source, position(source))} loads)"


def where_sentence(found: WhereEntry | None) -> str:
    """Return a finding's `where` as text: "gemm.cu:84 (99 %, waits for :80) of the samples"; empty where not known."""
    if not found:
        return ""
    lines = (f"{place(line)} ({_share(line)})" for line in found["lines"])
    return f"{'; '.join(lines)} of {found['of']}"


def line_text(line: LineEntry) -> str:
    """Return the source text of a line of the document; empty where the report does not contain its file."""
    return formatting.printable(line["text"] or "")


def first_place(found: WhereEntry | None) -> str:
    """Return the first line of a finding's `where` that can be changed, and a line that it waits for: "gemm.cu:84 waits for :80".

    Where the address of what it waits for is loaded by another line, this is named, too: "gemm.cu:84 waits for :80 through :78".
    A header may be a library's, so a line in one follows the place of its call: "gemm.cu:84 (barrier.h:654)". A line of Julia's own
    packages does so, too, and is left out where no call is known.
    """
    return next(filter(None, map(_changeable_place, found["lines"])), "") if found else ""


def changeable(line: InlinedEntry) -> PositionEntry | None:
    """Return the place to change for a line of the document: its own, or that of its call; None where only a library's is known."""
    is_of_julia = _is_of_julia(line)
    calls = (caller for caller in line["callers"] if not _is_header(caller) and not _is_of_julia(caller))
    call = next(calls, None) if is_of_julia or _is_header(line) else None
    return call or (None if is_of_julia else line)


def _changeable_place(line: LineEntry) -> str:
    awaited = line["awaits"][0] if line["awaits"] and not _is_same(line, line["awaits"][0]) else None
    waits = f" waits for {_seen_from(line, awaited, position(awaited))}{_through(line, awaited)}" if awaited else ""
    place_to_change = changeable(line)
    if place_to_change is None:
        return ""
    own = f"{position(line)}{waits}"
    return own if place_to_change is line else f"{position(place_to_change)} ({own})"


def _through(line: LineEntry, awaited: AwaitedEntry) -> str:
    source = awaited["address_from"]
    return f" through {_seen_from(line, source, position(source))}" if source and not _is_same(awaited, source) else ""


def _is_header(line: PositionEntry) -> bool:
    """Return whether a line is in a C++ header; those of the CUDA toolkit end in .h, .hpp or .inl, or have no suffix."""
    name = str(line["file"])
    return "." not in name or name.endswith(_HEADERS)


def _is_of_julia(line: PositionEntry) -> bool:
    """Return whether a line is in Julia's Base or in a package that kernels are made with: only these are named with a package."""
    return "/" in str(line["file"])


def _entry(row: Record) -> LineEntry:
    awaits: list[Any] = [{**awaited, "callers": callers(awaited["callers"])} for awaited in row["awaits"] or ()]
    return {
        "file": row["file"],
        "line": row["line"],
        "text": row["text"],
        "value": row["value"],
        "frac": row["frac"],
        "callers": callers(row["callers"]),
        "awaits": awaits,
    }


def _share(line: LineEntry) -> str:
    awaited = waits_for(line)
    return formatting.share(line["frac"]) + (f", waits for {awaited}" if awaited else "")


def _seen_from(line: PositionEntry, awaited: PositionEntry, name: str) -> str:
    """Return the `name` of an awaited place, without its file where that is the line's own."""
    return "the same line" if _is_same(line, awaited) else name.removeprefix(formatting.printable(line["file"]))


def _is_same(line: PositionEntry, other: PositionEntry) -> bool:
    return (line["file"], line["line"]) == (other["file"], other["line"])
