"""The page: one HTML file that holds everything it needs, and asks nothing of any network.

Every text of a report is hostile. The template escapes all it prints; the script reads one block of JSON and writes text
nodes only; the content security policy allows no script but the ones written here, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ncuroof.diagnosis import Rules, load_rules
from ncuroof.errors import MissingExtraError
from ncuroof.metrics import Catalogue, load_catalogue
from ncuroof.present import format as text
from ncuroof.present.figures import LEVELS, chart, dot_sizes_px
from ncuroof.present.interned import Texts
from ncuroof.present.kernel_detail import SECTIONS, KernelDetails
from ncuroof.present.page_context import page_context, sort_values
from ncuroof.present.views import FLOP, VIEWS, View
from ncuroof.resources import folder

Record = Mapping[str, Any]

TEMPLATE = "report.html.j2"
STYLE = "page.css"
SCRIPTS = ("elements.js", "roofline.js", "table.js", "detail.js", "page.js")


@dataclass(frozen=True, slots=True)
class Assets:
    """What the page carries besides its text; marked as safe here and nowhere else."""

    policy: Annotated[str, "content security policy"]
    style: Annotated[Markup, "style sheet"]
    payload: Annotated[Markup, "JSON that the script shows"]
    script: Annotated[Markup, "our scripts as one"]
    plotly: Annotated[Markup, "plotly's script"]


def render_page(document: Record) -> str:
    """Return the page of a document `ncuroof.analysis/1` as HTML; the same document gives the same text.

    Raises:
        MissingExtraError: plotly, whose script the page holds, is not installed.
        ProfileError: the rules, the catalogue or the templates that ship with ncuroof are broken or missing.
    """
    rules, catalogue = load_rules(), load_catalogue()
    unit_by_quantity = {quantity.name: quantity.unit for quantity in catalogue.described()}
    context = page_context(document, rules, unit_by_quantity)
    own, plotly = _own_script(), _plotly_script()
    assets = Assets(
        policy=_policy((own, plotly)),
        style=Markup((folder("templates") / STYLE).read_text(encoding="utf-8")),  # noqa: S704 (a file of ours)
        payload=Markup(_json(payload(document, rules, catalogue))),  # noqa: S704 (escaped by `_json`)
        script=Markup(own),  # noqa: S704 (files of ours)
        plotly=Markup(plotly),  # noqa: S704 (plotly's own file)
    )
    named = {part.name: getattr(context, part.name) for part in fields(context)}
    return _environment().get_template(TEMPLATE).render(named, assets=assets)


def payload(document: Record, rules: Rules, catalogue: Catalogue) -> dict[str, Any]:
    """Return what the page's script shows: charts, the kernels' details and sort values, texts stored once."""
    texts = Texts()
    details = KernelDetails(document, rules, catalogue, texts)
    kernels = document["kernels"]
    sizes_px = dot_sizes_px([kernel["duration_ns"] for kernel in kernels])
    described = [
        _kernel(kernel, size_px, texts) | details.describe(kernel)
        for kernel, size_px in zip(kernels, sizes_px, strict=True)
    ]
    return {
        "kernels": described,
        "charts": _charts(document, texts),
        "views": {view.name: view.label for view in VIEWS},
        "levels": {level.value: text.label(level.value) for level in LEVELS},
        "verdicts": {name: verdict.title for name, verdict in rules.verdicts.items()},
        "sections": SECTIONS,
        "quantities": details.quantities,
        "texts": texts.table(),
    }


def _kernel(kernel: Record, size_px: float, texts: Texts) -> dict[str, Any]:
    utilisation = kernel.get("utilisation") or {}
    return {
        "id": kernel["id"],
        "name": texts.add(kernel["name"] or kernel["short_name"] or "(no name)"),
        "short": texts.add(text.shortened(kernel["short_name"] or kernel["name"] or "(no name)", 80)),
        "device": kernel.get("device"),
        "verdict": kernel["verdict"],
        "sort": {key: _rounded(value) for key, value in sort_values(kernel).items()},
        "time": text.duration(kernel["duration_ns"]),
        "limiter": text.label(kernel.get("limiter")),
        "busy": [text.share(utilisation.get(side)) for side in ("memory", "compute")],
        "off": {view.name: view.off_chart_reason(kernel) for view in VIEWS},
        "size": size_px,
        "dots": {
            view.name: {level: [_dot(point, view) for point in points] for level, points in view.dots(kernel).items()}
            for view in VIEWS
        },
    }


def _dot(point: Record, view: View) -> list[Any]:
    """Return a dot: its place, the line that joins it to others of the kernel, and what is told of it."""
    x, y, precision = point[view.intensity], point[view.rate], point.get("precision", "")
    where = ", ".join(text.label(name) for name in (point["level"], precision) if name)
    roof = f", {text.share(point['roof_frac'])} of its roof" if point["roof_frac"] is not None else ""
    return [_rounded(x), _rounded(y), precision, f"{where}: {view.write_intensity(x)}, {view.write_rate(y)}{roof}"]


def _charts(document: Record, texts: Texts) -> list[dict[str, Any]]:
    """Return the charts of each device, those included that the document names in its kernels or ceilings alone."""
    devices, kernels = document["devices"], document["kernels"]
    numbers = {*range(len(devices)), *(kernel.get("device") for kernel in kernels)} - {None}
    return [
        {
            "device": number,
            "label": texts.add(
                ": ".join([f"GPU {number}", *(each["name"] or "" for each in devices[number : number + 1])])
            ),
            **_views(document, number),
        }
        for number in sorted(numbers)
    ]


def _views(document: Record, device: int) -> dict[str, Any]:
    """Return a device's chart by view, and which of them opens first: the first that has dots."""
    kernels = [kernel for kernel in document["kernels"] if kernel.get("device") == device]
    views = {
        view.name: chart(
            [ceiling for ceiling in document.get(view.ceilings) or () if ceiling["device"] == device], kernels, view
        )
        for view in VIEWS
    }
    opens = next((name for name, figure in views.items() if figure["levels"]), FLOP.name)
    return {"views": views, "opens": opens}


def _rounded(value: float | None) -> float | None:
    """Return a number with the digits that sorting and drawing need."""
    return None if value is None else float(f"{value:.6g}")


def _json(value: Any) -> str:
    """Return JSON that can stand inside a script element: nothing in it opens or closes a tag or a comment."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _policy(scripts: Sequence[str]) -> str:
    """Return the content security policy: these scripts and nothing else, no connection, pictures only from the page itself.

    Inline styles have to be allowed: plotly writes style elements whose content changes from version to version.
    """
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
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
def _own_script() -> str:
    """Return our scripts as one, in a scope of their own."""
    parts = [(folder("templates") / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return "(() => {\n" + "\n".join(parts) + "})();"


@cache
def _plotly_script() -> str:
    """Return plotly's script from the installed package, which need not be imported for it.

    Raises:
        MissingExtraError: plotly is not installed, or without its script.
    """
    spec = find_spec("plotly")
    path = Path(spec.origin).parent / "package_data" / "plotly.min.js" if spec and spec.origin else None
    if path is None or not path.is_file():
        raise MissingExtraError(
            "the page needs plotly's script, found no plotly package that has it", hint="pip install plotly"
        )
    return path.read_text(encoding="utf-8")
