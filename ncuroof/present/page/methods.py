"""How the numbers of a page were obtained: what was counted, what the verdicts mean, which thresholds apply.

The names in its document are explained by the texts of `ncuroof explain`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from ncuroof import formatting
from ncuroof.diagnosis import Rules
from ncuroof.diagnosis.conditions import Condition
from ncuroof.metrics import quantity_unit
from ncuroof.present.analysed import Record
from ncuroof.present.charts.views import VIEWS, RooflineView
from ncuroof.present.documents.kernels import QUANTITY_GROUPS
from ncuroof.present.explanations.explain import explain, names
from ncuroof.present.schemas.analysis import AnalysisDocument, CeilingEntry


@dataclass(frozen=True, slots=True)
class Methods:
    """How the numbers were obtained, from the document and the rules."""

    definitions: Annotated[Sequence[tuple[str, str, str]], "kind, name and definition of each count"]
    verdicts: Annotated[Sequence[tuple[str, str]], "title and meaning of every verdict"]
    questions: Annotated[Sequence[tuple[str, str]], "questions of the decision tree, with their conditions"]
    severities: Annotated[
        Sequence[tuple[str, str]], "severity of findings, and the least share of a kernel's time for it"
    ]
    caveats: Annotated[
        Sequence[tuple[str, str, str, str]],
        "name, title and meaning of each caveat that applies, and its number of kernels",
    ]
    ceilings: Annotated[Sequence[tuple[str, str, str, str, str]], "GPU, name, value, source and definition of roofs"]
    versions: Annotated[Sequence[tuple[str, str]], "versions of ncuroof and of the document schema"]


def methods(document: AnalysisDocument, rules: Rules) -> Methods:
    """Return the methods of a document: the definitions, caveats and roofs that occur in it, and all of the rules."""
    kernels = document["kernels"]
    definitions: dict[tuple[str, str, str], None] = {}
    n_by_caveat = Counter(caveat for kernel in kernels for caveat in kernel["caveats"])
    for kernel in kernels:
        for name, work in kernel["work"].items():
            definitions["work", formatting.label(name), work["definition"]] = None
        for name, traffic in kernel["bandwidth"].items():
            definitions["traffic", formatting.label(name), traffic["definition"]] = None
        if instructions := kernel["instructions"]:
            definitions["work", "warp instructions", instructions["definition"]] = None
    names = [formatting.gpu_name(device) for device in document["devices"]]
    return Methods(
        definitions=sorted(definitions),
        verdicts=[(verdict.title, verdict.doc) for verdict in rules.verdicts.values()],
        questions=[(node.question, _condition(node.condition)) for node in rules.nodes],
        severities=[
            ("low" if name == "least" else name, formatting.threshold(value, "share"))
            for name, value in rules.severity.items()
        ],
        caveats=[
            (
                name,
                formatting.label(name),
                rules.caveats[name].doc if name in rules.caveats else "",
                formatting.counted(n, "kernel"),
            )
            for name, n in sorted(n_by_caveat.items())
        ],
        ceilings=[_ceiling(ceiling, names, view) for view in VIEWS for ceiling in document[view.ceilings]],
        versions=[("ncuroof", document["tool"]["version"]), ("document", document["schema"])],
    )


def _condition(condition: Condition) -> str:
    unit = quantity_unit(condition.quantity)
    op = formatting.operator(condition.op or "")
    return f"{condition.quantity} {op} {formatting.threshold(condition.threshold, unit)}"


def _ceiling(ceiling: CeilingEntry, names: Sequence[str], view: RooflineView) -> tuple[str, str, str, str, str]:
    write = view.write_slope if ceiling["kind"] == "bandwidth" else view.write_rate
    device = ceiling["device"]
    return (
        names[device] if device < len(names) else str(device),
        formatting.label(ceiling["name"]),
        formatting.in_operations(write(ceiling["per_s"]), ceiling["name"]),
        ceiling["source"],
        ceiling["definition"],
    )


def explained(document: AnalysisDocument) -> list[tuple[str, str]]:
    """Return each name in the document that `ncuroof explain` knows, with its explanation, sorted by name."""
    met = {name for kernel in document["kernels"] for name in _names_of(kernel)}
    return [(name, explain(name, with_files=False)) for name in sorted(met & set(names()))]


def _names_of(kernel: Record) -> Iterable[str]:
    yield from filter(None, (kernel["verdict"], kernel["limiter"], kernel["family"]))
    yield from kernel["caveats"]
    for step in kernel["path"]:
        yield step["quantity"]
    for finding in kernel["findings"]:
        yield finding["id"]
        yield from (item["quantity"] for item in finding["evidence"])
    for group in QUANTITY_GROUPS:
        yield from (f"{group}.{key}" for key, value in kernel[group].items() if value is not None)
