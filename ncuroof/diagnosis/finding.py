"""A finding: a cause of a kernel's time, with what to do about it and how much that saves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ncuroof.diagnosis.advice import Advice, Variant
from ncuroof.diagnosis.conditions import Condition, read_conditions
from ncuroof.metrics.families import USER
from ncuroof.metrics.formula import Formula, parse

DEFAULT = "default"
"""Key of a finding's gain for limiters without a formula of their own."""

_ROUNDING = 1.001
"""A gain that exceeds the recoverable time by less than this factor counts as equal."""


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


def read_finding(name: str, entry: Mapping[str, Any]) -> Finding:
    """Return a finding as written in `profiles/rules/*.toml`, complete (`complete_findings`).

    Raises:
        KeyError: the entry lacks its title, verdicts, advice or evidence.
        ProfileError: a formula or a condition is malformed.
    """
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


def _variant(entry: Mapping[str, Any]) -> Variant:
    fields = {name: value for name, value in entry.items() if name != "when"}
    return Variant(**fields, all_of=read_conditions(entry.get("when", ())))
