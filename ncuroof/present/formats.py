"""Choosing and producing a format. Each format's code is loaded when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from ncuroof.errors import OutputError, OutputFormatError
from ncuroof.ingest.stored import sha256
from ncuroof.present.analysed import Analysed
from ncuroof.present.documents.analysis import document
from ncuroof.present.documents.json_text import json_text
from ncuroof.present.kernel_rows import kernel_rows
from ncuroof.present.output import write_whole


def _html(analysis: Analysed) -> bytes:
    from ncuroof.present.page.render import render_page  # noqa: PLC0415

    return render_page(document(analysis), analysis.reports).encode()


def _json(analysis: Analysed) -> bytes:
    return json_text(document(analysis)).encode()


def _markdown(analysis: Analysed) -> bytes:
    from ncuroof.present.texts.markdown import to_markdown  # noqa: PLC0415

    return to_markdown(analysis).encode()


def _csv(analysis: Analysed) -> bytes:
    from ncuroof.present.tabular import to_csv  # noqa: PLC0415

    return to_csv(kernel_rows(analysis))


def _parquet(analysis: Analysed) -> bytes:
    from ncuroof.present.tabular import to_parquet  # noqa: PLC0415

    return to_parquet(kernel_rows(analysis))


def _terminal(analysis: Analysed) -> bytes:
    from ncuroof.present.texts.terminal import to_text  # noqa: PLC0415

    return to_text(analysis).encode()


FORMATS: Mapping[str, Callable[[Analysed], bytes]] = {
    "html": _html,
    "json": _json,
    "md": _markdown,
    "csv": _csv,
    "parquet": _parquet,
    "term": _terminal,
}

_FORMAT_BY_SUFFIX = {
    ".html": "html", ".htm": "html", ".json": "json", ".md": "md", ".markdown": "md", ".csv": "csv",
    ".parquet": "parquet", ".txt": "term", ".xml": "junit", ".svg": "svg",
}  # fmt: skip
"""Of an analysis, a comparison, a projection, a model and what a fleet answers."""


def format_of(path: Path, among: Collection[str] = FORMATS, otherwise: str | None = None) -> str:
    """Return the format among some that a file's suffix names; `otherwise`, if given, where it names none at all.

    Raises:
        OutputFormatError: there is no such format.
    """
    suffix = path.suffix.lower()
    form = _FORMAT_BY_SUFFIX.get(suffix, otherwise)
    if form is None or form not in among:
        known = ", ".join(each for each, named in _FORMAT_BY_SUFFIX.items() if named in among)
        raise OutputFormatError(
            f"{path}: a suffix of {known} was wanted, found {suffix or 'none'}",
            hint="rename the file" if form is not None else "rename the file, or add --format",
        )
    return form


def render(analysis: Analysed, form: str) -> bytes:
    """Return the analysis in a format.

    Raises:
        OutputFormatError: there is no such format.
    """
    if form not in FORMATS:
        raise OutputFormatError(f"no format {form!r}", hint=f"use one of {', '.join(FORMATS)}")
    return FORMATS[form](analysis)


def write(analysis: Analysed, path: Path, form: str | None = None, *, force: bool = False) -> Path:
    """Write the analysis to `path` in the given format, or the one that its suffix names, and return `path`.

    Raises:
        OutputFormatError: no format fits.
        OutputError: the file cannot be written, holds something that ncuroof did not write, or, even with `force`, one of the
            reports that were read; it is left as it was.
    """
    if force and _is_read(path, analysis):
        raise OutputError(f"{path}: holds a report that was read, and it would be lost", hint="choose another name")
    return write_whole(path, render(analysis, form or format_of(path)), force=force)


def _is_read(path: Path, analysis: Analysed) -> bool:
    """Return whether a file has the content of a report of the analysis."""
    is_readable = os.path.isfile(path) and os.access(path, os.R_OK)  # noqa: PTH113  of what cannot be a path it is no error
    return is_readable and sha256(path) in {report.sha256 for report in analysis.reports}
