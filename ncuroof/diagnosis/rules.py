"""The rules of the diagnosis, read from `profiles/rules.toml`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl

from ncuroof.diagnosis.advice import Advice, Variant
from ncuroof.diagnosis.conditions import Condition, all_hold, read_condition, read_conditions
from ncuroof.diagnosis.shared_rules import complete_findings
from ncuroof.diagnosis.vendor import Refinement, VendorRule
from ncuroof.errors import ProfileError
from ncuroof.metrics.families import USER
from ncuroof.metrics.formula import Formula, parse
from ncuroof.resources import profile_file

VERDICT_PREFIX = "verdict:"

DEFAULT = "default"
"""Key of a finding's gain for limiters without a formula of their own."""

_ROUNDING = 1.001
"""A gain that exceeds the recoverable time by less than this factor counts as equal."""


_NEAR_FRAC = 0.05
"""Distance of a decision from its threshold, relative to it, within which it could have gone the other way: a choice."""


@dataclass(frozen=True, slots=True)
class Node:
    """A question of the decision tree, and where each answer leads: the id of a later node, or `verdict:` and a verdict.

    Attributes:
        near_frac: distance from the threshold, relative to it, within which the answer could have been another.
        source: why the threshold is what it is; empty where the question says it.
    """

    id: str
    question: str
    condition: Condition
    yes: str
    no: str
    unknown: str
    near_frac: float = _NEAR_FRAC
    source: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: when it fires, for which verdicts, how much fixing it saves, and what to do.

    Attributes:
        id: its name in the document.
        title: one line.
        group: the name by which a latency cause refers to it; its id unless several findings share a group.
        verdicts: reported only for kernels with one of these verdicts.
        limiters: reported only for kernels with one of these limiters; empty for any.
        all_of: conditions that must all hold.
        any_of: conditions of which at least one must hold; empty for no such requirement.
        name_pattern: regular expression that the kernel's name must match, or None.
        excluded_name_pattern: regular expression that the kernel's name must not match, or None.
        gain_by_limiter: share of the duration that fixing it saves, by limiter; "default" for all other limiters.
        gain_basis: what that share assumes.
        instead_of: findings that it replaces where all of them fire, whatever its own conditions; empty for none.
        covers: findings that say the same in general: not listed beside it, which names the limiter where they would.
        waste_by_level: unused bytes that each memory level moved.
        changes_arithmetic: the fix moves the work under another arithmetic roof.
        lowers_precision: the fix is another type, which computes fewer digits.
        relieves_both_sides: its instructions count on both sides, so fixing it relieves both.
        removes_work: the fix removes work of all kinds, so no unit's present utilisation bounds the gain.
        removes_launch: the fix removes the whole launch.
        needs_more_work: the gain is per unit of work: it takes more work per launch, or the same work in smaller blocks. Launch
            overhead, which more work per launch outweighs, does not bound it.
        is_general: advice about a busy unit whatever the cause; ranks after the causes.
        overrides_gains: comes before all other findings, and no gain of the kernel is reported.
        stands_first: comes before all other findings that have a gain.
        severity: used where the gain is unknown.
        advice: what to do, by the kernel's family and what else is known of the kernel.
        lines: `by_line` measures that locate it in the source; the first one that is known is used.
        evidence: quantities to show with it.
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
    instead_of: tuple[str, ...]
    covers: tuple[str, ...]
    waste_by_level: Mapping[str, Formula]
    changes_arithmetic: bool
    lowers_precision: bool
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
        """Return what a kernel's gain assumes, which uncollected quantities could bound it, and if it exceeds the recoverable time.

        Args:
            kernel: its quantities, `limiter` and `recoverable_ns`.
            gain_ns: None without a gain; the basis is then None too.
            label: returns the label of a quantity for people.
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
        any_of: conditions of which at least one must hold; empty for no such requirement.
        weakens: it lowers the verdict's confidence; all such caveats of a kernel lower it by one step together.
        explained_by: caveats that are its likely cause where they hold, the likeliest first.
    """

    doc: str
    all_of: tuple[Condition, ...]
    any_of: tuple[Condition, ...]
    weakens: bool
    explained_by: tuple[str, ...]

    def holds(self) -> pl.Expr:
        """Return true or false, or null where a missing quantity leaves it undecided."""
        return all_hold(self.all_of, self.any_of)

    def likely_cause(self, caveats: Collection[str]) -> str | None:
        """Return which of a kernel's other caveats is the likely cause of this one, or None."""
        return next((name for name in self.explained_by if name in caveats), None)


@dataclass(frozen=True, slots=True)
class LatencyCause:
    """What a latency-bound kernel may wait for.

    Attributes:
        finding: or group of findings.
        limiter: that it means.
        first_step: share of the duration that is within reach, if less than the finding's gain; None or null for all.
    """

    finding: str
    limiter: str
    first_step: Formula | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """The title and meaning of a verdict."""

    title: str
    doc: str


