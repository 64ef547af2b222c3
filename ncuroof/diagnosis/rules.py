"""The rules of the diagnosis, read from `profiles/rules.toml`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl

from ncuroof.diagnosis.advice import Advice, Variant
from ncuroof.diagnosis.conditions import Condition, read_condition
from ncuroof.metrics.families import USER
from ncuroof.metrics.formula import Formula, parse
from ncuroof.resources import stated

VERDICT_PREFIX = "verdict:"

DEFAULT = "default"
"""Names a finding's gain for limiters that have none of their own."""

_ROUNDING = 1.001


@dataclass(frozen=True, slots=True)
class Node:
    """A question of the tree and where its answers lead: another node, or a verdict after `verdict:`."""

    id: str
    question: str
    condition: Condition
    yes: str
    no: str
    unknown: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause: when it fires, on which side it matters, what it costs, and what to do.

    Attributes:
        id: its name in the document.
        title: one line.
        group: name that a latency cause may call it by; its id unless it is one of a group.
        verdicts: it is reported for these only.
        limiters: and for these limiters only; for all where empty.
        all_of: conditions that must all hold.
        any_of: conditions of which one must hold; none where empty.
        name_pattern: regular expression that the kernel's name must match, or None.
        excluded_name_pattern: regular expression that it must not match, or None.
        gain_by_limiter: share of the duration that mending it gives back; "default" for other limiters.
        gain_basis: what that share rests on.
        waste_by_level: bytes that a memory level moved in vain.
        changes_arithmetic: mending it puts the work under another arithmetic roof.
        relieves_both_sides: its instructions are counted on both sides, so that neither stays busy without them.
        removes_work: mending it leaves out work of all kinds, so that no unit stays as busy as it is.
        removes_launch: mending it leaves out the whole launch.
        needs_more_work: its gain is per unit of work: it comes of more at once, or of the same cut finer.
        is_general: it says what to do about a busy unit whatever the cause, and stands after the causes.
        overrides_gains: it stands before all others, of which no gain can be told.
        stands_first: it stands before all others that have a gain.
        severity: where no gain can be told.
        advice: what to do, by whose code it is and what its name tells.
        lines: measures of `by_line` that tell which lines of the source it concerns, the first that is known.
        evidence: quantities to show.
    """

    id: str
    title: str
    group: str
    verdicts: tuple[str, ...]
    limiters: tuple[str, ...]
    all_of: tuple[Condition, ...]
    any_of: tuple[Condition, ...]
    name_pattern: str | None
    excluded_name_pattern: str | None
    gain_by_limiter: Mapping[str, Formula]
    gain_basis: str | None
    waste_by_level: Mapping[str, Formula]
    changes_arithmetic: bool
    relieves_both_sides: bool
    removes_work: bool
    removes_launch: bool
    needs_more_work: bool
    is_general: bool
    overrides_gains: bool
    stands_first: bool
    severity: str
    advice: Advice
    lines: tuple[str, ...]
    evidence: tuple[str, ...]

    def basis(self, kernel: Mapping[str, Any], gain_ns: float | None, label: Callable[[str], str]) -> str | None:
        """Return what a kernel's gain rests on: what was not collected that could bound it, and that it goes past the roofline.

        Args:
            kernel: its quantities, `limiter` and `recoverable_ns`.
            gain_ns: in nanoseconds; None without a gain, of which there is nothing to say.
            label: gives what people call a quantity.
        """
        if gain_ns is None:
            return None
        formula = self.gain_by_limiter.get(kernel["limiter"]) or self.gain_by_limiter[DEFAULT]
        unknown = sorted(label(name) for name in formula.quantities if kernel[name] is None)
        recoverable_ns = kernel["recoverable_ns"]
        is_beyond = recoverable_ns is not None and gain_ns > recoverable_ns * _ROUNDING
        parts = (
            self.gain_basis,
            f"not bounded by what was not collected: {', '.join(unknown)}" if unknown else None,
            "more than the time above the roofline, because the change lowers the roofline time itself"
            if is_beyond
            else None,
        )
        return "; ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Caveat:
    """A reason to trust a kernel's numbers less.

    Attributes:
        doc: what it means.
        all_of: conditions that must all hold.
        any_of: conditions of which one must hold; none where empty.
        weakens: it takes a step off the verdict's confidence.
        explained_by: caveats that are its likely cause where they hold, the likeliest first.
    """

    doc: str
    all_of: tuple[Condition, ...]
    any_of: tuple[Condition, ...]
    weakens: bool
    explained_by: tuple[str, ...]

    def holds(self) -> pl.Expr:
        """Return true, false, or null where what it asks for is missing."""
        alternatives = [pl.any_horizontal(condition.holds() for condition in self.any_of)] if self.any_of else []
        return pl.all_horizontal(*(condition.holds() for condition in self.all_of), *alternatives)

    def likely_cause(self, caveats: Collection[str]) -> str | None:
        """Return which of a kernel's other caveats is the likely cause of this one, or None."""
        return next((name for name in self.explained_by if name in caveats), None)


