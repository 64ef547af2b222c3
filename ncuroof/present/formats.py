"""The formats of every kind of result: which there are, who writes them, and how their files are named and recognised.

Importing this loads nothing heavy, so that the command line knows its choices at once; a writer is imported when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncuroof.errors import OutputError, OutputFormatError

if TYPE_CHECKING:
    from ncuroof.present.analysed import Analysed


@dataclass(frozen=True, slots=True)
class Format:
    """How files in a format are named and recognised.

    Attributes:
        suffixes: that stand for it; empty where none does.
        beginnings: first bytes of what ncuroof writes in it, by which a later run knows that it may replace the file.
        binary: what to call it where it is no text, and so needs a file; else empty.
    """

    suffixes: tuple[str, ...] = ()
    beginnings: tuple[bytes, ...] = ()
    binary: str = ""


FORMATS: Mapping[str, Format] = {
    "html": Format((".html", ".htm")),  # begins as any page does: see output.py
    "json": Format((".json",), (b'{\n "schema": "ncuroof.', b'{"schema":"ncuroof.')),
    "md": Format((".md", ".markdown"), (b"<!-- ncuroof ",)),
    "csv": Format((".csv",), (b"id,source,device,name,short_name,family,", b"operation,machine,dtype,")),
    "parquet": Format((".parquet",), binary="Parquet"),  # ends with the mark: see output.py
    "term": Format((".txt",), ("ncuroof ·".encode(),)),
    "junit": Format((".xml",), (b"<?xml version='1.0' encoding='utf-8'?>\n<testsuite name=\"ncuroof compare\"",)),
    "svg": Format((".svg",)),
    "sarif": Format((".sarif",), (b'{\n "properties": {\n  "generator": "ncuroof"',)),
    "brief": Format(),
    "github": Format(),
}
"""By name, as --format takes it."""

TEXT, PAGE = "term", "html"


@dataclass(frozen=True, slots=True)
class Writer:
    """A function that writes a result, imported when it is called.

    Attributes:
        module: where it is.
        function: its name there.
        options: options that it gets in any case.
    """

    module: str
    function: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: Any, **options: Any) -> str | bytes:
        """Return the result as the function writes it."""
        write = getattr(import_module(self.module), self.function)
        written: str | bytes = write(*arguments, **self.options, **options)
        return written


def written_by(module: str, function: str, **options: str) -> Writer:
    """Return the writer that is a function of a module."""
    return Writer(module, function, options)


_json = written_by("ncuroof.present.documents.json_text", "json_text")

WRITERS: Mapping[str, Mapping[str, Writer]] = {
    "analysis": {
        "html": written_by("ncuroof.present.page.render", "analysis_page"),
        "json": written_by("ncuroof.present.documents.analysis", "analysis_json"),
        "md": written_by("ncuroof.present.texts.markdown", "to_markdown"),
        "csv": written_by("ncuroof.present.kernel_rows", "analysis_csv"),
        "parquet": written_by("ncuroof.present.kernel_rows", "analysis_parquet"),
        "term": written_by("ncuroof.present.texts.terminal", "to_text"),
        "sarif": written_by("ncuroof.present.documents.sarif", "analysis_sarif"),
    },
    "brief": {form: written_by("ncuroof.present.brief", "brief_text", form=form) for form in ("json", "md")},
    "comparison": {
        "term": written_by("ncuroof.present.texts.comparison", "to_text"),
        "json": _json,
        "md": written_by("ncuroof.present.texts.comparison", "to_markdown"),
        "junit": written_by("ncuroof.present.texts.comparison", "to_junit"),
        "brief": written_by("ncuroof.present.brief.changes", "comparison_brief"),
        "sarif": written_by("ncuroof.present.documents.sarif", "comparison_sarif"),
        "github": written_by("ncuroof.present.texts.comparison", "github_annotations"),
        "html": written_by(
            "ncuroof.present.page.render", "comparison_page"
        ),  # takes the analysis of the run after, too
    },
    "history": {
        "term": written_by("ncuroof.present.texts.comparison", "history_text"),
        "json": written_by("ncuroof.present.documents.comparison", "history_json"),
    },
    "projection": {
        "term": written_by("ncuroof.present.texts.projection", "to_text"),
        "json": _json,
        "md": written_by("ncuroof.present.texts.projection", "to_markdown"),
        "brief": written_by("ncuroof.present.brief.changes", "projection_brief"),
    },
    "model": {
        "term": written_by("ncuroof.present.texts.model", "to_text"),
        "json": _json,
        "md": written_by("ncuroof.present.texts.model", "to_markdown"),
        "csv": written_by("ncuroof.present.texts.model", "to_csv"),
        "svg": written_by("ncuroof.present.charts.roofline_svg", "to_model_svg"),
        "html": written_by("ncuroof.present.charts.roofline_svg", "to_model_page"),
    },
    "fleet": {
        "term": written_by("ncuroof.present.texts.fleet", "to_text"),
        "md": written_by("ncuroof.present.texts.fleet", "to_markdown"),
        "json": _json,
    },
    "rows": {
        "term": written_by("ncuroof.present.texts.fleet", "rows_text"),
        "md": written_by("ncuroof.present.texts.fleet", "rows_markdown"),
        "json": _json,
    },
}
"""What writes a kind of result in a format: analyses and histories from themselves, the others from their documents."""


def format_of(path: Path, among: Collection[str] = WRITERS["analysis"], otherwise: str | None = None) -> str:
    """Return the format that a file's suffix names; `otherwise`, if given, for a suffix that names no format at all.

    Args:
        path: the file to write.
        among: the formats that the result has; by default those of an analysis.
        otherwise: the format for an unknown or missing suffix.

    Raises:
        OutputFormatError: that format is none of `among`, or there is none.
    """
    suffix = path.suffix.lower()
    form = next((name for name, each in FORMATS.items() if suffix in each.suffixes), otherwise)
    if form is None or form not in among:
        known = ", ".join(each for name, found in FORMATS.items() if name in among for each in found.suffixes)
        raise OutputFormatError(
            f"{path}: expected a suffix of {known}, found {suffix or 'none'}",
            hint="rename the file" if form is not None else "rename the file, or add --format",
        )
    return form


def render(analysis: Analysed, form: str) -> bytes:
    """Return the analysis in a format, by its name.

    Raises:
        OutputFormatError: there is no such format.
    """
    writers = WRITERS["analysis"]
    if form not in writers:
        raise OutputFormatError(f"no format {form!r}", hint=f"use one of {', '.join(writers)}")
    written = writers[form](analysis)
    return written if isinstance(written, bytes) else written.encode()


def write(analysis: Analysed, path: Path, form: str | None = None, *, force: bool = False) -> Path:
    """Write the analysis to `path` in the given format, else in the one that its suffix names, and return `path`.

    Raises:
        OutputFormatError: no format fits.
        OutputError: the file cannot be written, was not written by ncuroof, or (even with `force`) is one of the reports that
            were read; it is left unchanged.
    """
    from ncuroof.present.output import write_whole  # noqa: PLC0415  knows the formats' beginnings from here

    if force and _is_read(path, analysis):
        raise OutputError(f"{path}: holds a report that was read, and it would be lost", hint="choose another name")
    return write_whole(path, render(analysis, form or format_of(path)), force=force)


def _is_read(path: Path, analysis: Analysed) -> bool:
    """Return whether a file has the content of one of the analysed reports."""
    from ncuroof.ingest.file_content import sha256  # noqa: PLC0415  loads polars
    from ncuroof.ingest.framing import SNIFF_BYTES, may_be_report  # noqa: PLC0415
    from ncuroof.regular_files import head, oddity  # noqa: PLC0415

    is_readable = os.path.isfile(path) and os.access(path, os.R_OK)  # noqa: PTH113  raises for no path
    return (
        is_readable
        and oddity(path.stat()) is None
        and may_be_report(head(path, SNIFF_BYTES))  # before what may be large is hashed
        and sha256(path) in {report.sha256 for report in analysis.reports}
    )
