"""Operators, modules and utilisation of the peak (MFU) as text ready to show: what was needed, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from ncuroof import formatting
from ncuroof.enums import Verdict
from ncuroof.expected.ranges import SEPARATOR
from ncuroof.present.schemas.analysis import ExpectedEntry, ModuleEntry, OperatorEntry, SummaryEntry
from ncuroof.present.sentences.model_utilisation import utilisation_sentence

_MOST_LINES = 50
_AS_RECORDED = "Counts profiled launches only: the launches that they represent may belong to other modules."


@dataclass(frozen=True, slots=True)
class OperatorLine:
    """Calls of an operator with the same shapes."""

    name: Annotated[str, "operator and shapes of its inputs"]
    id: Annotated[str, "id of its longest call's first launch, for the link"]
    module: Annotated[str, "module that calls it; the first of several, and how many more"]
    n_calls: Annotated[
        str, "number of calls, including represented ones; profiled of all, where some of these have other sizes"
    ]
    time: Annotated[str, "of all launches of all calls"]
    above: Annotated[str, "time above what needed work and compulsory bytes take at the peaks"]
    work: Annotated[str, "counted over needed work of its matrix products"]
    traffic: Annotated[str, "DRAM bytes over compulsory bytes"]
    remark: Annotated[str, "conclusions from these numbers, or empty"]


@dataclass(frozen=True, slots=True)
class ModuleLine:
    """A module, including everything nested in it."""

    name: Annotated[str, "its own NVTX range"]
    path: Annotated[str, "full path of ranges, including its own"]
    time: Annotated[str, "of all its calls"]
    above: Annotated[str, "time above what needed work and compulsory bytes take at the peaks"]
    work: Annotated[str, "counted over needed work"]
    traffic: Annotated[str, "DRAM over compulsory bytes"]


@dataclass(frozen=True, slots=True)
class Operators:
    """Expected against measured work and traffic."""

    utilisation: Annotated[str, "MFU, and where the rest of the peak went; empty where not known"]
    lines: Annotated[Sequence[OperatorLine], "most time above what is needed first"]
    n_more: Annotated[int, "operators that are not shown"]
    modules: Annotated[Sequence[ModuleLine], "the longest first"]
    modules_remark: Annotated[str, "that modules count profiled launches only, where some represent others; else empty"]


def operators(expected: ExpectedEntry | None, summary: SummaryEntry) -> Operators | None:
    """Return the page's texts for the block `expected` of a document; None where there is none.

    Args:
        expected: the document's block.
        summary: the document's.
    """
    if expected is None:
        return None
    lines = expected["operators"]
    return Operators(
        utilisation=utilisation_sentence(expected["utilisation"], summary),
        lines=[_line(operator) for operator in lines[:_MOST_LINES]],
        n_more=max(len(lines) - _MOST_LINES, 0),
        modules=[_module(module) for module in expected["modules"][:_MOST_LINES] if module["module"] is not None],
        modules_remark=_AS_RECORDED if any(call["n_represented"] != 1 for call in expected["calls"]) else "",
    )


def _line(operator: OperatorEntry) -> OperatorLine:
    modules = list(dict.fromkeys(map(_innermost, operator["modules"])))
    n_represented = f"{operator['n_represented']:.0f}"
    return OperatorLine(
        name=f"{operator['operator']} {operator['shapes']}".rstrip(),
        id=str(operator["id"]),
        module=formatting.first_of(modules, 1),
        n_calls=f"{operator['n_calls']} of {n_represented}" if operator["is_uneven"] else n_represented,
        time=formatting.duration(operator["represented_ns"]),
        above=formatting.duration(operator["above_ns"]),
        work=_times(operator["work_ratio"]),
        traffic=_times(operator["traffic_ratio"]),
        remark="; ".join(_remark(name, operator) for name in operator["remarks"]),
    )


def _innermost(module: str) -> str:
    return module.rpartition(SEPARATOR)[2]


def _remark(name: str, operator: OperatorEntry) -> str:
    if name == "other_sizes":
        return "the time includes calls of other sizes that share its kernel and grid"
    if name == "off_tensor_cores":
        asked, ran = (formatting.label(operator[precision]) for precision in ("asked_precision", "ran_precision"))
        return f"could run on {asked} cores, but ran in {ran}"
    if name == "extra_work":
        return f"does {operator['work_ratio']:.3g}× the arithmetic it needs: tile padding or recomputation"
    if name == "extra_traffic":
        cure = ": read each input once, fuse it" if operator["verdict"] == Verdict.MEMORY else ""
        return f"moves {operator['traffic_ratio']:.3g}× the bytes it must{cure}"
    return "moves only the bytes it must: only fusion with its neighbours makes it faster"


def _module(module: ModuleEntry) -> ModuleLine:
    needed, counted = module["needed_flop"], module["counted_flop"]
    compulsory, dram = module["compulsory_bytes"], module["dram_bytes"]
    path = module["module"] or ""
    return ModuleLine(
        name=_innermost(path),
        path=path,
        time=formatting.duration(module["duration_ns"]),
        above=formatting.duration(module["above_ns"]),
        work=_times(counted / needed if counted is not None and needed else None),
        traffic=_times(dram / compulsory if dram is not None and compulsory else None),
    )


def _times(ratio: float | None) -> str:
    return formatting.MISSING if ratio is None else f"{ratio:.3g}×"
