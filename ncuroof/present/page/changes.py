"""What a comparison adds to the page of the run after: what changed as a table, and where dots stood before as arrows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from ncuroof import formatting
from ncuroof.present.analysed import Record
from ncuroof.present.charts.figures import rounded
from ncuroof.present.charts.views import is_plottable
from ncuroof.present.schemas.comparison import ComparisonDocument, MatchEntry
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.comparison import (
    ALONE,
    Alone,
    alone,
    changed_findings,
    changed_lines,
    how_matched,
    match_name,
    moved,
    outcome,
    side,
)
from ncuroof.present.sentences.match_change import both_times, times

_AFTER = {"added", "not_recorded_before"}
"""Lists of groups without a match that are of the run after."""

_MOST_LINES = 100
_MOST_SHOWN = 8
"""Most changes above the chart; the others are folded."""

_MOST_NAME = 80


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A match that changed, or a kernel without one."""

    id: Annotated[str, "of a launch after, for the link; empty where it is of the run before"]
    name: Annotated[str, "before and after"]
    before: Annotated[str, "GPU time before"]
    after: Annotated[str, "GPU time after"]
    recoverable: Annotated[str, "time above the roofline before and after"]
    sentence: Annotated[str, "what changed, and what explains it"]
    places: Annotated[
        Sequence[str],
        "findings gone and new, then source lines at which the time changed",
    ]
    how: Annotated[str, "what it was matched by, and how sure that is; empty where that is its name and shape"]


@dataclass(frozen=True, slots=True)
class RunChanges:
    """What changed between two runs."""

    title: Annotated[str, "of the page: the run after against the one before"]
    headline: Annotated[str, "the change as a whole, or why the runs are not compared"]
    sides: Annotated[Sequence[tuple[str, str]], "before and after, each with its run"]
    remarks: Annotated[Sequence[str], "what else there is to know of the change as a whole"]
    gates: Annotated[Sequence[tuple[str, str, str]], "passed or FAILED, the gate, the reasons"]
    lines: Annotated[Sequence[ChangeLine], "what changed, the most time first"]
    folded: Annotated[
        Sequence[ChangeLine], "the changes beyond the first ones, and kernels whose times are not compared"
    ]
    fold: Annotated[str, "how many of which kind these are"]
    n_more: Annotated[int, "changes that are not shown"]


def changes(comparison: ComparisonDocument) -> RunChanges:
    """Return what the page says of a document `ncuroof.comparison/1`."""
    lines = [_matched(match, comparison) for match in moved(comparison)]
    lines += [_alone(group, key) for key in ALONE for group in comparison[key]]
    shown = lines[:_MOST_LINES]
    compared = [line for line in shown if {line.before, line.after} != {formatting.MISSING}]
    uncompared = [line for line in shown if {line.before, line.after} == {formatting.MISSING}]
    gates = [
        ("passed" if gate["has_passed"] else "FAILED", gate["gate"], "; ".join(gate["reasons"]))
        for gate in comparison["gates"]
    ]
    headline, *remarks = (f"{line[0].upper()}{line[1:]}" for line in outcome(comparison))
    before, after = comparison["before"], comparison["after"]
    return RunChanges(
        title=" against ".join(report_names(after["label"], before["label"])),
        headline=headline,
        sides=[("Before", side(before)), ("After", side(after))],
        remarks=remarks,
        gates=gates,
        lines=compared[:_MOST_SHOWN],
        folded=[*compared[_MOST_SHOWN:], *uncompared],
        fold=_fold(len(compared[_MOST_SHOWN:]), len(uncompared)),
        n_more=max(len(lines) - _MOST_LINES, 0),
    )


def _fold(n_more: int, n_uncompared: int) -> str:
    """Return how many changes are folded, and for how many of them times are not compared."""
    parts = [f"{formatting.counted(n_more, 'more change')}"] if n_more else []
    if n_uncompared:
        parts.append(f"{formatting.counted(n_uncompared, 'kernel')} whose times are not compared")
    return " and ".join(parts)


def report_names(*labels: str) -> list[str]:
    """Return the names of runs without their folders, unless these are what tells them apart."""
    names = [label.replace("\\", "/").rpartition("/")[2] for label in labels]
    return [formatting.printable(name) for name in (names if len(set(names)) == len(names) else labels)]


def arrows(comparison: ComparisonDocument | None, kernels: Sequence[KernelEntry]) -> list[list[Any]]:
    """Return position in the document, intensity and rate before (DRAM), and whether the time changed, of matched kernels."""
    if comparison is None:
        return []
    position_by_id = {kernel["id"]: position for position, kernel in enumerate(kernels)}
    found = []
    for match in comparison["matches"]:
        if len(match["before"]) != 1 or len(match["after"]) != 1:
            continue
        old, ids = match["before"][0], match["after"][0]["ids"]
        place = old["intensity_flop_per_byte"], old["flop_per_s"]
        if ids and ids[0] in position_by_id and is_plottable(*place):
            found.append([position_by_id[ids[0]], *map(rounded, place), match["is_significant"]])
    return found


def changed_positions(comparison: ComparisonDocument | None, kernels: Sequence[KernelEntry]) -> list[int]:
    """Return the position in the document of one launch of each kernel that changed or was added."""
    if comparison is None:
        return []
    position_by_id = {kernel["id"]: position for position, kernel in enumerate(kernels)}
    groups = [*(group for match in moved(comparison) for group in match["after"]), *comparison["added"]]
    firsts = {group["ids"][0] for group in groups if group["ids"]}
    return sorted(position_by_id[first] for first in firsts if first in position_by_id)


def _matched(match: MatchEntry, comparison: ComparisonDocument) -> ChangeLine:
    ids = match["after"][0]["ids"]
    both = times(match, comparison)
    was, became = both or [formatting.MISSING] * 2
    return ChangeLine(
        id=str(ids[0]) if ids else "",
        name=formatting.shortened(match_name(match), _MOST_NAME),
        before=was,
        after=became,
        recoverable=both_times(match["recoverable_ns"]) if both else formatting.MISSING,
        sentence=match["sentence"],
        places=(*changed_findings(match), *changed_lines(match)),
        how=how_matched(match),
    )


def _alone(group: Record, key: Alone) -> ChangeLine:
    side = 1 if key in _AFTER else 0
    times = [formatting.MISSING, formatting.MISSING]
    times[side] = formatting.duration(group["duration_ns"])
    name = formatting.kernel_name(group, _MOST_NAME)
    return ChangeLine(
        id=str(group["ids"][0]) if side and group["ids"] else "",
        name=name,
        before=times[0],
        after=times[1],
        recoverable=formatting.MISSING,
        sentence=f"{ALONE[key]}: {alone(group, key)}",
        places=(),
        how="",
    )
