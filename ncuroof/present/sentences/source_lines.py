"""Lines of the source as entries of the document and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ncuroof.metrics import Catalogue
from ncuroof.present import format as text
from ncuroof.present.analysed import Record

_SAMPLES = "samples"
_N_SAMPLED = 10
_LEAST_FRAC = 0.1
_N_LINES = 3
"""Lines of a finding are those with that share of it, and no more than that many."""

_N_CALLERS = 3
_HEADERS = (".h", ".hpp", ".inl")


def sampled_lines(rows: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the ten lines of a kernel with most samples: place, share of the samples, and what its warps wait for mostly.

    Args:
        rows: of LINES, of one kernel.
    """
    found = [{**_entry(row), "stall": row["stall"]} for row in rows if row["measure"] == _SAMPLES]
    return found[:_N_SAMPLED]


def where(rows: Sequence[Record], measures: Iterable[str], catalogue: Catalogue) -> dict[str, Any] | None:
    """Return where in the source a finding's cause is: lines, and what they have a share of; None where it is not known.

    Args:
        rows: of LINES, of one kernel.
        measures: that the finding names; the first that is known tells.
        catalogue: describes them.
    """
    known = {row["measure"] for row in rows}
    measure = next((name for name in measures if name in known), None)
    lines = [_entry(row) for row in rows if row["measure"] == measure and row["frac"] >= _LEAST_FRAC][:_N_LINES]
    return {"measure": measure, "of": catalogue.by_line[measure].label, "lines": lines} if measure and lines else None


def callers(chain: str | None) -> list[dict[str, Any]]:
    """Return `callers` of LINES, which are one text, as entries of a document."""
    found = (each.rpartition(":") for each in (chain or "").split("\n") if each)
    return [{"file": file, "line": int(line)} for file, _, line in found]


def position(line: Record) -> str:
    """Return a line of the document as text, without its callers: "gemm.cu:80"."""
    return f"{text.printable(line['file'])}:{line['line']}"


def place(line: Record) -> str:
    """Return a line of the document as text: "gemm.cu:80", or "copy.h:12, called at tile.h:7, gemm.cu:80".

    Of calls within one file the innermost is told, of many files the nearest two and the outermost.
    """
    called_at: list[str] = []
    inner = line["file"]
    for caller in line.get("callers") or ():
        if caller["file"] != inner:
            called_at.append(position(caller))
        inner = caller["file"]
    if len(called_at) > _N_CALLERS:
        called_at = [*called_at[: _N_CALLERS - 1], "…", called_at[-1]]
    return f"{position(line)}, called at {', '.join(called_at)}" if called_at else position(line)


def waits_for(line: Record) -> str:
    """Return what warps at a line of the document wait for: ":80 and copy.h:12, called at :81"; nothing where it is not known.

    The name of the line's own file is left out.
    """
    return " and ".join(_seen_from(line, each, place(each)) for each in line["awaits"])


def where_sentence(found: Record | None) -> str:
    """Return a finding's `where` as text: "gemm.cu:84 (99 %, waits for :80) of the samples"; nothing where unknown."""
    if not found:
        return ""
    lines = (f"{place(line)} ({_share(line)})" for line in found["lines"])
    return f"{'; '.join(lines)} of {found['of']}"


def line_text(line: Record) -> str:
    """Return what a line of the document says; nothing where the report does not carry its file."""
    return text.printable(line.get("text") or "")


def first_place(found: Record | None) -> str:
    """Return the first line of a finding's `where`, and another that it waits for: "gemm.cu:84 waits for :80".

    A line of a header, which may be a library's, is told by the call of it: "gemm.cu:84 (barrier.h:654)".
    """
    if not found:
        return ""
    line = found["lines"][0]
    awaited = line["awaits"][0] if line["awaits"] and not _is_same(line, line["awaits"][0]) else None
    waits = f" waits for {_seen_from(line, awaited, position(awaited))}" if awaited else ""
    calls = (caller for caller in line.get("callers") or () if not _is_header(caller))
    call = next(calls, None) if _is_header(line) else None
    return f"{position(call)} ({position(line)}{waits})" if call else f"{position(line)}{waits}"


def _is_header(line: Record) -> bool:
    """Return whether a line is in a file that C++ includes; those of the CUDA toolkit have such names, or names without a dot."""
    name = str(line["file"])
    return "." not in name or name.endswith(_HEADERS)


def _entry(row: Record) -> dict[str, Any]:
    awaits = [{**awaited, "callers": callers(awaited["callers"])} for awaited in row["awaits"] or ()]
    return {
        **{key: row[key] for key in ("file", "line", "text", "value", "frac")},
        "callers": callers(row["callers"]),
        "awaits": awaits,
    }


def _share(line: Record) -> str:
    awaited = waits_for(line)
    return text.share(line["frac"]) + (f", waits for {awaited}" if awaited else "")


def _seen_from(line: Record, awaited: Record, name: str) -> str:
    """Return the name of an awaited place without the file, where that is the line's own."""
    return "the same line" if _is_same(line, awaited) else name.removeprefix(text.printable(line["file"]))


def _is_same(line: Record, other: Record) -> bool:
    return (line["file"], line["line"]) == (other["file"], other["line"])