@dataclass(frozen=True, slots=True)
class Rules:
    """All of `profiles/rules.toml`.

    Attributes:
        nodes: the decision tree, parents before children.
        verdicts: titles and meanings, by verdict.
        latency_causes: what a latency-bound kernel may wait for, in the order in which they are tried.
        findings: by id.
        severity: smallest gain, as share of the duration, of "high" and "medium" findings; below "least" none is reported.
        outweighs: a general finding ranks as a cause where it saves more than this many times what any cause saves.
        outweighs_earlier: a latency cause is not the limiter where another saves more than this many times as much.
        least_without_stalls: smallest gain, as share of the duration, of a latency cause that is the limiter without stall reasons.
        occupancy_cures: what to change, by the resource that limits the resident blocks.
        caveats: by name.
        missing_quantities: what a full diagnosis uses.
        missing_unless_zero: divisor by quantity: null because of a zero divisor is not missing.
        collect_work: ncu options that collect FLOP counters.
        missing_of_shared_units: quantities that cannot be collected where the caveat `shared_slice` holds.
        vendor: what NVIDIA's SpeedOfLight rule says.
    """

    nodes: tuple[Node, ...]
    verdicts: Mapping[str, Described]
    latency_causes: tuple[LatencyCause, ...]
    findings: Mapping[str, Finding]
    severity: Mapping[str, float]
    outweighs: float
    outweighs_earlier: float
    least_without_stalls: float
    occupancy_cures: Mapping[str, str]
    caveats: Mapping[str, Caveat]
    missing_quantities: tuple[str, ...]
    missing_unless_zero: Mapping[str, str]
    collect_work: str
    missing_of_shared_units: tuple[str, ...]
    vendor: VendorRule

    def threshold(self, node: str) -> float:
        """Return the threshold of a node of the tree.

        Raises:
            ProfileError: the tree has no such node with a threshold.
        """
        for each in self.nodes:
            if each.id == node and each.condition.threshold is not None:
                return each.condition.threshold
        raise ProfileError(f"rules.toml: the tree has no node {node!r} with a threshold")

    def members(self, cause: LatencyCause) -> tuple[Finding, ...]:
        """Return the findings of a latency cause: those of its group."""
        return tuple(finding for finding in self.findings.values() if finding.group == cause.finding)


@cache
def load_rules() -> Rules:
    """Return the rules that ship with ncuroof.

    Raises:
        ProfileError: `profiles/rules.toml` is malformed.
    """
    with profile_file("rules.toml") as raw:
        return Rules(
            nodes=tuple(_node(entry) for entry in raw["node"]),
            verdicts={name: Described(**entry) for name, entry in raw["verdict"].items()},
            latency_causes=tuple(map(_latency_cause, raw["latency_cause"])),
            findings={name: _finding(name, entry) for name, entry in complete_findings(raw).items()},
            severity=raw["severity"],
            outweighs=raw["order"]["outweighs"],
            outweighs_earlier=raw["order"]["outweighs_earlier"],
            least_without_stalls=raw["order"]["least_without_stalls"],
            occupancy_cures=raw["occupancy_cures"],
            caveats={name: _caveat(entry) for name, entry in raw["caveat"].items()},
            missing_quantities=tuple(raw["missing"]["quantities"]),
            missing_unless_zero=raw["missing"]["unless_zero"],
            collect_work=raw["missing"]["collect_work"],
            missing_of_shared_units=tuple(raw["missing"]["of_shared_units"]),
            vendor=VendorRule(
                **raw["vendor"],
                verdicts=raw["vendor_verdict"],
                refinements=tuple(Refinement(**entry) for entry in raw["vendor_refinement"]),
            ),
        )


def _node(entry: Mapping[str, Any]) -> Node:
    fields = {name: value for name, value in entry.items() if name not in ("quantity", "op", "threshold")}
    return Node(**fields, condition=read_condition(entry))


def _latency_cause(entry: Mapping[str, str]) -> LatencyCause:
    first_step = entry.get("first_step")
    return LatencyCause(entry["finding"], entry["limiter"], parse(first_step) if first_step else None)


def _caveat(entry: Mapping[str, Any]) -> Caveat:
    return Caveat(
        entry["doc"],
        read_conditions(entry.get("when", ())),
        read_conditions(entry.get("when_any", ())),
        entry.get("weakens", False),
        tuple(entry.get("explained_by", ())),
    )


def _variant(entry: Mapping[str, Any]) -> Variant:
    fields = {name: value for name, value in entry.items() if name != "when"}
    return Variant(**fields, all_of=read_conditions(entry.get("when", ())))


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
        all_of=read_conditions(entry.get("when", ())),
        any_of=read_conditions(entry.get("when_any", ())),
        name_pattern=entry.get("name"),
        excluded_name_pattern=entry.get("not_name"),
        gain_by_limiter={key: parse(text) for key, text in entry.get("gain", {}).items() if text},
        gain_basis=entry.get("gain_basis"),
        instead_of=tuple(entry.get("instead_of", ())),
        covers=tuple(entry.get("covers", ())),
        waste_by_level={level: parse(text) for level, text in entry.get("waste_bytes", {}).items()},
        changes_arithmetic=entry.get("changes_arithmetic", False),
        lowers_precision=entry.get("lowers_precision", False),
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
