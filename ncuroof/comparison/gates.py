"""Gates: conditions that a run has to meet, alone or compared with the run before.

time:+5%                         the run's GPU time grows by at most 5 %
step:+5%                         the wall-clock time of a step grows by at most 5 %
kernel(flash.*).time:+3%         the time of one launch of each kernel of this name grows by at most 3 %
kernel(flash.*).roof_frac>=0.7   roofline time over duration of each kernel of this name
kernel(flash.*).outcome!=slower  what became of the time of each of its matches: faster, slower, same, ambiguous, unknown
kernel(flash.*).code==same       whether the machine code of each of its matches is same, changed, or unknown
kernel(gemm).executes(HGMMA)>0   warp instructions of an opcode that a launch of each kernel of this name executes
findings.high==0                 findings of high severity in the run after
run.recoverable_frac<0.3         time above the roofline over GPU time, in the run after
run.idle_frac<0.2                share of a step in which the GPU is idle, in the run after

A gate that cannot be judged fails, and says why: no kernel has the name, times are not comparable, a quantity was not collected, or
a report is damaged.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from ncuroof import formatting
from ncuroof.comparison.code_changes import Code, executed
from ncuroof.comparison.comparison import Comparison, damage_of, first_few, run_change, run_obstacle, total_ns
from ncuroof.comparison.deltas import Delta, Outcome
from ncuroof.comparison.distinct_names import names_of_failed
from ncuroof.comparison.finding_changes import FOUND
from ncuroof.comparison.matched_groups import WORK_WORDS, Row, is_other_work
from ncuroof.comparison.matching import How, Sureness
from ncuroof.comparison.noise import is_beyond
from ncuroof.comparison.obstacles import n_units
from ncuroof.comparison.run import Run, numbers_of_groups
from ncuroof.comparison.signatures import numbered, texts_without_versions
from ncuroof.diagnosis import load_rules
from ncuroof.enums import Verdict
from ncuroof.errors import GateError

_OPS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_SUMS = {"duration_ns", "recoverable_ns", "recoverable_frac"}
"""Metrics of a run that are sums over its launches; launches that failed to profile are missing in them."""

_OF_STEPS = {"step_ns", "idle_frac"}
"""Metrics of a run that come from the counting run, so a damaged report does not affect them."""

_GATE = re.compile(
    r"^\s*(?:(?P<subject>time|step|run|findings)|kernel\((?P<pattern>.*?)\))(?:\.(?P<metric>executes\(\w+\)|[A-Za-z_][\w.]*))?"
    r"\s*(?::\s*(?P<limit>[+-]\d+(?:\.\d+)?)\s*%|(?P<op>>=|<=|==|!=|<|>)\s*"
    r"(?:(?P<value>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)|(?P<word>[a-z]+)))\s*$"
)
_HINT = (
    "write gates like time:+5%, step:+5%, kernel(REGEX).time:+3%, kernel(REGEX).roof_frac>=0.7, kernel(REGEX).outcome!=slower, "
    "kernel(REGEX).code==same, kernel(REGEX).executes(HGMMA)>0, findings.high==0, run.recoverable_frac<0.3"
)
_SEVERITIES = ("high", "medium")
_RUN_METRICS = ("duration_ns", "recoverable_ns", "recoverable_frac", "n_kernels", "n_failed", "step_ns", "idle_frac")
_TIME = "time"
_WORDS = {"outcome": tuple(each.value for each in Outcome), "code": tuple(each.value for each in Code)}
"""Metrics of a match whose value is a word, and their possible values."""

_EXECUTES = re.compile(r"executes\((\w+)\)")


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a gate held: the gate as written, and why it failed, or what was found if it held."""

    gate: str
    has_passed: bool
    reasons: tuple[str, ...]


def judge(gates: Sequence[Gate], comparison: Comparison) -> list[GateResult]:
    """Return whether each gate held."""
    judges = {"time": _time, "step": _step, "run": _run, "findings": _findings, "kernel": _kernels}
    return [_failed_if_damaged(gate, judges[gate.subject](gate, comparison), comparison) for gate in gates]


def _failed_if_damaged(gate: Gate, found: GateResult, comparison: Comparison) -> GateResult:
    """Return the result; a failure if a run that the gate reads is damaged, because lost launches may break the gate.

    Gates of times need no check here: `run_obstacle` covers damage.
    """
    if gate.subject in ("time", "step") or gate.metric in _OF_STEPS:
        return found
    before = {} if gate.limit_frac is None else {"before": comparison.before}
    damage = damage_of({**before, "after": comparison.after})
    return replace(found, has_passed=False, reasons=(*found.reasons, damage)) if damage else found


