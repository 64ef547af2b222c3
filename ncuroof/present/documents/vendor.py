"""Messages of NVIDIA's own rules for a kernel, and whether they agree with its verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ncuroof.diagnosis import Rules
from ncuroof.ingest import RawReport

SAME, REFINED, DIFFERENT = "same", "refined", "different"
_SPEED_OF_LIGHT = "SOLBottleneck"
_CONTRADICTED = (
    "NVIDIA's rule compares the two Speed-of-Light totals at its own thresholds alone; the path shows the numbers that this "
    "verdict rests on."
)


def vendor_rules(reports: Iterable[RawReport]) -> pl.DataFrame:
    """Return the messages of NVIDIA's rules of all reports, with the kernel's `id` in the analysis."""
    parts, n_before = [], 0
    for report in reports:
        parts.append(report.rules.with_columns((pl.col("row") + n_before).cast(pl.UInt32).alias("id")))
        n_before += report.workloads.height
    return pl.concat(parts).select("id", "rule_id", "type", "title", "message", "speedup_frac", "scope")


def vendor_block(
    messages: Sequence[dict[str, Any]], verdict: str, path: Iterable[Mapping[str, Any]], rules: Rules
) -> dict[str, Any]:
    """Return NVIDIA's verdict and messages, whether ncuroof's verdict agrees, and why not where it does not.

    Args:
        messages: rows of `vendor_rules` for this kernel, without `id`; `rule_id` is removed from each.
        verdict: ncuroof's.
        path: rows of PATH for this kernel, which led to the verdict.
        rules: map NVIDIA's titles to verdicts, and list the differences that are refinements.
    """
    described = [{"id": message.pop("rule_id"), **message} for message in messages]
    titles = [message["title"] for message in described if message["id"] == _SPEED_OF_LIGHT]
    theirs = next((rules.vendor_verdicts[title] for title in titles if title in rules.vendor_verdicts), None)
    passed = {step["node"] for step in path if step["outcome"]}
    agreement, why = _agreement(theirs, verdict, passed, rules)
    return {"verdict": theirs, "agreement": agreement, "why": why, "rules": described}


def _agreement(theirs: str | None, ours: str, passed: Collection[str], rules: Rules) -> tuple[str | None, str | None]:
    if theirs is None:
        return None, None
    if theirs == ours:
        return SAME, None
    whys = (
        each.why
        for each in rules.vendor_refinements
        if (each.theirs, each.ours) == (theirs, ours) and (each.node is None or each.node in passed)
    )
    why = next(whys, None)
    return (DIFFERENT, _CONTRADICTED) if why is None else (REFINED, why)
