"""One kernel as a card of a few lines: its place on the roofline, why it takes its time, what to do, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ncuroof import formatting
from ncuroof.diagnosis import load_rules
from ncuroof.enums import Verdict
from ncuroof.metrics import quantity_unit
from ncuroof.present.analysed import Analysed, Record
from ncuroof.present.documents.analysis import document
from ncuroof.present.explanations.meanings import limiter_in_plain_words, quantity_label
from ncuroof.present.schemas.analysis import AnalysisDocument
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.actions import most_worth, of_what
from ncuroof.present.sentences.phases import UNLIKE, limits_sentence, strip
from ncuroof.present.sentences.remarks import doubts_sentence, flip_sentence, to_know_more
from ncuroof.present.sentences.savings import saves
from ncuroof.present.sentences.source_lines import first_place
from ncuroof.present.texts.run_summary import KernelLine, kernel_lines, notes, report_names
from ncuroof.present.view import RunView

_LEVELS = ("dram", "l2", "l1", "shared")
_PRECISIONS = ("fp64", "fp32", "fp16")
"""Those of the SMs' own pipes: a kernel that uses none of them, and no tensor cores, computes no floating-point numbers."""

_MOST_PRECISIONS = 3
_LEAST_RATE_FRAC = 0.01
"""Smaller shares of a peak are written without the rates."""
_MOST_CAUSES, _MOST_EVIDENCE = 2, 2
_N_BLOCKS = 50
"""Parts of a kernel's time that a line of blocks shows."""


@dataclass(frozen=True, slots=True)
class Card:
    """One kernel.

    Attributes:
        title: the report and the GPU.
        is_simulated: whether the report was written by ncuroof, not recorded on a GPU.
        name: of the kernel.
        time: of its launches.
        verdict: name of the verdict, for its colour.
        bound: the verdict and what limits, in words.
        rows: label and pieces of each row; a piece is not split unless it is wider than the row.
        notes: what a reader must know before trusting the numbers.
    """

    title: str
    is_simulated: bool
    name: str
    time: str
    verdict: str
    bound: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...]


def is_one_kernel(analysed: Analysed) -> bool:
    """Return whether an analysis is of one group of equal launches, of which a launch was measured."""
    return analysed.groups.height == 1 and analysed.summary.n_failed < analysed.summary.n_kernels


def card(analysed: Analysed) -> Card:
    """Return the card of an analysis of one group of launches."""
    groups = analysed.groups
    entries = document(analysed, ids=groups["id"].to_list())
    (kernel,), (line,) = entries["kernels"], kernel_lines(analysed, entries, groups)
    (group,) = groups.to_dicts()
    reports = report_names(analysed)
    rows = (
        ("needs", _least(kernel, group["n_launches"])),
        ("reached", (*_reached(kernel), *_work(kernel), *_scheduling(kernel))),
        ("over time", tuple(_over_time(kernel))),
        ("because", tuple(_because(kernel))),
        ("do", tuple(_to_do(kernel, line, entries))),
        ("sure?", tuple(_sure(kernel))),
    )
    return Card(
        title=" · ".join((formatting.first_of(reports, 1), formatting.printable(_gpu(entries, kernel)))),
        is_simulated=RunView(entries).is_simulated,
        name=" · ".join(filter(None, (line.name, ", ".join(line.differs_in)))),
        time=_times(kernel, group, line),
        verdict=kernel["verdict"],
        bound=_bound(kernel),
        rows=tuple((label, pieces) for label, pieces in rows if pieces),
        notes=tuple(
            note for note in notes(analysed, reports, entries["summary"]) if note != doubts_sentence(entries["summary"])
        ),
    )


def _gpu(entries: AnalysisDocument, kernel: KernelEntry) -> str:
    return formatting.gpu_name(entries["devices"][kernel["device"]])


def _times(kernel: KernelEntry, group: Mapping[str, Any], line: KernelLine) -> str:
    if kernel["duration_ns"] is None:
        return "duration not in the report"
    if group["n_launches"] == 1:
        return line.duration
    return "; ".join(filter(None, (f"{line.duration} for {formatting.launches(group['n_launches'])}", line.extremes)))


def _bound(kernel: KernelEntry) -> str:
    title = load_rules().verdicts[kernel["verdict"]].title
    if kernel["verdict"] == Verdict.UNKNOWN.value:
        return "limit unknown: the report lacks the counters that say it"
    if not kernel["limiter"]:
        return title
    plain, _, name = limiter_in_plain_words(kernel).partition(": ")
    return f"{title}: {plain}" + (f" ({name})" if name and name not in plain else "")


def _least(kernel: KernelEntry, n_launches: int) -> tuple[str, ...]:
    """Return the roofline time of a launch and its time above the roofline."""
    least_ns, above_ns = kernel["min_time_ns"], kernel["recoverable_ns"]
    if least_ns is None or above_ns is None:
        return ()
    which = "" if n_launches == 1 else f" of the {formatting.duration(kernel['duration_ns'])} of one launch"
    return (f"at least {formatting.duration(least_ns)}{which}; {formatting.duration(above_ns)} above the roofline",)


# ---- reached ----------------------------------------------------------------------------------------------------------------


def _reached(kernel: KernelEntry) -> Iterator[str]:
    """Yield for each memory level the bandwidth and its share of the peak."""
    for level in _LEVELS:
        found = kernel["bandwidth"].get(level)
        if found is not None and found["bytes_per_s"] is not None:
            yield f"{formatting.label(level)} {_of_peak(found, 'bytes_per_s', formatting.byte_rate)}"


