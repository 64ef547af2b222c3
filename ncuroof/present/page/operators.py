"""Operators, modules and utilisation of the peak (MFU) as text ready to show: what was needed, and what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from ncuroof.expected.ranges import SEPARATOR
from ncuroof.present import format as text
from ncuroof.present.analysed import Record
from ncuroof.present.sentences.model_utilisation import utilisation_sentence
from ncuroof.words import Verdict

_MOST_LINES = 50
_MUCH_TRAFFIC = 1.5
"""Ratio of DRAM to compulsory bytes from which traffic is remarked on: less is padding, write-backs and the like (a choice)."""
_SOME_BYTES = 1e6
"""Least excess bytes of a call for that remark: tables, arguments and neighbours in L2 move as much (a choice)."""
_MUCH_WORK = 1.1
"""Ratio of counted to needed work from which the excess is remarked on."""
_AS_RECORDED = "Counts profiled launches only: the launches that they represent may belong to other modules."
_AS_IT_MUST = 1.2
"""Up to this ratio of DRAM bytes to compulsory bytes, a call moves only what it must."""


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


def operators(expected: Record | None, weighting: Record | None = None) -> Operators | None:
    """Return the page's texts for the block `expected` of a document; None where there is none.

    Args:
        expected: the document's block.
        weighting: of the document's summary, with a counting run.
    """
    if expected is None:
        return None
    lines = sorted(_by_shapes(expected["calls"]).values(), key=lambda calls: -(_above_ns(calls) or 0.0))
    return Operators(
        utilisation=utilisation_sentence(expected["utilisation"], weighting),
        lines=[_line(calls) for calls in lines[:_MOST_LINES]],
        n_more=max(len(lines) - _MOST_LINES, 0),
        modules=[_module(module) for module in expected["modules"][:_MOST_LINES] if module["module"] is not None],
        modules_remark=_AS_RECORDED if any(call["n_represented"] != 1 for call in expected["calls"]) else "",
    )


def _by_shapes(calls: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    groups: dict[tuple[str, str], list[Record]] = {}
    for call in calls:
        groups.setdefault((call["operator"], _shapes(call)), []).append(call)
    return groups


def _shapes(call: Record) -> str:
    sizes: str = call["range"].partition("sizes = ")[2].partition(", input_op_ids")[0]
    return sizes.replace(", []", "")


def _line(calls: Sequence[Record]) -> OperatorLine:
    modules = list(dict.fromkeys(_innermost(call["module"]) for call in calls if call["module"]))
    longest = max(calls, key=lambda call: call["duration_ns"] or 0.0)
    n_calls = sum(call["n_represented"] for call in calls)
    return OperatorLine(
        name=f"{calls[0]['operator']} {_shapes(calls[0])}".rstrip(),
        id=str(longest["ids"][0]),
        module=(modules[0] if modules else "") + (f" and {len(modules) - 1} more" if len(modules) > 1 else ""),
        n_calls=f"{len(calls)} of {n_calls:.0f}" if any(call["is_uneven"] for call in calls) else f"{n_calls:.0f}",
        time=text.duration(_sum(calls, "represented_ns")),
        above=text.duration(_above_ns(calls)),
        work=_times(_ratio(calls, "counted_flop", "needed_flop")),
        traffic=_times(_ratio(calls, "dram_bytes", "compulsory_bytes")),
        remark="; ".join(_remarks(calls)),
    )


def _innermost(module: str) -> str:
    return module.rpartition(SEPARATOR)[2]


def _remarks(calls: Sequence[Record]) -> Iterator[str]:
    first = calls[0]
    if any(call["is_uneven"] for call in calls):
        yield "the time includes calls of other sizes that share its kernel and grid"
    work, traffic = _ratio(calls, "counted_flop", "needed_flop"), _ratio(calls, "dram_bytes", "compulsory_bytes")
    asked, ran = first["asked_precision"], first["ran_precision"]
    if asked and ran and asked.startswith("tensor_") and not ran.startswith("tensor_"):
        yield f"could run on {text.label(asked)} cores, but ran in {text.label(ran)}"
    if work is not None and work >= _MUCH_WORK:
        yield f"does {work:.3g}× the arithmetic it needs: tile padding or recomputation"
    is_memory_bound = first["verdict"] == Verdict.MEMORY
    if traffic is not None and traffic >= _MUCH_TRAFFIC and _moved_in_vain(calls) >= _SOME_BYTES:
        yield f"moves {traffic:.3g}× the bytes it must" + (": read each input once, fuse it" if is_memory_bound else "")
    elif is_memory_bound and not first["needed_flop"] and traffic is not None and traffic <= _AS_IT_MUST:
        yield "moves only the bytes it must: only fusion with its neighbours makes it faster"


def _module(module: Record) -> ModuleLine:
    needed, counted = module["needed_flop"], module["counted_flop"]
    compulsory, dram = module["compulsory_bytes"], module["dram_bytes"]
    return ModuleLine(
        name=_innermost(module["module"]),
        path=module["module"],
        time=text.duration(module["duration_ns"]),
        above=text.duration(module["above_ns"]),
        work=_times(counted / needed if counted is not None and needed else None),
        traffic=_times(dram / compulsory if dram is not None and compulsory else None),
    )


def _above_ns(calls: Sequence[Record]) -> float | None:
    known = [call for call in calls if call["represented_ns"] is not None and call["roofline_ns"] is not None]
    above = (call["represented_ns"] - call["work_weight"] * call["roofline_ns"] for call in known)
    return sum(max(each, 0.0) for each in above) if known else None


def _ratio(calls: Sequence[Record], above: str, below: str) -> float | None:
    """Return the ratio of two weighted sums over the calls where both are known; None where there are none."""
    known = [call for call in calls if call[above] is not None and call[below]]
    over, under = (sum(call["work_weight"] * call[key] for call in known) for key in (above, below))
    return over / under if under else None


def _moved_in_vain(calls: Sequence[Record]) -> float:
    """Return the largest excess of DRAM bytes over compulsory bytes of any call."""
    known = (call for call in calls if call["dram_bytes"] is not None and call["compulsory_bytes"] is not None)
    return max((float(call["dram_bytes"] - call["compulsory_bytes"]) for call in known), default=0.0)


def _sum(calls: Sequence[Record], key: str) -> float | None:
    known = [call[key] for call in calls if call[key] is not None]
    return sum(known) if known else None


def _times(ratio: float | None) -> str:
    return text.MISSING if ratio is None else f"{ratio:.3g}×"
