"""Data for the page's script: a columnar index of all launches, and their details in parts.

The index holds what the chart, the table and the filters need of every launch. Details are unpacked only when a launch is opened,
so that a page of ten thousand kernels opens as fast as one of ten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ncuroof import formatting
from ncuroof.diagnosis import Rules
from ncuroof.enums import MemoryLevel
from ncuroof.metrics import Catalogue
from ncuroof.metrics.families import title
from ncuroof.present.analysed import Record
from ncuroof.present.charts.figures import chart, rounded
from ncuroof.present.charts.views import FLOP, VIEWS, RooflineView
from ncuroof.present.explanations.meanings import limiter_label
from ncuroof.present.page.changes import arrows, changed_positions
from ncuroof.present.page.kernel_detail import RANGE_MARK, SECTIONS, KernelDetails
from ncuroof.present.page.text_table import Cell, Texts
from ncuroof.present.page.whatif import scaling, targets
from ncuroof.present.schemas.analysis import AnalysisDocument
from ncuroof.present.schemas.comparison import ComparisonDocument
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.actions import action_lines, counted_finding, gpu_time, most_worth
from ncuroof.present.view import LaunchRow, RunView, n_represented

DETAILS_PER_PART = 64
"""Number of launches whose details are unpacked together."""

RESOURCES = (
    "memory", "compute", "dram", "l2", "l1", "issue", "tensor", "fp32", "fp64", "fp16", "alu", "xu", "lsu",
)  # fmt: skip
"""Utilisations with a column of bars."""


def page_index(run: RunView, rules: Rules, comparison: ComparisonDocument | None = None) -> dict[str, Any]:
    """Return the index: columns of all launches, the charts of all devices, and the display names used in both."""
    texts = Texts()
    document, kernels = run.document, run.kernels
    moved = arrows(comparison, kernels)
    precisions = {
        name for kernel in kernels for name in (kernel["dominant_precision"], *_dot_precisions(kernel)) if name
    }
    return {
        "launches": {**_launches(run, texts), "line": run.ranges.line_by_launch},
        "groups": [_group(row) for row in run.rows],
        "dots": {view.name: _dots(kernels, view) for view in VIEWS},
        "off": {view.name: [_cell(view.off_chart_reason(kernel), texts) for kernel in kernels] for view in VIEWS},
        "charts": _charts(document, texts, moved),
        "views": {view.name: view.label for view in VIEWS},
        "units": {view.name: {"intensity": view.intensity_unit, "rate": view.rate_unit} for view in VIEWS},
        "levels": {level.value: formatting.label(level.value) for level in MemoryLevel},
        "gpuTime": gpu_time(document["summary"]),
        "verdicts": {name: verdict.title for name, verdict in rules.verdicts.items()} | {"failed": "failed"},
        "findings": {finding["id"]: finding["title"] for kernel in kernels for finding in kernel["findings"]},
        "families": {
            name: title(name) for name in sorted({kernel["family"] for kernel in kernels if kernel["family"]})
        },
        "precisions": {name: formatting.label(name) for name in sorted(precisions)},
        "integers": [name for name in sorted(precisions) if formatting.work_units([name]) == "OP"],
        "resources": {name: formatting.label(name) for name in RESOURCES},
        "reports": run.reports or [source["file"] for source in document["sources"]],
        "ranges": [
            [
                place.names,
                place.outer,
                rounded(place.share_frac, 4),
                rounded(place.above_frac, 2),
                place.verdict,
                place.said,
            ]
            for place in run.ranges.places
        ],
        "arrows": moved,
        "changed": changed_positions(comparison, kernels),
        "actions": {line.finding: line.number for line in action_lines(document) if line.finding},
        "targets": targets(document),
        "sections": SECTIONS,
        "details_per_part": DETAILS_PER_PART,
        "texts": texts.table(),
    }


def detail_parts(document: AnalysisDocument, rules: Rules, catalogue: Catalogue) -> Iterable[dict[str, Any]]:
    """Yield the details of `DETAILS_PER_PART` launches at a time, each part with the texts and quantities that it refers to."""
    kernels = document["kernels"]
    for first in range(0, len(kernels), DETAILS_PER_PART):
        texts = Texts()
        details = KernelDetails(document, rules, catalogue, texts)
        described = [
            details.describe(kernel)
            | {
                "points_by_view": {view.name: _points(kernel, view) for view in VIEWS},
                "scaling": scaling(kernel, document),
            }
            for kernel in kernels[first : first + DETAILS_PER_PART]
        ]
        yield {"kernels": described, "quantities": details.quantities, "texts": texts.table()}


def dram_intensity(kernel: KernelEntry) -> float | None:
    """Return FLOPs per DRAM byte in the dominant precision; None where either is not known."""
    point: Record = next(iter(FLOP.dots(kernel).get("dram", ())), {})
    return point.get("intensity_flop_per_byte")


def _launches(run: RunView, texts: Texts) -> dict[str, Any]:
    kernels = run.kernels
    findings = [most_worth(kernel["findings"]) for kernel in kernels]
    counted = [counted_finding(kernel["findings"]) for kernel in kernels]
    return {
        "id": [kernel["id"] for kernel in kernels],
        "name": [texts.add(kernel["name"] or formatting.kernel_name(kernel)) for kernel in kernels],
        "short": list(map(texts.add, run.names)),
        "device": [kernel["device"] for kernel in kernels],
        "source": [kernel["source"] for kernel in kernels],
        "grid": [_cell(_extent(kernel["grid"]), texts) for kernel in kernels],
        "block": [_cell(_extent(kernel["block"]), texts) for kernel in kernels],
        "failed": [bool(kernel["failed"]) for kernel in kernels],
        "verdict": [kernel["verdict"] for kernel in kernels],
        "limiter": [_cell(limiter_label(kernel), texts) for kernel in kernels],
        "family": [kernel["family"] for kernel in kernels],
        "precision": [kernel["dominant_precision"] for kernel in kernels],
        "range": [texts.add(RANGE_MARK.join(kernel["nvtx"] or ())) for kernel in kernels],
        "duration_ns": [rounded(kernel["duration_ns"]) for kernel in kernels],
        "recoverable_ns": [rounded(kernel["recoverable_ns"]) for kernel in kernels],
        "n_represented": None if (represented := n_represented(kernels)) is None else list(map(rounded, represented)),
        "weight": [rounded(kernel["weight"]) for kernel in kernels] if kernels and "weight" in kernels[0] else None,
        "intensity": [rounded(dram_intensity(kernel)) for kernel in kernels],
        "efficiency": [rounded(kernel["min_time_frac"]) for kernel in kernels],
        "findings": [[finding["id"] for finding in kernel["findings"]] for kernel in kernels],
        "worth": [finding["id"] if finding else None for finding in counted],
        "gain_ns": [rounded(finding["gain_ns"]) if finding else None for finding in counted],
        "min_time_by": [_label(kernel["min_time_by"], texts) for kernel in kernels],
        "finding": [_cell(finding["title"] if finding else None, texts) for finding in findings],
        "utilisation": {name: [rounded(kernel["utilisation"].get(name)) for kernel in kernels] for name in RESOURCES},
    }


def _group(row: LaunchRow) -> dict[str, Any]:
    return {
        "position": row.position,
        "launches": row.launches,
        "n_launches": row.n_launches,
        "duration_ns": rounded(row.duration_ns),
        "recoverable_ns": rounded(row.recoverable_ns),
    }


def _dots(kernels: Sequence[KernelEntry], view: RooflineView) -> dict[str, dict[str, list[Any]]]:
    """Return the dots of all launches by level, in their dominant precision; coordinates are None for a launch without a dot."""
    dots = [view.dots(kernel) for kernel in kernels]
    return {
        level.value: _places([next(iter(each.get(level.value, ())), {}) for each in dots], view)
        for level in MemoryLevel
    }


def _places(points: Sequence[Record], view: RooflineView) -> dict[str, list[Any]]:
    return {
        "x": [rounded(point.get(view.intensity)) for point in points],
        "y": [rounded(point.get(view.rate)) for point in points],
        "precision": [point.get("precision") for point in points],
        "roof": [rounded(point.get("roof_frac")) for point in points],
    }


def _dot_precisions(kernel: KernelEntry) -> Iterable[str]:
    return (point["precision"] for point in FLOP.points(kernel))


def _points(kernel: KernelEntry, view: RooflineView) -> list[list[Any]]:
    """Return level, precision and coordinates of each point of a launch that can be drawn."""
    return [
        [level, point.get("precision", ""), rounded(point[view.intensity]), rounded(point[view.rate])]
        for level, points in view.dots(kernel).items()
        for point in points
    ]


def _charts(document: AnalysisDocument, texts: Texts, moved: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the charts of each device, including those that only kernels refer to."""
    devices, kernels = document["devices"], document["kernels"]
    numbers = {*range(len(devices)), *(kernel["device"] for kernel in kernels)} - {None}
    return [
        {
            "device": number,
            "label": texts.add(
                ": ".join([f"GPU {number}", *(each["name"] or "" for each in devices[number : number + 1])])
            ),
            **_views(document, number, moved),
        }
        for number in sorted(numbers)
    ]


def _views(document: AnalysisDocument, device: int, moved: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return a device's charts by view, and which view opens first: the first with dots."""
    kernels = [kernel for kernel in document["kernels"] if kernel["device"] == device]
    places = [(x, y) for position, x, y, _ in moved if document["kernels"][position]["device"] == device]
    views = {
        view.name: chart(
            [ceiling for ceiling in document[view.ceilings] if ceiling["device"] == device],
            kernels,
            view,
            places if view is FLOP else (),
            leaves_out=True,
        )
        for view in VIEWS
    }
    opens = next((name for name, figure in views.items() if figure["levels"]), FLOP.name)
    return {"views": views, "opens": opens}


def _extent(sizes: Sequence[int] | None) -> str | None:
    """Return sizes as `ncu --csv` prints them: "(1024, 1, 1)"."""
    return None if sizes is None else f"({', '.join(map(str, sizes))})"


def _cell(value: str | None, texts: Texts) -> Cell | None:
    return None if value is None else texts.add(value)


def _label(name: str | None, texts: Texts) -> Cell | None:
    return None if name is None else texts.add(formatting.label(name))
