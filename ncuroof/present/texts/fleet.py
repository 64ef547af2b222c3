"""The answers of a fleet for people: on the terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from ncuroof import formatting
from ncuroof.present.analysed import Record
from ncuroof.present.sentences.match_change import factor
from ncuroof.present.texts.layout import aligned, escaped, screen_width, table_row, wrapped_lines

_NAME_WIDTH, _CELL_WIDTH, _LAST_WIDTH, _QUERY_WIDTH = 30, 24, 60, 200
_WORDS_BY_FACTOR = {
    "report": "from one report to the next",
    "driver": "by driver",
    "cuda": "by CUDA version",
    "ncu": "by Nsight Compute version",
    "ncuroof": "by ncuroof version",
    "compiler": "by compiler version",
    "code": "by machine code",
}

_NO_ROWS = "no rows"
"""Of a query: a blank line could be an error."""


@dataclass(frozen=True, slots=True)
class AnswerSection:
    """A part of the answer.

    Attributes:
        title: what it answers.
        notes: lines beneath the title.
        head: of the columns, the first of them names; empty where there is no table.
        rows: cells as text.
    """

    title: str
    notes: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def to_text(document: Record) -> str:
    """Return the answers as lines of plain text."""
    lines = ["ncuroof · fleet", *(formatting.printable(line) for line in _heading(document))]
    for section in _sections(document):
        notes = (f"  {formatting.printable(note)}" for note in section.notes)
        lines += ["", formatting.printable(section.title), *notes, *_aligned(section)]
    return "".join(f"{line}\n" for line in wrapped_lines("\n".join(lines)))


def to_markdown(document: Record) -> str:
    """Return the answers as Markdown; names from reports are escaped."""
    lines = [
        "<!-- ncuroof fleet -->",
        "",
        "# ncuroof fleet",
        "",
        *(f"- {escaped(line)}" for line in _heading(document)),
    ]
    for section in _sections(document):
        lines += ["", f"## {escaped(section.title)}", "", *(escaped(note) + "  " for note in section.notes)]
        if section.rows:
            lines += ["", *_piped(section)]
    return "\n".join(lines) + "\n"


def rows_text(document: Record) -> str:
    """Return the document of a query as aligned text."""
    return table_text(document["columns"], document["rows"])


def rows_markdown(document: Record) -> str:
    """Return the document of a query as a Markdown table."""
    return table_markdown(document["columns"], document["rows"])


def table_text(columns: Sequence[str], rows: Sequence[Record]) -> str:
    """Return the rows of a query as aligned text, or a line that says that no row was found."""
    if not rows:
        return _NO_ROWS + "\n"
    return "\n".join(_aligned(_table(columns, rows), limits=[_QUERY_WIDTH] * len(columns))) + "\n"


def table_markdown(columns: Sequence[str], rows: Sequence[Record]) -> str:
    """Return the rows of a query as a Markdown table, or a line that says that no row was found."""
    if not rows:
        return _NO_ROWS + "\n"
    return "\n".join(_piped(_table(columns, rows))) + "\n"


def _piped(section: AnswerSection) -> list[str]:
    head, *rows = (table_row(map(escaped, cells)) for cells in (section.head, *section.rows))
    return [head, "|" + "---|" * len(section.head), *rows]


def _table(columns: Sequence[str], rows: Sequence[Record]) -> AnswerSection:
    cells = tuple(tuple("" if row[name] is None else str(row[name]) for name in columns) for row in rows)
    return AnswerSection("", (), tuple(columns), cells)


def _heading(document: Record) -> Iterator[str]:
    found = document["overview"]
    dates = "" if found["first"] is None else f", recorded {found['first']} to {found['last']}"
    n_reports, n_launches = formatting.counted(found["n_reports"], "report"), formatting.launches(found["n_launches"])
    yield f"{document['dataset']}: {n_reports}, {n_launches}{dates}"
    gpus = [f"{each['name']} ({each['n_launches']})" for each in found["gpus"]]
    yield f"{formatting.counted(len(gpus), 'GPU')}: {', '.join(gpus[:6])}{', …' if len(gpus) > 6 else ''}"
    yield (
        f"{formatting.counted(found['n_kernels'], 'kernel')}, {formatting.duration(found['duration_ns'])} of GPU time, "
        f"{formatting.duration(found['recoverable_ns'])} above the roofline"
    )
    if found["n_failed"] or found["n_without_time"]:
        failed = formatting.launches(found["n_failed"])
        yield f"not included: {failed} that failed to profile, {found['n_without_time']} without a time"
    if found["n_damaged"] or found["n_simulated"]:
        yield (
            f"of the reports, {found['n_damaged']} are damaged (what is left of them is included) and "
            f"{found['n_simulated']} are simulated, not recorded"
        )
    if found["labels"]:
        yield "labels: " + ", ".join(
            f"{each['name']} ({formatting.counted(each['n_values'], 'value')})" for each in found["labels"]
        )
    if document["failures"]["n"]:
        yield f"{formatting.counted(document['failures']['n'], 'report')} could not be ingested: --failures lists them"


def _sections(document: Record) -> Iterator[AnswerSection]:
    yield AnswerSection(
        f"slowest kernels ({_shown(document['slowest'])})",
        (
            "time is that of all launches; one launch is the median over shapes and reports (counting run, if any), then by date",
        ),
        ("kernel", "program", "GPU", "launches", "time", "share", "one launch", "bound by", "first and last date"),
        tuple(map(_slow, document["slowest"]["rows"])),
    )
    yield AnswerSection(
        f"most time above the roofline ({_shown(document['recoverable'])})",
        ("potential savings, upper bound; only launches whose roofline time is known",)
        if document["recoverable"]["n"]
        else ("no launch has a known roofline time",),
        ("kernel", "program", "GPU", "launches", "above roofline", "of its time", "bound by", "first finding"),
        tuple(map(_recoverable, document["recoverable"]["rows"])),
    )
    yield _gpus(document["across_gpus"])
    for found in document["changes"]:
        yield from _changes(found)
    if document["code"]["n"]:
        yield _code(document["code"])


def _slow(row: Record) -> tuple[str, ...]:
    dates = row["dates"] or []
    trend = [f"{each['date']}: {formatting.duration(each['median_ns'])}" for each in (dates[:1] + dates[1:][-1:])]
    return (
        *_names(row),
        f"{row['n_launches']} in {row['n_reports']}",
        formatting.duration(row["duration_ns"]),
        formatting.share(row["share_frac"]),
        formatting.duration(row["median_ns"]) + (f" ({row['n_shapes']} shapes)" if row["n_shapes"] > 1 else ""),
        _bound(row),
        " … ".join(trend),
    )


def _recoverable(row: Record) -> tuple[str, ...]:
    return (
        *_names(row),
        f"{row['n_placed']} in {row['n_reports']}",
        formatting.duration(row["recoverable_ns"]),
        formatting.share(row["recoverable_ns"] / row["placed_ns"] if row["placed_ns"] else None),
        _bound(row),
        formatting.label(row["first_finding"]) if row["first_finding"] else "",
    )


def _gpus(listed: Record) -> AnswerSection:
    title = "same launch on several GPUs"
    if not listed["rows"]:
        return AnswerSection(title, ("none: kernel, shape, program, clock control and work must be the same",))
    note = "same kernel, shape, program, clock control and work; the share of the roof separates the code's part from the GPU's"
    rows = [
        (
            *_names(row)[:2],
            formatting.extent(row["grid"]),
            row["gpu_name"],
            str(row["n_launches"]),
            formatting.duration(row["median_ns"]),
            f"{formatting.duration(row['least_ns'])}–{formatting.duration(row['most_ns'])}"
            if row["n_launches"] > 1
            else "",
            formatting.share(row["share_of_roof_frac"]),
            row["clock_control"] or "",
        )
        for row in listed["rows"]
    ]
    head = ("kernel", "program", "grid", "GPU", "launches", "one launch", "range", "of the roof", "clocks")
    return AnswerSection(title, (note,), head, tuple(rows))


def _changes(found: Record) -> Iterator[AnswerSection]:
    words = _WORDS_BY_FACTOR.get(found["by"]) or f"by label {found['by'].partition(':')[2]}"
    n_at_other_clocks = found["n_steps"] - found["n_compared"]
    counts = (
        f"{formatting.counted(found['n_steps'], 'step')} in {found['n_series']} series of equal launches; "
        f"{found['n_compared']} compared"
        + (f", {n_at_other_clocks} not (different SM clocks)" if n_at_other_clocks else "")
    )
    if not found["n_steps"]:
        yield AnswerSection(f"changes {words}", ("no launch was recorded with two of these under the same conditions",))
        return
    if not any(found[kind]["n"] for kind in ("slower", "faster", "other_work")):
        yield AnswerSection(f"changes {words}", (counts, "none beyond measurement noise"))
        return
    head = ("kernel", "program", "GPU", "from", "to", "one launch", "change", "noise", "also differs")
    titles = {
        "slower": f"slower {words}",
        "faster": f"faster {words}",
        "other_work": f"different time {words}, but also different work: not regressions",
    }
    for kind, title in titles.items():
        listed = found[kind]
        if listed["n"]:
            rows = tuple(map(_step, listed["rows"]))
            yield AnswerSection(f"{title} ({_shown(listed)})", (counts,), head, rows)


def _code(listed: Record) -> AnswerSection:
    note = "one name, program and GPU; the source may be the same: 'also differs' says which compiler or driver came with the code"
    head = ("kernel", "program", "GPU", "from", "to", "since", "one launch", "also differs")
    rows = tuple(
        (
            *_names(row),
            row["before_value"],
            row["value"],
            row["first_recorded_at"][:10],
            factor(row["change_frac"])
            if row["is_significant"]
            else "no change beyond noise"
            if row["is_comparable"]
            else "",
            ", ".join(row["also_changed"]),
        )
        for row in listed["rows"]
    )
    return AnswerSection(f"same kernel, other machine code ({_shown(listed)})", (note,), head, rows)


def _step(row: Record) -> tuple[str, ...]:
    return (
        *_names(row),
        row["before_value"],
        row["value"],
        f"{formatting.duration(row['before_ns'])} → {formatting.duration(row['mean_ns'])}",
        factor(row["change_frac"]),
        f"±{formatting.share(row['noise_frac'])}",
        ", ".join(row["also_changed"]),
    )


def _names(row: Record) -> tuple[str, str, str]:
    return (
        formatting.kernel_name(row),
        row.get("program") or row.get("process_name") or "",
        row["gpu_name"] or "",
    )


def _bound(row: Record) -> str:
    return formatting.bound_by(row["verdict"], formatting.label(row["limiter"]) if row["limiter"] else None)


def _shown(listed: Record) -> str:
    n_shown = len(listed["rows"])
    return str(listed["n"]) if n_shown == listed["n"] else f"{n_shown} of {listed['n']}"


def _aligned(section: AnswerSection, *, limits: Sequence[int] = ()) -> list[str]:
    if not section.rows:
        return []
    limits = limits or [_NAME_WIDTH, *[_CELL_WIDTH] * (len(section.head) - 2), _LAST_WIDTH]
    rows = [
        [formatting.shortened(formatting.printable(cell), limit) for cell, limit in zip(row, limits, strict=True)]
        for row in (section.head, *section.rows)
    ]
    lines = [f"  {line}" for line in aligned(rows, left=[True] * len(limits))]
    width = screen_width()
    if width is None or max(map(cell_len, lines)) <= width:
        return lines
    return [line for cells in rows[1:] for line in _stacked(rows[0], cells)]


def _stacked(head: Sequence[str], cells: Sequence[str]) -> list[str]:
    """Return a row for a terminal that is narrower than the table: the first cell, then the others with their titles below it."""
    rest = ", ".join(f"{title} {cell}" for title, cell in zip(head[1:], cells[1:], strict=True) if cell)
    return [f"  {cells[0]}", f"    {rest}"]
