"""Gates: conditions that a run has to meet, against the run before or by itself.

    time:+5%                         the run's GPU time grows by at most 5 %
    step:+5%                         how long a step takes on the wall's clock grows by at most 5 %
    kernel(flash.*).time:+3%         the time of a launch of each such kernel, likewise
    kernel(flash.*).roof_frac>=0.7   roofline time over duration of each such kernel
    findings.high==0                 findings of high severity in the run after
    run.recoverable_frac<0.3         recoverable time over GPU time of the run after
    run.idle_frac<0.2                share of a step in which nothing runs on the GPU, likewise

A gate that cannot be judged (no kernel of that name, times that are not comparable, a quantity that was not collected) fails, and
says why.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ncuroof.compare.comparison import Comparison, run_change, run_obstacle, total_ns
from ncuroof.compare.deltas import Delta
from ncuroof.compare.matching import Sureness
from ncuroof.errors import GateError

_GATE = re.compile(
    r"^\s*(?:(?P<subject>time|step|run|findings)|kernel\((?P<pattern>.*)\))(?:\.(?P<metric>[A-Za-z_][\w.]*))?"
    r"\s*(?::\s*(?P<limit>[+-]\d+(?:\.\d+)?)\s*%|(?P<op>>=|<=|==|!=|<|>)\s*(?P<value>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?))\s*$"
)
_OPS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
}
_HINT = (
    "gates look like time:+5%, step:+5%, kernel(REGEX).time:+3%, kernel(REGEX).roof_frac>=0.7, findings.high==0, "
    "run.recoverable_frac<0.3"
)
_SEVERITIES = ("high", "medium")
_RUN_METRICS = ("duration_ns", "recoverable_ns", "recoverable_frac", "n_kernels", "n_failed", "step_ns", "idle_frac")
_TIME = "time"


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition.

    Attributes:
        text: as it was written.
        subject: "time", "step", "run", "findings" or "kernel".
        pattern: regular expression of kernel names, for "kernel".
        metric: what of the subject; "time" where none was named.
        limit_frac: most growth from the run before, or None.
        op, value: comparison and number, where there is no limit.
    """

    text: str
    subject: str
    pattern: re.Pattern[str] | None
    metric: str
    limit_frac: float | None
    op: str
    value: float


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a gate held: the gate as written, and the reasons why not, or what was found where it did."""

    gate: str
    has_passed: bool
    reasons: tuple[str, ...]


def parse_gate(text: str) -> Gate:
    """Return the gate that a text describes.

    Raises:
        GateError: it describes none.
    """
    found = _GATE.match(text)
    if found is None:
        raise GateError(f"no gate: {text!r}", hint=_HINT)
    subject = found["subject"] or "kernel"
    metric = found["metric"] or _TIME
    _check(text, subject, metric, has_limit=found["limit"] is not None)
    try:
        pattern = re.compile(found["pattern"]) if found["pattern"] is not None else None
    except re.error as error:
        raise GateError(f"{found['pattern']!r} in {text!r} is no regular expression: {error}", hint=_HINT) from error
    return Gate(
        text=text.strip(),
        subject=subject,
        pattern=pattern,
        metric=metric,
        limit_frac=float(found["limit"]) / 100 if found["limit"] else None,
        op=found["op"] or "",
        value=float(found["value"]) if found["value"] else 0.0,
    )


def _check(text: str, subject: str, metric: str, *, has_limit: bool) -> None:
    if has_limit and metric != _TIME:
        raise GateError(f"only time has a limit in percent: {text!r}", hint=_HINT)
    if not has_limit and metric == _TIME:
        raise GateError(f"time wants a limit in percent: {text!r}", hint=_HINT)
    known = {"findings": _SEVERITIES, "run": _RUN_METRICS, "time": (_TIME,), "step": (_TIME,)}.get(subject)
    if known is not None and metric not in known:
        raise GateError(f"{subject} has no {metric!r}: {', '.join(known)}", hint=_HINT)


def judge(gates: Sequence[Gate], comparison: Comparison) -> list[GateResult]:
    """Return whether each gate held."""
    judges = {"time": _time, "step": _step, "run": _run, "findings": _findings, "kernel": _kernels}
    return [judges[gate.subject](gate, comparison) for gate in gates]


def _time(gate: Gate, comparison: Comparison) -> GateResult:
    if reasons := comparison.comparable.reasons:
        return _not_comparable(gate, reasons)
    if (obstacle := run_obstacle(comparison)) is not None:
        return _not_comparable(gate, [obstacle])
    change, noise = run_change(comparison)
    if change is None or noise is None:
        return GateResult(gate.text, has_passed=False, reasons=("the GPU time of a run is not known",))
    limit = gate.limit_frac or 0.0
    has_passed = change <= (
        max(limit, noise) if limit >= 0 else limit
    )  # growth within chance is none; less time has to be shown
    reason = f"GPU time changed by {100 * change:+.1f} % (chance: ±{100 * noise:.1f} %)"
    return GateResult(gate.text, has_passed=has_passed, reasons=(reason,))


def _step(gate: Gate, comparison: Comparison) -> GateResult:
    if reasons := comparison.comparable.reasons:
        return _not_comparable(gate, reasons)
    was, became = comparison.before.step_ns, comparison.after.step_ns
    if not was or became is None:
        reason = "how long a step takes is not known of both runs: ncuroof profile --step counts it"
        return GateResult(gate.text, has_passed=False, reasons=(reason,))
    reason = f"a step's time changed by {100 * (became / was - 1):+.1f} %"
    return GateResult(gate.text, has_passed=became <= was * (1 + (gate.limit_frac or 0.0)), reasons=(reason,))


def _not_comparable(gate: Gate, reasons: Sequence[str]) -> GateResult:
    told = tuple(f"times are not comparable: {reason}" for reason in reasons)
    return GateResult(gate.text, has_passed=False, reasons=told)


def _run(gate: Gate, comparison: Comparison) -> GateResult:
    after = comparison.after
    known = after.groups.filter(after.groups["recoverable_ns"].is_not_null())
    recoverable, of_these = (
        float(known[name].sum()) if known.height else None for name in ("recoverable_ns", "duration_ns")
    )
    values: dict[str, float | None] = {
        "duration_ns": total_ns(after),
        "recoverable_ns": recoverable,
        "recoverable_frac": recoverable / of_these if recoverable is not None and of_these else None,
        "n_kernels": float(after.n_kernels),
        "n_failed": float(after.n_failed),
        "step_ns": after.step_ns,
        "idle_frac": after.idle_frac,
    }
    return _held(gate, [("run", values[gate.metric])])


def _findings(gate: Gate, comparison: Comparison) -> GateResult:
    column = comparison.after.groups[f"n_{gate.metric}"]
    return _held(gate, [(f"findings of {gate.metric} severity", float(column.sum()))])


def _kernels(gate: Gate, comparison: Comparison) -> GateResult:
    assert gate.pattern is not None  # noqa: S101 (parsed so)
    rows = [row for row in comparison.after.groups.iter_rows(named=True) if gate.pattern.search(row["name"] or "")]
    failed = {name for name in _unjudged(gate, comparison) if gate.pattern.search(name)}
    if failed:
        told = ", ".join(sorted(name.partition("(")[0] for name in failed))
        return GateResult(gate.text, has_passed=False, reasons=(f"{told} failed to profile",))
    if not rows:
        return GateResult(gate.text, has_passed=False, reasons=(f"no kernel's name matches {gate.pattern.pattern!r}",))
    if gate.limit_frac is not None:
        return _kernel_times(gate, comparison, {row["group"] for row in rows})
    if gate.metric not in rows[0]:
        return GateResult(
            gate.text, has_passed=False, reasons=(f"kernels have no {gate.metric!r}: {', '.join(_metrics(rows[0]))}",)
        )
    return _held(gate, [(row["short_name"] or row["name"], row[gate.metric]) for row in rows])


def _unjudged(gate: Gate, comparison: Comparison) -> Iterable[str]:
    """Return the names of what failed to profile: in the run after, or for a limit in one of the runs alone; none if not known."""
    if gate.limit_frac is None:
        return filter(None, comparison.after.failed)
    before, after = Counter(comparison.before.failed), Counter(comparison.after.failed)
    return () if "" in before or "" in after else (before - after) + (after - before)


def _metrics(row: Mapping[str, Any]) -> list[str]:
    return sorted(name for name, value in row.items() if isinstance(value, float))


def _kernel_times(gate: Gate, comparison: Comparison, groups: set[int]) -> GateResult:
    if reasons := comparison.comparable.reasons:
        return _not_comparable(gate, reasons)
    chosen = [
        delta
        for delta in comparison.deltas
        if groups & set(delta.match.after) and delta.match.sureness is not Sureness.GUESS
    ]
    if not chosen:
        return GateResult(gate.text, has_passed=False, reasons=("none of these kernels was surely in the run before",))
    broken = _slower(chosen, gate.limit_frac or 0.0) + _of_unknown_time(chosen)
    return GateResult(gate.text, not broken, broken or (_within(chosen, comparison, groups),))


def _slower(deltas: Sequence[Delta], limit: float) -> tuple[str, ...]:
    """Return a reason for each change beyond a limit: growth within chance is none, and less time has to be shown."""
    return tuple(
        f"{delta.names[1]} changed by {100 * delta.change_frac:+.1f} % (chance: ±{100 * (delta.noise_frac or 0):.1f} %)"
        for delta in deltas
        if delta.change_frac is not None and (delta.is_significant or limit < 0) and delta.change_frac > limit
    )


def _of_unknown_time(deltas: Iterable[Delta]) -> tuple[str, ...]:
    return tuple(
        f"{delta.names[1]}: {delta.obstacle}" if delta.obstacle else f"the time of {delta.names[1]} is not known"
        for delta in deltas
        if delta.change_frac is None
    )


def _within(judged: Sequence[Delta], comparison: Comparison, groups: set[int]) -> str:
    """Return that all judged kernels are within a limit, and how many of the groups were not judged."""
    matched = {group for delta in judged for group in delta.match.after}
    guessed = {group for delta in comparison.deltas for group in delta.match.after} & groups - matched
    n_new = len(groups - matched - guessed)
    told = _counted(len(judged), "kernel") + " within the limit"
    if n_new:
        told += f", {n_new} {'was' if n_new == 1 else 'were'} not in the run before"
    if guessed:
        told += f", {len(guessed)} matched by a guess and not judged"
    return told


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _held(gate: Gate, values: Sequence[tuple[str, float | None]]) -> GateResult:
    holds = _OPS[gate.op]
    broken = [
        f"{name}: {gate.metric} was not collected" if value is None else f"{name}: {gate.metric} is {value:.4g}"
        for name, value in values
        if value is None or not holds(value, gate.value)
    ]
    return GateResult(
        gate.text,
        not broken,
        tuple(broken) or tuple(f"{name}: {gate.metric} is {value:.4g}" for name, value in values[:1]),
    )
