"""What a name means in one report: which launches have the verdict, finding, caveat or limiter, and the numbers of a quantity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ncuroof import formatting
from ncuroof.diagnosis import load_rules
from ncuroof.metrics import load_catalogue, quantity_unit
from ncuroof.present.explanations.explain import meant, names
from ncuroof.present.explanations.meanings import STALLS, every_quantity, limiter_label, load_limiters, quantity_label
from ncuroof.present.schemas.analysis import AnalysisDocument, GroupEntry
from ncuroof.present.schemas.kernels import EvidenceEntry, FindingEntry, KernelEntry

_MOST_KERNELS = 3
_MOST_EVIDENCE = 3

Telling = Callable[[KernelEntry], str]
"""Returns what to say of a kernel."""


def lines_in_report(name: str, run: AnalysisDocument) -> Iterator[str]:
    """Yield what a name means in a run; nothing for a name of which a run has no numbers, such as a term.

    Args:
        name: as `ncuroof explain` takes it.
        run: an analysis, `ncuroof.analysis/1`.
    """
    known = name if name in names() else meant(name)
    found = _having(known)
    if found is None:
        return
    has, tell = found
    groups = [(each, group) for each, group in _groups(run) if has(each)]
    files = formatting.first_of([formatting.printable(source["file"]) for source in run["sources"]], 2)
    if not groups:
        yield f"In {files}: no kernel has it."
        return
    n_launches = sum(group["n_launches"] for _, group in groups)
    total_ns = run["summary"]["duration_ns"]
    own_ns = sum(group["duration_ns"] or 0.0 for _, group in groups)
    share = f", {formatting.percent(own_ns / total_ns)} of GPU time" if total_ns and own_ns else ""
    kernels = formatting.counted(len(groups), "kernel")
    yield f"In {files}: {kernels} ({formatting.launches(n_launches)}){share}."
    groups.sort(key=lambda pair: -(pair[1]["duration_ns"] or 0.0))
    for kernel, group in groups[:_MOST_KERNELS]:
        label = formatting.printable(formatting.kernel_name(kernel))
        yield f"  {kernel['id']} {label}, {formatting.duration(group['duration_ns'])}: {tell(kernel)}"
    if len(groups) > _MOST_KERNELS:
        yield f"  and {len(groups) - _MOST_KERNELS} more"


def _groups(run: AnalysisDocument) -> Iterator[tuple[KernelEntry, GroupEntry]]:
    kernel_by_id = {kernel["id"]: kernel for kernel in run["kernels"]}
    return ((kernel_by_id[group["id"]], group) for group in run["groups"] if group["id"] in kernel_by_id)


def _having(name: str) -> tuple[Callable[[KernelEntry], bool], Telling] | None:
    """Return which kernels have what a name stands for, and what to say of one; None where no kernel can."""
    rules = load_rules()
    if name in rules.findings:
        return lambda kernel: _finding(kernel, name) is not None, lambda kernel: _of_finding(
            _finding(kernel, name), kernel
        )
    if name in rules.verdicts:
        return lambda kernel: kernel["verdict"] == name, _bound
    if name in rules.caveats:
        return lambda kernel: name in kernel["caveats"], _bound
    if name in every_quantity() or name.removeprefix(STALLS) in load_catalogue().stalls.reasons:
        quantity = name if name in every_quantity() else f"{STALLS}{name.removeprefix(STALLS)}"
        return lambda kernel: _value(kernel, quantity) is not None, lambda kernel: _of_quantity(kernel, quantity)
    if name in load_limiters():
        return lambda kernel: kernel["limiter"] == name, _bound
    return None


def _bound(kernel: KernelEntry) -> str:
    return formatting.bound_by(kernel["verdict"], limiter_label(kernel))


def _finding(kernel: KernelEntry, name: str) -> FindingEntry | None:
    return next((finding for finding in kernel["findings"] if finding["id"] == name), None)


def _of_finding(finding: FindingEntry | None, kernel: KernelEntry) -> str:
    """Return the evidence of a finding and what its fix saves at most."""
    if finding is None:
        return ""
    said = [
        f"{quantity_label(item['quantity'])} {formatting.quantity(item['value'], quantity_unit(item['quantity']))}"
        for item in _evidence(finding)
    ]
    gain_ns, duration_ns = finding["gain_ns"], kernel["duration_ns"]
    if gain_ns is not None and duration_ns:
        said.append(f"a fix saves at most {formatting.share(gain_ns / duration_ns)} of its time")
    return ", ".join(said)


def _evidence(finding: FindingEntry) -> Sequence[EvidenceEntry]:
    found: Sequence[EvidenceEntry] = finding["evidence"][:_MOST_EVIDENCE]
    return found


def _of_quantity(kernel: KernelEntry, name: str) -> str:
    return formatting.quantity(_value(kernel, name), quantity_unit(name))


def _value(kernel: KernelEntry, name: str) -> Any:
    """Return a quantity of a kernel, None where it is not known or not in the document."""
    group, _, key = name.rpartition(".")
    holder = kernel.get(group) if group else kernel
    return holder.get(key) if isinstance(holder, dict) else None
