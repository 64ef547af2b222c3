"""The rules of the diagnosis, read from `profiles/rules.toml` and `profiles/rules/`.

Findings share what would else be stated twice: bases, kernels with a name, one family's advice for another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl

from ncuroof.diagnosis.conditions import Condition, all_hold, read_condition, read_conditions
from ncuroof.diagnosis.finding import Finding, read_finding
from ncuroof.diagnosis.vendor import Refinement, VendorRule
from ncuroof.errors import ProfileError
from ncuroof.metrics.formula import Formula, parse
from ncuroof.resources import profile_file, read_entries

_FILE = "rules.toml"

VERDICT_PREFIX = "verdict:"


_NEAR_FRAC = 0.05
"""Distance of a decision from its threshold, relative to it, within which it could have gone the other way: a choice."""

_BASE, _KERNELS, _SAME_ADVICE, _VARIANT, _STALL = "base", "kernels", "same_advice", "variant", "stall"
_NAME_BY_KERNELS = {_KERNELS: "name", "not_kernels": "not_name"}
"""Keys of a finding that refer to named kernels, and the keys that they stand for."""

_ADVICE, _FROM_PYTORCH = "advice_", "_from_pytorch"
_PLACEHOLDER = "$stall"
_REMARK = "remark"


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
    """All of `profiles/rules.toml` and `profiles/rules/`.

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
    with profile_file(_FILE) as raw:
        return Rules(
            nodes=tuple(read_entries(_FILE, "node", _by_id(raw["node"]), _node).values()),
            verdicts={name: Described(**entry) for name, entry in raw["verdict"].items()},
            latency_causes=tuple(map(_latency_cause, raw["latency_cause"])),
            findings=read_entries(_FILE, "finding", complete_findings(raw), read_finding),
            severity=raw["severity"],
            outweighs=raw["order"]["outweighs"],
            outweighs_earlier=raw["order"]["outweighs_earlier"],
            least_without_stalls=raw["order"]["least_without_stalls"],
            occupancy_cures=raw["occupancy_cures"],
            caveats=read_entries(_FILE, "caveat", raw["caveat"], lambda _, entry: _caveat(entry)),
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


def _by_id(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {node["id"]: node for node in nodes}


def _node(_: str, entry: Mapping[str, Any]) -> Node:
    fields = {name: value for name, value in entry.items() if name != "condition"}
    condition = read_condition(entry["condition"])
    if condition.op is None:
        raise ProfileError(f"expected a comparison with a number, found {str(condition)!r}")
    return Node(**fields, condition=condition)


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


def complete_findings(raw: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the findings by id, as they would stand in `profiles/rules.toml` if nothing in it were shared.

    A finding with `base` has all keys of that base that it does not state itself, and the base's variants before its own; in a
    base, `$stall` stands for the finding's `stall`. In a variant, `kernels` stands for the keys of the named kernels that it does
    not state itself; in a finding, for their name (`not_kernels`: the name that the finding leaves out). Bases and named kernels
    may refer to others. `same_advice` gives a family the advice of another one, and `advice_<family>_from_pytorch` becomes a
    variant after all others.

    Args:
        raw: the parsed file.

    Raises:
        ProfileError: what an entry refers to does not exist, or a base asks for a `stall` that the finding does not state.
    """
    return read_entries(
        "rules.toml", "finding", raw["finding"], lambda _, entry: _complete(entry, raw[_BASE], raw[_KERNELS])
    )


def _complete(entry: Mapping[str, Any], bases: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    whole = _with_base(entry, bases)
    for shared, key in _NAME_BY_KERNELS.items():
        if shared in whole:
            whole[key] = _with_kernels(named[whole.pop(shared)], named)["name"]
    for family, other in whole.pop(_SAME_ADVICE, {}).items():
        whole.setdefault(_ADVICE + family, whole[_ADVICE + other])
    variants = [_with_kernels(variant, named) for variant in whole.pop(_VARIANT, ())]
    for key in [key for key in whole if key.startswith(_ADVICE) and key.endswith(_FROM_PYTORCH)]:
        family = key.removeprefix(_ADVICE).removesuffix(_FROM_PYTORCH)
        variants.append({"family": family, "is_from_pytorch": True, "advice": whole.pop(key)})
    stall = whole.pop(_STALL, None)
    return {**{key: _filled(value, stall) for key, value in whole.items()}, _VARIANT: variants}


def _with_base(entry: Mapping[str, Any], bases: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with what its base and the base's bases say, and the variants of all of them, its own last."""
    base = _with_base(bases[entry[_BASE]], bases) if _BASE in entry else {}
    variants = [*base.get(_VARIANT, ()), *entry.get(_VARIANT, ())]
    return {key: value for key, value in {**base, **entry, _VARIANT: variants}.items() if key != _BASE}


def _with_kernels(entry: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a variant, or of named kernels, with those of the kernels that it refers to."""
    kernels = _with_kernels(named[entry[_KERNELS]], named) if _KERNELS in entry else {}
    return {key: value for key, value in {**kernels, **entry}.items() if key not in {_KERNELS, _REMARK}}


def _filled(value: Any, stall: str | None) -> Any:
    """Return a value of a TOML file with the name of a stall reason in place of `$stall`."""
    if isinstance(value, Mapping):
        return {key: _filled(each, stall) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, stall) for each in value]
    if not isinstance(value, str) or _PLACEHOLDER not in value:
        return value
    if stall is None:
        raise KeyError(_STALL)
    return value.replace(_PLACEHOLDER, stall)
