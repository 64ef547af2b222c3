"""Renders the page: one self-contained HTML file that makes no network requests.

All text of a report is treated as hostile. The template escapes everything that it prints, the script reads packed JSON and only
creates text nodes, and the content security policy allows only our own script, by its hash. Data are packed as JSON, gzip, base64;
the recorded counters in parts that are unpacked on demand.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ncuroof import formatting
from ncuroof.diagnosis import load_rules
from ncuroof.ingest.raw_report import RawReport
from ncuroof.metrics import load_catalogue
from ncuroof.present.analysed import Analysed
from ncuroof.present.documents.analysis import document
from ncuroof.present.page.context import page_context
from ncuroof.present.page.data import DETAILS_PER_PART, detail_parts, page_index
from ncuroof.present.page.methods import explained
from ncuroof.present.schemas.analysis import AnalysisDocument
from ncuroof.present.schemas.comparison import ComparisonDocument
from ncuroof.present.view import RunView
from ncuroof.resources import folder

TEMPLATE = "report.html.j2"
STYLE = "page.css"
SCRIPTS = (
    "format.js", "data.js", "elements.js", "plane.js", "labels.js", "arrows.js", "chosen.js", "stacks.js", "roofline.js",
    "pointer.js", "export.js", "filter.js", "icicle.js", "utilisation.js", "table.js", "whatif.js", "phases.js", "detail.js",
    "dock.js", "devices.js", "address.js", "page.js",
)  # fmt: skip
"""In order of dependency: each file uses only names of those before it when it is loaded."""

_LEVEL = 5
"""Compression level: 9 makes a page of a thousand kernels 5 % smaller, but takes four times as long, a fifth of the page's time."""

_SEPARATOR = "\t"
"""Between a counter's name and its unit, in the name of a column."""

MOST_LAUNCHES = 1000
"""Most launches for which the page has counters; with more, they would make up most of it, and the report has them anyway."""


@dataclass(frozen=True, slots=True)
class Assets:
    """Parts of the page that are inserted unescaped; only this module marks text as safe."""

    policy: Annotated[str, "content security policy"]
    style: Annotated[Markup, "style sheet"]
    index: Annotated[Markup, "index of all launches, packed"]
    details: Annotated[Sequence[Markup], "details of the launches, packed in parts"]
    counters: Annotated[Sequence[Markup], "recorded counters of the launches, packed in parts, or none"]
    explained: Annotated[Markup, "explanations of the names on the page, packed"]
    script: Annotated[Markup, "all scripts as one"]


def analysis_page(analysis: Analysed) -> str:
    """Return the page of an analysis."""
    return render_page(document(analysis), analysis.reports)


def comparison_page(comparison: ComparisonDocument, after: Analysed) -> str:
    """Return the page of the run after, with what changed."""
    return render_page(document(after), after.reports, comparison)


def render_page(
    document: AnalysisDocument, reports: Sequence[RawReport] = (), comparison: ComparisonDocument | None = None
) -> str:
    """Return the page of a document `ncuroof.analysis/1` as HTML; the same document gives the same text.

    Args:
        document: an analysis.
        reports: the reports of the analysis, for the recorded counters; without them the page has none.
        comparison: a document `ncuroof.comparison/1` with this analysis as the run after: the page then shows what changed and how
            dots moved.

    Raises:
        ProfileError: the rules, the catalogue or the templates that ship with ncuroof are broken or missing.
    """
    rules, catalogue, view = load_rules(), load_catalogue(), RunView(document)
    context = page_context(view, rules, comparison)
    script = _script()
    index, names = _packed((page_index(view, rules, comparison), explained(document)))
    assets = Assets(
        policy=_policy(script),
        style=Markup(_compact((folder("templates") / STYLE).read_text(encoding="utf-8"))),  # noqa: S704 (a file of ours)
        index=index,
        details=_packed(detail_parts(document, rules, catalogue)),
        counters=_packed(counter_parts(reports, [kernel["id"] for kernel in document["kernels"]])),
        explained=names,
        script=Markup(script),  # noqa: S704 (files of ours)
    )
    named = {part.name: getattr(context, part.name) for part in fields(context)}
    return _environment().get_template(TEMPLATE).render(named, assets=assets)


def _packed(parts: Iterable[Any]) -> list[Markup]:
    return [Markup(part) for part in packed(parts)]  # noqa: S704 (base64)


def _policy(script: str) -> str:
    """Return the content security policy: only this script, no connections, images only from the page itself.

    Inline styles are allowed, as the script sets styles of elements, such as the width of a bar.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(folder("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )


def _printable(value: Any) -> Any:
    return formatting.printable(value) if type(value) is str else value


@cache
def _script() -> str:
    """Return all scripts as one, in an async function, so that they have their own scope and can await the unpacking of data."""
    parts = [_compact((folder("templates") / name).read_text(encoding="utf-8")) for name in SCRIPTS]
    return "(async () => {\n" + "\n".join(parts) + "\n})();"


_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*.*?\*/[ \t]*)$\n?|^[ \t]+", re.MULTILINE | re.DOTALL)
"""A comment that has its lines to itself, or what a line is indented by."""


def _compact(source: str) -> str:
    """Return a script or style sheet without comments of their own lines and indentation, which are a third of it."""
    return _COMMENT.sub("", source)


def packed(parts: Iterable[Any]) -> list[str]:
    """Return each part as packed text; the same data gives the same text.

    A thread compresses each part while the next is being made, as zlib releases the GIL.
    """
    with ThreadPoolExecutor(1) as pool:
        compressed = [pool.submit(_compressed, _encoded(part)) for part in parts]
    return [each.result() for each in compressed]


def _encoded(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _compressed(encoded: bytes) -> str:
    return base64.b64encode(gzip.compress(encoded, _LEVEL, mtime=0)).decode()


def counter_parts(reports: Sequence[RawReport], ids: Sequence[int]) -> Iterable[dict[str, Any]]:
    """Yield the counters of launches, `DETAILS_PER_PART` at a time.

    Args:
        reports: the reports of an analysis.
        ids: of the launches, which number those of all reports.

    Yields:
        For each part, `names` and `units` of the counters that any of its launches has, and `values` per launch in the same order,
        None where not collected. Yields nothing for more than `MOST_LAUNCHES` launches.
    """
    if not 0 < len(ids) <= MOST_LAUNCHES or not any(report.counters.height for report in reports):
        return
    counters = pl.concat([_by_name_and_unit(report) for report in reports], how="diagonal")[list(ids)]
    for first in range(0, len(ids), DETAILS_PER_PART):
        part = counters.slice(first, DETAILS_PER_PART)
        columns = sorted(column.name for column in part if column.null_count() < part.height)
        pairs = [column.split(_SEPARATOR, 1) for column in columns]
        yield {
            "names": [name for name, _ in pairs],
            "units": [unit for _, unit in pairs],
            "values": [list(row) for row in part.select(columns).rows()] if columns else [[]] * part.height,
        }


def _by_name_and_unit(report: RawReport) -> pl.DataFrame:
    """Return a report's counters in a column per name and unit: reports of several versions of ncu may use different units."""
    return report.counters.rename(lambda name: f"{name}{_SEPARATOR}{report.units.get(name, '')}")