def _time(gate: Gate, comparison: Comparison) -> GateResult:
    if reasons := comparison.comparable.reasons:
        return _not_comparable(gate, reasons)
    if (obstacle := run_obstacle(comparison)) is not None:
        return _not_comparable(gate, [obstacle])
    change, noise = run_change(comparison)
    if change is None or noise is None:
        return _not_met(gate, "the GPU time of one of the runs is not known")
    limit = gate.limit_frac or 0.0
    # Growth within the noise passes a limit of growth. A limit below 0 asks for a speed-up, which has to exceed the noise.
    has_passed = change <= max(limit, noise) if limit >= 0 else change <= limit and is_beyond(change, noise)
    counted = " of the counting runs" if comparison.after.is_counted else ""
    per_step = "" if n_units(comparison.before, comparison.after) == (1, 1) else " per step"
    reason = f"GPU time{counted} changed by {formatting.signed_percent(change)}{per_step} (noise: ±{100 * noise:.1f} %)"
    gone = _gone_kernels(comparison.before, comparison.matching.removed)
    other_work = first_few(_different_work(comparison.deltas))
    return GateResult(gate.text, has_passed=has_passed, reasons=(reason, *gone, *filter(None, [other_work])))


def _step(gate: Gate, comparison: Comparison) -> GateResult:
    if reasons := comparison.comparable.reasons:
        return _not_comparable(gate, reasons)
    was, became = comparison.before.step_ns, comparison.after.step_ns
    if not was or became is None:
        return _not_met(gate, "the step time is not known for both runs: ncuroof profile --step measures it")
    reason = f"the step time changed by {formatting.signed_percent(became / was - 1)}"
    return GateResult(gate.text, has_passed=became <= was * (1 + (gate.limit_frac or 0.0)), reasons=(reason,))


def _not_met(gate: Gate, *reasons: str) -> GateResult:
    return GateResult(gate.text, has_passed=False, reasons=reasons)


def _not_comparable(gate: Gate, reasons: Sequence[str]) -> GateResult:
    return _not_met(gate, *(f"times are not comparable: {reason}" for reason in reasons))


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
    found = _check_values(gate, [("run", values[gate.metric])])
    if gate.metric not in _SUMS or not found.has_passed:
        return found
    if after.n_failed:
        return _not_met(gate, f"launches failed to profile: {after.n_failed}")
    is_share = gate.metric.startswith("recoverable")
    unknown = after.groups.filter(pl.col("recoverable_ns" if is_share else "duration_ns").is_null())
    if unknown.is_empty():
        return found
    caveat = f"not known for {first_few(unknown['short_name'].to_list())}"
    return replace(found, has_passed=is_share, reasons=(*found.reasons, caveat) if is_share else (caveat,))


def _kernels_with_findings(gate: Gate, groups: pl.DataFrame) -> str:
    """Return the kernels with the most findings, each with its costliest finding; "" if there are no findings."""
    severe = groups.filter(pl.col(f"n_{gate.metric}") > 0).sort(
        f"n_{gate.metric}", descending=True, maintain_order=True
    )
    said = [
        f"{name} ({max(found, key=lambda each: each['gain_frac'] or 0.0)['finding']})"
        for name, found in severe.select("short_name", FOUND).iter_rows()
        if found
    ]
    return f": {first_few(said)}" if said else ""


def _findings(gate: Gate, comparison: Comparison) -> GateResult:
    groups = comparison.after.groups
    n_found = int(groups[f"n_{gate.metric}"].sum())
    found = replace(
        _check_values(gate, [("findings", float(n_found))]),
        reasons=(
            f"{formatting.counted(n_found, 'finding')} of {gate.metric} severity{_kernels_with_findings(gate, groups)}",
        ),
    )
    if not found.has_passed:
        return found
    if comparison.after.n_failed:
        return _not_met(gate, f"launches failed to profile: {comparison.after.n_failed}")
    if groups.is_empty():
        return _not_met(gate, "no launch was profiled")
    if unknown := groups.filter(pl.col("verdict") == Verdict.UNKNOWN.value)["short_name"].to_list():
        return _not_met(gate, f"no findings are possible for {first_few(unknown)}: too little was collected")
    return replace(found, reasons=found.reasons + _missing_quantities(groups))


