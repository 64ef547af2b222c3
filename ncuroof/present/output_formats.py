"""Chooses an output format and produces it; the code of a format is imported only when it is needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from ncuroof.errors import OutputError, OutputFormatError
from ncuroof.ingest.file_content import sha256
from ncuroof.ingest.framing import SNIFF_BYTES, may_be_report
from ncuroof.present.analysed import Analysed
from ncuroof.present.documents.analysis import document
from ncuroof.present.documents.json_text import json_text
from ncuroof.present.kernel_rows import kernel_rows, to_csv, to_parquet
from ncuroof.present.output import write_whole
from ncuroof.regular_files import head, oddity


def _html(analysis: Analysed) -> bytes:
    from ncuroof.present.page.render import render_page  # noqa: PLC0415

    return render_page(document(analysis), analysis.reports).encode()


def _json(analysis: Analysed) -> bytes:
    return json_text(document(analysis)).encode()


def _markdown(analysis: Analysed) -> bytes:
    from ncuroof.present.texts.markdown import to_markdown  # noqa: PLC0415

    return to_markdown(analysis).encode()


def _csv(analysis: Analysed) -> bytes:
    return to_csv(kernel_rows(analysis))


def _parquet(analysis: Analysed) -> bytes:
    return to_parquet(kernel_rows(analysis))


def _terminal(analysis: Analysed) -> bytes:
    from ncuroof.present.texts.terminal import to_text  # noqa: PLC0415

    return to_text(analysis).encode()


def _sarif(analysis: Analysed) -> bytes:
    from ncuroof.present.documents.sarif import report_sarif  # noqa: PLC0415
    from ncuroof.present.source_tree import SourceTree  # noqa: PLC0415

    return report_sarif(document(analysis), SourceTree.around(Path.cwd())).encode()


FORMATS: Mapping[str, Callable[[Analysed], bytes]] = {
    "html": _html,
    "json": _json,
    "md": _markdown,
    "csv": _csv,
    "parquet": _parquet,
    "term": _terminal,
    "sarif": _sarif,
}

_FORMAT_BY_SUFFIX = {
    ".html": "html", ".htm": "html", ".json": "json", ".md": "md", ".markdown": "md", ".csv": "csv",
    ".parquet": "parquet", ".txt": "term", ".xml": "junit", ".svg": "svg", ".sarif": "sarif",
}  # fmt: skip
"""Formats of analyses, comparisons, projections, models and fleet answers, by file suffix."""


def format_of(path: Path, among: Collection[str] = FORMATS, otherwise: str | None = None) -> str:
    """Return the format that a file's suffix names; `otherwise`, if given, for a suffix that names no format at all.

    Args:
        path: the file to write.
        among: the formats that the output has.
        otherwise: the format for an unknown or missing suffix.

    Raises:
        OutputFormatError: that format is none of `among`, or there is none.
    """
    suffix = path.suffix.lower()
    form = _FORMAT_BY_SUFFIX.get(suffix, otherwise)
    if form is None or form not in among:
        known = ", ".join(each for each, named in _FORMAT_BY_SUFFIX.items() if named in among)
        raise OutputFormatError(
            f"{path}: expected a suffix of {known}, found {suffix or 'none'}",
            hint="rename the file" if form is not None else "rename the file, or add --format",
        )
    return form


def render(analysis: Analysed, form: str) -> bytes:
    """Return the analysis in a format, by its name in FORMATS.

    Raises:
        OutputFormatError: there is no such format.
    """
    if form not in FORMATS:
        raise OutputFormatError(f"no format {form!r}", hint=f"use one of {', '.join(FORMATS)}")
    return FORMATS[form](analysis)


def write(analysis: Analysed, path: Path, form: str | None = None, *, force: bool = False) -> Path:
    """Write the analysis to `path` in the given format, else in the one that its suffix names, and return `path`.

    Raises:
        OutputFormatError: no format fits.
        OutputError: the file cannot be written, was not written by ncuroof, or (even with `force`) is one of the reports that
            were read; it is left unchanged.
    """
    if force and _is_read(path, analysis):
        raise OutputError(f"{path}: holds a report that was read, and it would be lost", hint="choose another name")
    return write_whole(path, render(analysis, form or format_of(path)), force=force)


def _is_read(path: Path, analysis: Analysed) -> bool:
    """Return whether a file has the content of one of the analysed reports."""
    is_readable = os.path.isfile(path) and os.access(path, os.R_OK)  # noqa: PTH113  raises for no path
    return (
        is_readable
        and oddity(path.stat()) is None
        and may_be_report(head(path, SNIFF_BYTES))  # before what may be large is hashed
        and sha256(path) in {report.sha256 for report in analysis.reports}
    )
