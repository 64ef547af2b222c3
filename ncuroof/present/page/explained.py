"""Explanations of the names in a document, for the page: the texts of `ncuroof explain`."""

from __future__ import annotations

from collections.abc import Iterable

from ncuroof.present.analysed import Record
from ncuroof.present.documents.kernels import QUANTITY_GROUPS
from ncuroof.present.explanations.explain import explain, names


def explained(document: Record) -> list[tuple[str, str]]:
    """Return each name in the document that `ncuroof explain` knows, with its explanation, sorted by name."""
    met = {name for kernel in document["kernels"] for name in _names_of(kernel)}
    return [(name, explain(name)) for name in sorted(met & set(names()))]


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