def _missing_quantities(groups: pl.DataFrame) -> tuple[str, ...]:
    """Return how many kernels lack quantities that findings need. A share whose whole is zero does not count as missing."""
    rules = load_rules()
    wanted = [
        name for name in rules.missing_quantities if name in groups.columns and name not in rules.missing_unless_zero
    ]
    lacking = groups.filter(pl.any_horizontal(pl.col(name).is_null() for name in wanted))
    if lacking.is_empty():
        return ()
    absent = ", ".join(name for name in wanted if lacking[name].null_count())
    return (
        f"{len(lacking)} of {formatting.counted(len(groups), 'kernel')} lack quantities that findings need: {absent}",
    )


def _kernels(gate: Gate, comparison: Comparison) -> GateResult:
    assert gate.pattern is not None  # noqa: S101 (parsed so)
    before, rows = (_named(gate.pattern, run) for run in (comparison.before, comparison.after))
    unjudged, in_both = _failed(gate, comparison)
    has_limit = gate.limit_frac is not None
    if failed := unjudged or (in_both if has_limit and not before and not rows else ""):
        return _not_met(gate, f"{failed} failed to profile")
    if has_limit and (before or rows):
        found = _kernel_times(gate, comparison, *({row["group"] for row in side} for side in (before, rows)))
        return (
            replace(found, reasons=(*found.reasons, f"{in_both} failed to profile in both runs")) if in_both else found
        )
    if not rows:
        return _not_met(gate, f"no kernel name matches {gate.pattern.pattern!r}")
    if gate.metric in _WORDS:
        return _kernel_words(gate, comparison, *({row["group"] for row in side} for side in (before, rows)))
    if (opcode := _EXECUTES.fullmatch(gate.metric)) is not None:
        return _check_values(gate, [(row["short_name"], executed(row, opcode[1])) for row in rows])
    return _check_values(gate, [(row["short_name"], row[gate.metric]) for row in rows])


def _kernel_words(gate: Gate, comparison: Comparison, before: set[int], after: set[int]) -> GateResult:
    """Judge a word, outcome or code, of each match whose kernel has the name on either side.

    An unknown word fails the gate, and every word of a match that is a guess is unknown. The noise of an outcome is the one for all
    judged changes together. An outcome also fails for kernels that do a different amount of work.
    """
    found = [delta for delta in comparison.deltas if before & set(delta.match.before) or after & set(delta.match.after)]
    not_judged = _not_judged(comparison, before, after, found)
    if not found:
        return _not_met(gate, ", ".join(("no such kernel is in both runs", *not_judged)))
    is_outcome = gate.metric == "outcome"
    if is_outcome and comparison.comparable.reasons:
        return _not_comparable(gate, comparison.comparable.reasons)
    said = [(_names(delta), "unknown" if _is_guess(delta) else _word(gate, delta, len(found))) for delta in found]
    unknown, holds = Outcome.UNKNOWN.value, _OPS[gate.op]
    broken = [
        f"{name}: {gate.metric} is {word}"
        for name, word in said
        if not holds(word, gate.word) or unknown == word != gate.word
    ]
    broken += _different_work(found) if is_outcome else ()
    first = (f"{name}: {gate.metric} is {word}" for name, word in said[:1])
    return GateResult(gate.text, not broken, tuple(broken) or (*first, *not_judged))


def _word(gate: Gate, delta: Delta, n_changes: int) -> str:
    """Return the word of a match that a gate asks for."""
    found = delta.outcome_of(n_changes) if gate.metric == "outcome" else delta.code
    return str(found.value)


def _is_guess(delta: Delta) -> bool:
    return delta.match.sureness is Sureness.GUESS


def _named(pattern: re.Pattern[str], run: Run) -> list[Row]:
    could_find = pl.col("verdict") != Verdict.UNKNOWN.value
    groups = run.groups.with_columns(pl.when(could_find).then(pl.col("n_high", "n_medium")))
    return [row for row in groups.iter_rows(named=True) if pattern.search(row["name"] or "")]


