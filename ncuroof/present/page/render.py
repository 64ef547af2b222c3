"""The page: one HTML file that holds everything it needs, and asks nothing of any network.

Every text of a report is hostile. The template escapes all it prints; the script reads blocks of packed JSON and writes text
nodes only; the content security policy allows no script but the one written here, by its hash.
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

from ncuroof.diagnosis import load_rules
from ncuroof.ingest.raw_report import RawReport
from ncuroof.metrics import load_catalogue
from ncuroof.present import format as text
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
    "export.js", "filter.js", "utilisation.js", "table.js", "whatif.js", "detail.js", "devices.js", "page.js",
)  # fmt: skip
"""In the order in which they need each other."""


@dataclass(frozen=True, slots=True)
class Assets:
    """What the page carries besides its text; marked as safe here and nowhere else."""

    policy: Annotated[str, "content security policy"]
    style: Annotated[Markup, "style sheet"]
    index: Annotated[Markup, "what is shown of every launch, packed"]
    details: Annotated[Sequence[Markup], "details of the launches, packed part by part"]
    counters: Annotated[Sequence[Markup], "counters of the launches as recorded, packed part by part, or none"]
    explained: Annotated[Markup, "how the names on the page come about, packed"]
    script: Annotated[Markup, "the scripts as one"]


def render_page(document: Record, reports: Sequence[RawReport] = (), comparison: Record | None = None) -> str:
    """Return the page of a document `ncuroof.analysis/1` as HTML; the same document gives the same text.

    Args:
        document: an analysis.
        comparison: the document `ncuroof.comparison/1` whose run after it is: the page says what changed, and draws how dots moved.
        reports: those that it was made from, for the counters as they were recorded; without them the page has none.

    Raises:
        ProfileError: the rules, the catalogue or the templates that ship with ncuroof are broken or missing.
    """
    rules, catalogue = load_rules(), load_catalogue()
    unit_by_quantity = {quantity.name: quantity.unit for quantity in catalogue.described()}
    context = page_context(document, rules, unit_by_quantity, comparison)
    script = _script()
    index, names = _packed((page_index(document, rules, comparison), explained(document)))
    assets = Assets(
        policy=_policy(script),
        style=Markup((folder("templates") / STYLE).read_text(encoding="utf-8")),  # noqa: S704 (a file of ours)
        index=index,
        details=_packed(detail_parts(document, rules, catalogue)),
        counters=_packed(counter_parts(reports)),
        explained=names,
        script=Markup(script),  # noqa: S704 (files of ours)
    )
    named = {part.name: getattr(context, part.name) for part in fields(context)}
    return _environment().get_template(TEMPLATE).render(named, assets=assets)


def _packed(parts: Iterable[Any]) -> list[Markup]:
    return [Markup(part) for part in packed(parts)]  # noqa: S704 (base64)


def _policy(script: str) -> str:
    """Return the content security policy: this script and no other, no connection, pictures only from the page itself.

    Styles of elements are set by the script (the width of a bar), which the policy counts as inline styles.
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
    return text.printable(value) if type(value) is str else value


@cache
def _script() -> str:
    """Return our scripts as one, in a scope of their own that may wait for data to be unpacked."""
    parts = [(folder("templates") / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return "(async () => {\n" + "\n".join(parts) + "})();"
