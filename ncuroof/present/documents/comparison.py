"""Builds the documents `ncuroof.comparison/1` and `ncuroof.history/1`: numbers in base units, None for what is not known.

A comparison has a sentence per match. A history has many runs, and the time of each kernel in every one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

import polars as pl

from ncuroof.comparison import (
    Comparison,
    CountedOnly,
    Delta,
    FindingChange,
    GateResult,
    LineChange,
    Outcome,
    Run,
    are_of_other_steps,
    matched_change,
    n_units,
    run_change,
    run_obstacle,
    steps_remark,
    total_ns,
    unclear_ns,
)
from ncuroof.comparison.history import History
from ncuroof.diagnosis import load_rules
from ncuroof.present.documents.json_text import TOOL, json_text
from ncuroof.present.schemas.comparison import (
    ComparisonDocument,
    CountedEntry,
    FindingChangeEntry,
    FindingChangesEntry,
    GateEntry,
    HistoryDocument,
    LineChangeEntry,
    MatchedGroupEntry,
    MatchEntry,
    PlaceEntry,
    RunEntry,
    UnrecordedGroupEntry,
)
from ncuroof.present.sentences.match_change import change_sentence, is_launched_otherwise
from ncuroof.present.sentences.source_lines import callers

SCHEMA = "ncuroof.comparison/1"

HISTORY_SCHEMA = "ncuroof.history/1"


def comparison_document(comparison: Comparison, results: Sequence[GateResult] = ()) -> ComparisonDocument:
    """Return the document of a comparison and its gates; matches with the largest change of time first (see `_order`)."""
    is_comparable = comparison.comparable.is_time_comparable
    of_run, of_matched = (
        change(comparison) if is_comparable else (None, None) for change in (run_change, matched_change)
    )
    runs = comparison.before, comparison.after
    matching = comparison.matching
    moved = [delta for delta in comparison.deltas if is_comparable and delta.is_significant]
    return {
        "schema": SCHEMA,
        "tool": TOOL,
        "is_chosen": comparison.is_chosen,
        "comparable": {
            "time": is_comparable,
            "reasons": list(comparison.comparable.reasons),
            "remarks": [*comparison.comparable.remarks, *filter(None, [steps_remark(*runs)])],
        },
        "before": _run(
            comparison.before, unclear_ns(comparison.before, matching.not_recorded_before, comparison.after)
        ),
        "after": _run(comparison.after, unclear_ns(comparison.after, matching.not_recorded_after, comparison.before)),
        "summary": {
            "duration_change_frac": of_run[0],
            "noise_frac": of_run[1],
            "obstacle": run_obstacle(comparison) if is_comparable else None,
            "matched_change_frac": of_matched[0],
            "matched_noise_frac": of_matched[1],
            "n_matches": len(comparison.deltas),
            "n_faster": sum((delta.change_frac or 0) < 0 for delta in moved),
            "n_slower": sum((delta.change_frac or 0) > 0 for delta in moved),
            "n_ambiguous": sum(
                is_comparable and delta.outcome is Outcome.AMBIGUOUS and not delta.is_counted_otherwise
                for delta in comparison.deltas
            ),
            "n_unknown": sum(delta.change_frac is None and delta.obstacle is None for delta in comparison.deltas),
            "n_at_other_clocks": sum(delta.obstacle is not None for delta in comparison.deltas),
            "n_counted_otherwise": sum(
                is_comparable and delta.is_counted_otherwise and not delta.is_significant for delta in comparison.deltas
            ),
            "n_added": len(matching.added),
            "n_removed": len(matching.removed),
            "n_not_recorded_before": len(matching.not_recorded_before),
            "n_not_recorded_after": len(matching.not_recorded_after),
            "is_of_other_steps": are_of_other_steps(*runs),
            "is_per_step": n_units(*runs) != (1, 1),
        },
        "matches": [_match(delta, comparison, is_comparable=is_comparable) for delta in _in_order(comparison)],
        "added": [_group(comparison.after, group) for group in matching.added],
        "removed": [_group(comparison.before, group) for group in matching.removed],
        "not_recorded_before": [_counted_only(comparison.after, each) for each in matching.not_recorded_before],
        "not_recorded_after": [_counted_only(comparison.before, each) for each in matching.not_recorded_after],
        "candidates": [
            {
                "before": _group(comparison.before, each.before),
                "after": _group(comparison.after, each.after),
                "pair": each.pair,
                "why": list(each.why),
            }
            for each in matching.candidates
        ],
        "gates": [cast("GateEntry", asdict(result)) for result in results],
    }


def _in_order(comparison: Comparison) -> Sequence[Delta]:
    """Return the matches: as the user chose them, else the largest change of time first."""
    return comparison.deltas if comparison.is_chosen else sorted(comparison.deltas, key=_order)


def _order(delta: Delta) -> tuple[bool, float]:
    """Return the sort key of a match: changes beyond measurement noise first, then the largest change of time."""
    was, became = delta.duration_ns
    moved = abs((became or 0.0) - (was or 0.0))
    return (not (delta.is_significant or delta.is_counted_otherwise), -moved)


def _run(run: Run, unclear: float | None) -> RunEntry:
    values = {
        "label": run.label,
        **{name: _plain(getattr(run.setup, name)) for name in run.setup.__slots__},
        "n_kernels": run.n_kernels,
        "n_failed": run.n_failed,
        "duration_ns": total_ns(run),
        "step_ns": run.step_ns,
        "idle_frac": run.idle_frac,
        "is_counted": run.is_counted,
        "not_recorded_ns": run.not_recorded_ns,
        "n_launches": int(run.groups["n_launches"].sum()),
        "n_not_recorded": sum(each.n_launches for each in run.unprofiled),
        "steps": run.steps,
        "n_steps": run.n_steps,
        "damage": list(run.damage),
        "unclear_ns": unclear,
    }
    return cast("RunEntry", values)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _match(delta: Delta, comparison: Comparison, *, is_comparable: bool) -> MatchEntry:
    are_counted = comparison.before.is_counted, comparison.after.is_counted
    return {
        "before": [_group(comparison.before, group) for group in delta.match.before],
        "after": [_group(comparison.after, group) for group in delta.match.after],
        "how": delta.match.how.value,
        "sureness": delta.match.sureness.value,
        "why": list(delta.match.why),
        "sentence": change_sentence(delta, is_time_comparable=is_comparable, are_counted=are_counted),
        "obstacle": delta.obstacle,
        "outcome": (delta.outcome if is_comparable else Outcome.UNKNOWN).value,
        "n_to_settle": delta.n_to_settle if is_comparable else None,
        "code": delta.code.value,
        "code_changes": [
            {"what": each.what, "before": each.before, "after": each.after, "sentence": each.sentence}
            for each in delta.code_changes
        ],
        "is_significant": delta.is_significant and is_comparable,
        "change_frac": delta.change_frac if is_comparable else None,
        "noise_frac": delta.noise_frac if is_comparable else None,
        "duration_ns": list(delta.duration_ns),
        "mean_ns": list(delta.mean_ns),
        "counted_ns": None if delta.counted_ns is None else list(delta.counted_ns),
        "is_counted_otherwise": delta.is_counted_otherwise and is_comparable,
        "n_launches": list(delta.n_launches),
        "is_launched_otherwise": is_launched_otherwise(delta, are_counted),
        "is_same_work_in_all": delta.is_same_work_in_all,
        "work_of": delta.work[0] if delta.work else None,
        "work_ratio": delta.work[1] if delta.work else None,
        "verdict": list(delta.verdicts),
        "limiter": list(delta.limiters),
        "recoverable_ns": list(delta.recoverable_ns),
        "roof_frac": list(delta.roof_frac),
        "changes": [
            {
                "quantity": change.quantity,
                "kind": change.kind,
                "before": change.before,
                "after": change.after,
                "explains": change.explains,
                "accounts_for_frac": change.accounts_for_frac,
                "because": [
                    {"quantity": name, "before": was, "after": became} for name, _, was, became in change.because
                ],
            }
            for change in delta.changes
        ],
        "lines": [_line(change) for change in delta.lines if is_comparable],
        "place": _place(delta, comparison.after),
        "findings": None if delta.findings is None else _findings(delta.findings),
    }


def _findings(change: FindingChange) -> FindingChangesEntry:
    titles = load_rules().findings

    def entries(found: Mapping[str, float | None]) -> list[FindingChangeEntry]:
        return [
            {"id": name, "title": titles[name].title if name in titles else name, "gain_frac": gain}
            for name, gain in found.items()
        ]

    return {"gone": entries(change.gone), "new": entries(change.new)}


def _line(change: LineChange) -> LineChangeEntry:
    return {
        "file": change.file,
        "line": list(change.lines),
        "text": change.text,
        "callers": callers(change.callers),
        "time_ns": list(change.time_ns),
    }


def _place(delta: Delta, after: Run) -> PlaceEntry | None:
    """Return the line of the run after whose time grew most, else the one with the most samples; None where none is known."""
    for change in delta.lines:
        line = change.lines[1]
        if line is not None and change.time_ns[1] > change.time_ns[0]:
            return _at(change.file, line, change.text, change.callers)
    if after.lines.is_empty():
        return None
    rows = after.lines.filter(pl.col("group").is_in(list(delta.match.after)), pl.col("line") > 0)
    if rows.is_empty():
        return None
    most = rows.sort(pl.col("frac") * pl.col("n_samples"), descending=True, maintain_order=True).row(0, named=True)
    return _at(most["file"], most["line"], most["text"], most["callers"])


def _at(file: str, line: int, text: str | None, called: str | None) -> PlaceEntry:
    return {"file": file, "line": line, "text": text, "callers": callers(called)}


def _counted_only(run: Run, found: CountedOnly) -> UnrecordedGroupEntry:
    """Return a group of a run, and what the other run counted of it."""
    counted = {**asdict(found.launches), "is_same_shape": found.is_same_shape}
    plain = {key: _plain(value) for key, value in counted.items()}
    return {**_group(run, found.group), "counted": cast("CountedEntry", plain)}


def _group(run: Run, group: int) -> MatchedGroupEntry:
    row = run.groups.row(group, named=True)
    work, moved, mean_ns = row["work.flop"], row["traffic_bytes.dram"], row["mean_ns"]
    return {
        "ids": list(row["ids"]),
        "name": row["name"],
        "short_name": row["short_name"],
        "grid": row["grid"],
        "block": row["block"],
        "range": row["range"],
        "n_launches": row["n_launches"],
        "duration_ns": row["duration_ns"],
        "verdict": row["verdict"],
        "limiter": row["limiter"],
        "intensity_flop_per_byte": work / moved if work is not None and moved else None,
        "flop_per_s": 1e9 * work / mean_ns if work is not None and mean_ns else None,
    }


def history_json(found: History) -> str:
    """Return the document of a history as JSON."""
    return json_text(history_document(found))


def history_document(found: History) -> HistoryDocument:
    """Return the document `ncuroof.history/1`; trends that moved the most time first."""
    return {
        "schema": HISTORY_SCHEMA,
        "tool": TOOL,
        "runs": [
            {
                "label": run.label,
                "gpus": list(run.setup.gpus),
                "duration_ns": total_ns(run),
                "n_kernels": run.n_kernels,
                "damage": list(run.damage),
            }
            for run in found.runs
        ],
        "comparable": [
            {
                "time": step.comparable.is_time_comparable,
                "reasons": list(step.comparable.reasons),
                "obstacle": run_obstacle(step) if step.comparable.is_time_comparable else None,
            }
            for step in found.steps
        ],
        "trends": [
            {
                "name": trend.name,
                "mean_ns": trend.mean_ns,
                "change_frac": trend.change_frac,
                "jumps": [{"run": run, "change_frac": change} for run, change in sorted(trend.jumps.items())],
            }
            for trend in found.trends
        ],
    }