def _of_peak(found: Record, key: str, write: Any) -> str:
    rate, peak = found[key], found[f"peak_{key}"]
    if peak is None:
        return str(write(rate))
    if rate < _LEAST_RATE_FRAC * peak:
        return formatting.percent(rate / peak)
    number, unit = write(peak).split(" ", 1)
    own, own_unit = write(rate).split(" ", 1)
    reached = own if own_unit == unit else f"{own} {own_unit}"
    return f"{reached} of {number} {unit} ({formatting.percent(rate / peak)})"


def _work(kernel: KernelEntry) -> Iterator[str]:
    """Yield for each precision that the kernel computes in the rate and its share of the peak, then its place on the roofline."""
    used = {name: entry for name, entry in kernel["work"].items() if entry["flop_per_s"]}
    first = sorted(used, key=lambda name: -(used[name]["frac"] or 0.0))[:_MOST_PRECISIONS]
    for name in first:
        rate = _of_peak(used[name], "flop_per_s", formatting.flop_rate)
        yield f"{formatting.label(name)} {formatting.in_operations(rate, name)}"
    known = [name for name in _PRECISIONS if name in kernel["work"]]
    if not used and known:
        in_none = f"no arithmetic in {', '.join(map(formatting.label, known))}"
        yield "no floating-point arithmetic" if len(known) == len(_PRECISIONS) else in_none
    point = next((each for each in kernel["points"] if each["precision"] == kernel["dominant_precision"]), None)
    if point is not None and point["intensity_flop_per_byte"] is not None and point["roof_frac"] is not None:
        intensity = formatting.in_operations(formatting.intensity(point["intensity_flop_per_byte"]), point["precision"])
        yield f"{intensity} at {formatting.label(point['level'])}: {formatting.percent(point['roof_frac'])} of the roof there"


def _scheduling(kernel: KernelEntry) -> Iterator[str]:
    """Yield occupancy, issue slots, and how full the GPU is."""
    occupancy, use = kernel["occupancy"], kernel["utilisation"]
    achieved, possible = occupancy.get("achieved_frac"), occupancy.get("theoretical_frac")
    if achieved is not None:
        yield f"occupancy {formatting.percent(achieved)}" + (
            "" if possible is None else f" of {formatting.percent(possible)}"
        )
    if (issue := use.get("issue")) is not None:
        yield f"issue slots {formatting.percent(issue)}"
    if kernel["bandwidth"].get("l1") is None and (l1 := use.get("l1")) is not None:
        yield f"L1/shared {formatting.percent(l1)} busy"
    if occupancy.get("waves") is not None:
        yield f"waves {formatting.quantity(occupancy['waves'], 'count')}"


def _over_time(kernel: KernelEntry) -> Iterator[str]:
    """Yield how busy the busiest unit was over the kernel's time, a block per part of it, and for how much of it what limited.

    Where the parts are alike, the verdict says it all.
    """
    if UNLIKE in kernel["caveats"] and (blocks := strip(kernel, _N_BLOCKS)):
        yield blocks
        yield limits_sentence(kernel)


# ---- why, what to do, how sure -------------------------------------------------------------------------------------------------


def _because(kernel: KernelEntry) -> Iterator[str]:
    """Yield the first causes, each with its evidence and its source line; without one, what the warps wait for most."""
    counted = most_worth(kernel["findings"])
    others = [finding for finding in kernel["findings"] if finding is not counted]
    for finding in [*([counted] if counted else []), *others][:_MOST_CAUSES]:
        evidence = [
            f"{quantity_label(item['quantity'])} {formatting.quantity(item['value'], quantity_unit(item['quantity']))}"
            for item in finding["evidence"][:_MOST_EVIDENCE]
        ]
        place = first_place(finding["where"])
        said = f"{finding['title']} ({', '.join(evidence)})" if evidence else finding["title"]
        yield f"{said}, at {place}" if place else said


def _to_do(kernel: KernelEntry, line: KernelLine, entries: AnalysisDocument) -> Iterator[str]:
    finding = most_worth(kernel["findings"])
    if finding is None:
        more = to_know_more(kernel, entries["sources"])
        if more:
            yield f"To know why, {more}"
        elif kernel["verdict"] != "unknown":
            yield "nothing that ncuroof knows saves much: move fewer bytes, compute less, or fuse it with its neighbours"
        return
    yield formatting.first_sentence(finding["advice"]).rstrip(".")
    if finding["gain_ns"] is not None and kernel["duration_ns"]:
        duration_ns = kernel["duration_ns"]
        share = formatting.share(finding["gain_ns"] / duration_ns)
        each = " of each launch" if line.n_launches > 1 else ""
        yield f"saves {saves(finding, duration_ns)}{each} ({share} {of_what(finding)})"
    elif line.gain:
        yield line.gain


def _sure(kernel: KernelEntry) -> Iterator[str]:
    said = kernel["confidence"] + " confidence" if kernel["confidence"] else ""
    flip = flip_sentence(kernel, load_rules()).rstrip(".")
    if said:
        yield f"{said}: {flip[0].lower()}{flip[1:]}" if flip else said
    if kernel["caveats"]:
        yield f"less sure for: {', '.join(map(formatting.label, kernel['caveats']))}"