def _failed(gate: Gate, comparison: Comparison) -> tuple[str, str]:
    """Return the kernels of the name whose failed profiling prevents a judgement, and those whose failure does not; "" for none.

    A failure prevents it if it is in the run after; for a gate with a limit, if it is in only one of the runs. Where names are
    unknown, only the numbers of failures are compared.
    """
    assert gate.pattern is not None  # noqa: S101 (parsed so)
    runs = comparison.before, comparison.after
    plain = [texts_without_versions(run.failed) for run in runs]
    before, after = map(Counter, plain)
    otherwise = after if gate.limit_frac is None else (before - after) + (after - before)
    if gate.limit_frac is not None and "" in (*before, *after) and before.total() == after.total():
        return "", ""
    shown = {**names_of_failed(*runs), "": "an unknown kernel"}
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for name, key in zip((*runs[0].failed, *runs[1].failed), (*plain[0], *plain[1]), strict=True):
        if gate.pattern.search(name):
            found[key in otherwise].add(shown[name])
    return first_few(sorted(found[True])), first_few(sorted(found[False]))


def _kernel_times(gate: Gate, comparison: Comparison, before: set[int], after: set[int]) -> GateResult:
    """Judge the times of kernels that have the name on either side, so also of a kernel that replaced one of the name.

    Growth within the noise passes. The noise is that of all judged changes together: among sixty, about three exceed the bound for
    a single one. A gate that asks for less time fails unless the time falls by more than the noise.
    """
    if reasons := comparison.comparable.reasons:
        return _not_comparable(gate, reasons)
    found = [delta for delta in comparison.deltas if before & set(delta.match.before) or after & set(delta.match.after)]
    judged = [delta for delta in found if not _is_guess(delta)]
    not_judged = _not_judged(comparison, before, after, found)
    is_numbered = comparison.after.groups.select(numbered(pl.col("name"))).to_series().to_list()
    of_other_work = _different_work(
        delta for delta in found if delta.match.how is How.SHAPE and not is_numbered[delta.match.after[0]]
    )
    if not judged and not of_other_work:
        return _not_met(gate, ", ".join(("no such kernel is in both runs for sure", *not_judged)))
    limit = gate.limit_frac or 0.0
    changed = [
        (change, noise, delta)
        for delta in judged
        if (change := delta.change_frac) is not None and (noise := delta.noise_of(len(judged))) is not None
    ]
    over = [
        (change, noise, delta)
        for change, noise, delta in changed
        if (change > limit if is_beyond(change, noise) else limit < 0)
    ]
    if broken := tuple(_changed(*each) for each in over) + _unknown_times(judged) + of_other_work:
        return _not_met(gate, *broken)
    summary = formatting.counted(len(judged), "kernel")
    most = max(changed, key=lambda each: each[0], default=None)
    if most is not None and most[0] > limit:
        summary += f", none beyond the limit by more than noise: {_changed(*most)}"
    else:
        summary += " within the limit"
    reasons = (
        ", ".join((summary, *not_judged)),
        first_few(_different_work(judged)),
        first_few(_changes_of_counted(judged)),
    )
    return GateResult(gate.text, has_passed=True, reasons=tuple(filter(None, reasons)))


def _different_work(deltas: Iterable[Delta]) -> tuple[str, ...]:
    """Return which kernels do a very different amount of work, so that their times cannot be compared."""
    return tuple(
        f"{_names(delta)} does a different amount of work ({WORK_WORDS[work[0]]} ×{work[1]:.3g})"
        for delta in deltas
        if (work := delta.work) is not None and is_other_work(work[1])
    )


def _changes_of_counted(deltas: Iterable[Delta]) -> tuple[str, ...]:
    """Return which kernels changed in the counting runs, but not in the launches under ncu."""
    return tuple(
        f"{_names(delta)} changed by {formatting.signed_percent(counted[1] / counted[0] - 1)} in the counting runs, without ncu"
        for delta in deltas
        if delta.is_counted_otherwise and (counted := delta.counted_ns) is not None
    )


def _changed(change: float, noise: float, delta: Delta) -> str:
    return f"{_names(delta)} changed by {formatting.signed_percent(change)} (noise: ±{100 * noise:.1f} %)"


def _names(delta: Delta) -> str:
    return " → ".join(dict.fromkeys(delta.names))


