"""Renders the page: one self-contained HTML file that makes no network requests.

All text of a report is treated as hostile. The template escapes everything that it prints, the script reads packed JSON and only
creates text nodes, and the content security policy allows only our own script, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ncuroof import wording
from ncuroof.diagnosis import load_rules
from ncuroof.ingest.raw_report import RawReport
from ncuroof.metrics import load_catalogue
from ncuroof.present.analysed import Record
from ncuroof.present.page.context import page_context
from ncuroof.present.page.data import detail_parts, page_index
from ncuroof.present.page.explained import explained
from ncuroof.present.page.packing import packed
from ncuroof.present.page.raw_counters import counter_parts
from ncuroof.resources import folder

TEMPLATE = "report.html.j2"
STYLE = "page.css"
SCRIPTS = (
    "format.js", "data.js", "elements.js", "plane.js", "labels.js", "arrows.js", "chosen.js", "roofline.js", "pointer.js",
    "export.js", "filter.js", "utilisation.js", "table.js", "whatif.js", "detail.js", "devices.js", "address.js", "page.js",
)  # fmt: skip
"""In order of dependency: each file uses only names of those before it when it is loaded."""


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


def render_page(document: Record, reports: Sequence[RawReport] = (), comparison: Record | None = None) -> str:
    """Return the page of a document `ncuroof.analysis/1` as HTML; the same document gives the same text.

    Args:
        document: an analysis.
        reports: the reports of the analysis, for the recorded counters; without them the page has none.
        comparison: a document `ncuroof.comparison/1` with this analysis as the run after: the page then shows what changed and how
            dots moved.

    Raises:
        ProfileError: the rules, the catalogue or the templates that ship with ncuroof are broken or missing.
    """
    rules, catalogue = load_rules(), load_catalogue()
    context = page_context(document, rules, comparison)
    script = _script()
    index, names = _packed((page_index(document, rules, comparison), explained(document)))
    assets = Assets(
        policy=_policy(script),
        style=Markup((folder("templates") / STYLE).read_text(encoding="utf-8")),  # noqa: S704 (a file of ours)
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
    return wording.printable(value) if type(value) is str else value


@cache
def _script() -> str:
    """Return all scripts as one, in an async function, so that they have their own scope and can await the unpacking of data."""
    parts = [(folder("templates") / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return "(async () => {\n" + "\n".join(parts) + "})();"
