"""Evidence of a brief: numbers with an id by which they are found again in the document `ncuroof.analysis/1`.

The id `k12.access.load_bytes_per_sector` is the quantity `access.load_bytes_per_sector` of the kernel with the id 12. The document
has it in the kernel's entry (`kernels[12].access.load_bytes_per_sector`), or among the kernel's decisions and findings if it is a
property of the GPU. Without its beginning, `ncuroof explain` knows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ncuroof.diagnosis import load_rules
from ncuroof.enums import Verdict
from ncuroof.errors import UnknownNameError
from ncuroof.metrics import quantity_unit
from ncuroof.present.analysed import Document
from ncuroof.present.explanations.meanings import columns_by_name, every_quantity
from ncuroof.present.schemas.kernels import FindingEntry, KernelEntry, StepEntry

EVIDENCE_ID = re.compile(r"k(?P<kernel>0|[1-9][0-9]{0,8})\.(?P<quantity>[a-z0-9_]+(?:\.[a-z0-9_]+){0,5})")
"""Matches the whole id of a number: the kernel's id and the quantity's name."""

_BY_SHARE = ("utilisation", "stalls")
"""Groups that name the limiter of a kernel as a quantity: `utilisation.dram`, `stalls.long_scoreboard`."""

_CHECK = "check."
"""What the names of quantities begin with that ask whether a launch can be judged."""

_PATH = "path."
"""What the id of a decision's own number begins with, after the kernel."""

_KEYS = {"roofline.min_time_frac": "min_time_frac"}
"""Quantities that a kernel's entry has under another key."""


def evidence(kernel: KernelEntry, quantity: str, value: float | None = None) -> Document | None:
    """Return a number of a kernel as evidence: id `e`, value `v` and unit `u`; None where it is not known.

    Args:
        kernel: an entry of the document.
        quantity: its name.
        value: what the entry says elsewhere that it is; by default it is looked up.
    """
    known = quantity_of(kernel, quantity) if value is None else value
    if not isinstance(known, (int, float)) or isinstance(known, bool):
        return None
    return {"e": f"k{kernel['id']}.{quantity}", "v": known, "u": unit_of(quantity)}


def unit_of(quantity: str) -> str:
    """Return the unit of a quantity, or of a column of the table of kernels such as `bandwidth.dram.frac`."""
    quantity = next(
        (node.condition.quantity for node in load_rules().nodes if quantity == f"{_PATH}{node.id}"), quantity
    )
    if quantity in every_quantity() or quantity.startswith("stalls."):
        return quantity_unit(quantity)
    column = columns_by_name().get(quantity)
    return (column.unit if column is not None else None) or quantity_unit(quantity)


def limiter_evidence(kernel: KernelEntry) -> Document | None:
    """Return how busy the limiter is, or how much of their time warps wait for it; None where no quantity has its name."""
    named = (f"{group}.{kernel['limiter']}" for group in _BY_SHARE)
    return next(filter(None, (evidence(kernel, name) for name in named)), None) if kernel["limiter"] else None


def decisions(kernel: KernelEntry) -> list[Document]:
    """Return the decisions of a kernel's path that a number made, the closest first: with threshold `t` and distance `d`.

    The distance is by which share of the threshold the number would have to change for the other answer. A decision without
    distance asks whether something is known at all. One that was made for equal launches together has the number of these, with the
    id of the decision: `k12.path.busy_enough`.
    """
    asks_for_data = kernel["verdict"] in (Verdict.OVERHEAD, Verdict.UNKNOWN)
    steps = [
        step
        for step in kernel["path"]
        if step["margin_frac"] is not None
        and step["value"] is not None
        and (asks_for_data or not step["quantity"].startswith(_CHECK))
    ]
    found = []
    for step in sorted(steps, key=lambda step: abs(step["margin_frac"] or 0.0)):
        number = evidence(kernel, step["quantity"], step["value"])
        if number is not None:
            if quantity_of(kernel, step["quantity"]) != step["value"]:
                number["e"] = f"k{kernel['id']}.{_PATH}{step['node']}"
            found.append({**number, "op": _operator(step["op"]), "t": step["threshold"], "d": step["margin_frac"]})
    return found


def _operator(op: str) -> str:
    return op.removeprefix("known ")


def finding_evidence(kernel: KernelEntry, finding: FindingEntry) -> Iterator[Document]:
    """Yield the evidence of a finding, numbers with a threshold in its rule first."""
    rule = load_rules().findings.get(finding["id"])
    conditions = () if rule is None else (*rule.all_of, *rule.any_of)
    by_quantity: Mapping[str, Any] = {each.quantity: each for each in reversed(conditions) if each.threshold}
    shown = sorted(finding["evidence"], key=lambda each: each["quantity"] not in by_quantity)
    for each in shown:
        number = evidence(kernel, each["quantity"], each["value"])
        if number is None:
            continue
        condition = by_quantity.get(each["quantity"])
        yield number if condition is None else {**number, "op": condition.op, "t": condition.threshold}


def quantity_of(kernel: KernelEntry, quantity: str) -> Any:
    """Return a quantity of a kernel's entry, or the number of a decision of its path; None if it is not known there."""
    if quantity.startswith(_PATH):
        node = quantity.removeprefix(_PATH)
        return next((step["value"] for step in kernel["path"] if step["node"] == node), None)
    parts = _KEYS.get(quantity, quantity).split(".")
    found: Any = kernel
    for part in parts:
        found = found.get(part) if isinstance(found, Mapping) else None
    return _stated(kernel, quantity) if found is None else found


def _stated(kernel: KernelEntry, quantity: str) -> Any:
    """Return a quantity that only the decisions or findings of a kernel state, such as the number of SMs; None if none does."""
    steps: Sequence[StepEntry] = kernel["path"]
    stated = (*steps, *(each for finding in kernel["findings"] for each in finding["evidence"]))
    return next((each["value"] for each in stated if each["quantity"] == quantity), None)


def parsed(name: str) -> tuple[int, str]:
    """Return the kernel's id and the quantity that the id of a number consists of.

    Raises:
        UnknownNameError: it is no such id.
    """
    found = EVIDENCE_ID.fullmatch(name)
    if found is None:
        raise UnknownNameError(
            f"no evidence {name!r:.80}", hint="name a kernel and a quantity, as in k12.access.load_bytes_per_sector"
        )
    return int(found["kernel"]), found["quantity"]