def _not_judged(comparison: Comparison, before: set[int], after: set[int], found: Sequence[Delta]) -> tuple[str, ...]:
    """Return which groups a limit does not cover.

    These are new groups, groups that one run launched but did not profile, groups matched by a guess, and groups that are gone.
    """
    clauses = []
    matching = comparison.matching
    not_before, not_after = (
        {each.group for each in only_counted} & of_these
        for only_counted, of_these in ((matching.not_recorded_before, after), (matching.not_recorded_after, before))
    )
    for n_groups, when in ((len(not_before), "before"), (len(not_after), "after")):
        if n_groups:
            clauses.append(
                f"{n_groups} {'was' if n_groups == 1 else 'were'} launched but not profiled in the run {when}"
            )
    if n_new := len(after - not_before - {group for delta in found for group in delta.match.after}):
        clauses.append(f"{n_new} {'was' if n_new == 1 else 'were'} not in the run before")
    if n_guessed := sum(map(_is_guess, found)):
        clauses.append(f"{n_guessed} matched only by a guess, so not judged")
    return (*clauses, *_gone_kernels(comparison.before, before & set(comparison.matching.removed)))


def _gone_kernels(before: Run, groups: Collection[int]) -> tuple[str, ...]:
    """Return that groups are no longer in the run, the longest first; empty if there are no groups."""
    rows = before.groups.filter(pl.col("group").is_in(list(groups)))
    names = rows.sort("duration_ns", descending=True, nulls_last=True)["short_name"].to_list()
    return (f"no longer in the run: {first_few(names)}",) if names else ()


def _unknown_times(deltas: Iterable[Delta]) -> tuple[str, ...]:
    return tuple(
        f"{delta.names[1]}: {delta.obstacle}" if delta.obstacle else f"the time of {delta.names[1]} is not known"
        for delta in deltas
        if delta.change_frac is None
    )


def _check_values(gate: Gate, values: Sequence[tuple[str, float | None]]) -> GateResult:
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


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition.

    Attributes:
        text: as it was written.
        subject: "time", "step", "run", "findings" or "kernel".
        pattern: regular expression of kernel names, for "kernel".
        metric: metric of the subject; "time" if the gate names none.
        limit_frac: largest growth from the run before, or None.
        op, value: comparison operator and number, if there is no limit.
        word: the word to compare with instead of a number; "" for a number.
    """

    text: str
    subject: str
    pattern: re.Pattern[str] | None
    metric: str
    limit_frac: float | None
    op: str
    value: float
    word: str = ""


def parse_gate(text: str) -> Gate:
    """Parse a gate.

    Raises:
        GateError: the text is not a gate.
    """
    found = _GATE.match(text)
    if found is None:
        raise GateError(f"not a gate: {text!r}", hint=_HINT)
    subject = found["subject"] or "kernel"
    metric = found["metric"] or _TIME
    _check(text, subject, metric, has_limit=found["limit"] is not None)
    _check_word(text, metric if subject == "kernel" else "", found["op"] or "", found["word"])
    try:
        pattern = re.compile(found["pattern"]) if found["pattern"] is not None else None
    except re.error as error:
        raise GateError(f"{found['pattern']!r} in {text!r} is not a regular expression: {error}", hint=_HINT) from error
    return Gate(
        text=text.strip(),
        subject=subject,
        pattern=pattern,
        metric=metric,
        limit_frac=float(found["limit"]) / 100 if found["limit"] else None,
        op=found["op"] or "",
        value=float(found["value"]) if found["value"] else 0.0,
        word=found["word"] or "",
    )


def _check(text: str, subject: str, metric: str, *, has_limit: bool) -> None:
    if has_limit and metric != _TIME:
        raise GateError(f"only time takes a limit in percent: {text!r}", hint=_HINT)
    if not has_limit and metric == _TIME:
        raise GateError(f"time needs a limit in percent: {text!r}", hint=_HINT)
    known = {
        "findings": _SEVERITIES,
        "run": _RUN_METRICS,
        "time": (_TIME,),
        "step": (_TIME,),
        "kernel": (_TIME, *numbers_of_groups(), *_WORDS, "executes(OPCODE)"),
    }[subject]
    if metric not in known and not (subject == "kernel" and _EXECUTES.fullmatch(metric)):
        raise GateError(f"{subject} has no {metric!r}; it has {', '.join(known)}", hint=_HINT)


def _check_word(text: str, metric: str, op: str, word: str | None) -> None:
    """Raise a `GateError` if a number is compared with a word, or a metric with a word that is not one of its values."""
    words = _WORDS.get(metric, ())
    if words and (word not in words or op not in {"==", "!="}):
        raise GateError(f"{metric} is == or != one of {', '.join(words)}: {text!r}", hint=_HINT)
    if word is not None and not words:
        raise GateError(f"not a gate: {text!r}: {word!r} is no number", hint=_HINT)