@dataclass(frozen=True, slots=True)
class LatencyCause:
    """What a latency-bound kernel may wait for: a finding (or group) and the limiter it stands for."""

    finding: str
    limiter: str


@dataclass(frozen=True, slots=True)
class Described:
    """A verdict's title and meaning."""

    title: str
    doc: str


@dataclass(frozen=True, slots=True)
class Refinement:
    """A verdict of ours that says more than NVIDIA's rule, and does not contradict it."""

    theirs: str
    ours: str
    why: str


@dataclass(frozen=True, slots=True)
class Rules:
    """All of `profiles/rules.toml`."""

    nodes: tuple[Node, ...]
    verdicts: Mapping[str, Described]
    latency_causes: tuple[LatencyCause, ...]
    findings: Mapping[str, Finding]
    severity: Mapping[str, float]
    outweighs: float
    outweighs_earlier: float
    occupancy_cures: Mapping[str, str]
    caveats: Mapping[str, Caveat]
    missing_quantities: tuple[str, ...]
    missing_unless_zero: Mapping[str, str]
    collect_work: str
    missing_of_shared_units: tuple[str, ...]
    vendor_verdicts: Mapping[str, str]
    vendor_refinements: tuple[Refinement, ...]

    def members(self, cause: LatencyCause) -> tuple[Finding, ...]:
        """Return the findings that a cause of latency stands for."""
        return tuple(finding for finding in self.findings.values() if finding.group == cause.finding)


@cache
def load_rules() -> Rules:
    """Return the rules that ship with ncuroof.

    Raises:
        ProfileError: `profiles/rules.toml` is malformed.
    """
    with stated("rules.toml") as raw:
        return Rules(
            nodes=tuple(_node(entry) for entry in raw["node"]),
            verdicts={name: Described(**entry) for name, entry in raw["verdict"].items()},
            latency_causes=tuple(LatencyCause(**entry) for entry in raw["latency_cause"]),
            findings={name: _finding(name, entry) for name, entry in raw["finding"].items()},
            severity=raw["severity"],
            outweighs=raw["order"]["outweighs"],
            outweighs_earlier=raw["order"]["outweighs_earlier"],
            occupancy_cures=raw["occupancy_cures"],
            caveats={name: _caveat(entry) for name, entry in raw["caveat"].items()},
            missing_quantities=tuple(raw["missing"]["quantities"]),
            missing_unless_zero=raw["missing"]["unless_zero"],
            collect_work=raw["missing"]["collect_work"],
            missing_of_shared_units=tuple(raw["missing"]["of_shared_units"]),
            vendor_verdicts=raw["vendor_verdict"],
            vendor_refinements=tuple(Refinement(**entry) for entry in raw["vendor_refinement"]),
        )


def _node(entry: Mapping[str, Any]) -> Node:
    return Node(entry["id"], entry["question"], read_condition(entry), entry["yes"], entry["no"], entry["unknown"])


def _caveat(entry: Mapping[str, Any]) -> Caveat:
    return Caveat(
        entry["doc"],
        tuple(map(read_condition, entry.get("when", ()))),
        tuple(map(read_condition, entry.get("when_any", ()))),
        entry.get("weakens", False),
        tuple(entry.get("explained_by", ())),
    )


def _variant(entry: Mapping[str, Any]) -> Variant:
    told = {name: value for name, value in entry.items() if name != "when"}
    return Variant(**told, all_of=tuple(map(read_condition, entry.get("when", ()))))


def _finding(name: str, entry: Mapping[str, Any]) -> Finding:
    by_family = {USER: entry["advice"]} | {
        key.removeprefix("advice_"): text for key, text in entry.items() if key.startswith("advice_")
    }
    variants = tuple(map(_variant, entry.get("variant", ())))
    return Finding(
        id=name,
        title=entry["title"],
        group=entry.get("group", name),
        verdicts=tuple(entry["verdicts"]),
        limiters=tuple(entry.get("limiters", ())),
        all_of=tuple(map(read_condition, entry.get("when", ()))),
        any_of=tuple(map(read_condition, entry.get("when_any", ()))),
        name_pattern=entry.get("name"),
        excluded_name_pattern=entry.get("not_name"),
        gain_by_limiter={key: parse(text) for key, text in entry.get("gain", {}).items() if text},
        gain_basis=entry.get("gain_basis"),
        waste_by_level={level: parse(text) for level, text in entry.get("waste_bytes", {}).items()},
        changes_arithmetic=entry.get("changes_arithmetic", False),
        relieves_both_sides=entry.get("relieves_both_sides", False),
        removes_work=entry.get("removes_work", False),
        removes_launch=entry.get("removes_launch", False),
        needs_more_work=entry.get("needs_more_work", False),
        is_general=entry.get("is_general", False),
        overrides_gains=entry.get("overrides_gains", False),
        stands_first=entry.get("stands_first", False),
        severity=entry.get("severity", "medium"),
        advice=Advice(by_family, variants, asks_to_collect=entry.get("asks_to_collect", False)),
        lines=tuple(entry.get("lines", ())),
        evidence=tuple(entry["evidence"]),
    )
