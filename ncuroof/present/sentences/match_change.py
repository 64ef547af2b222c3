"""What changed in a match, as one sentence: how much faster or slower, what explains it, and what became of the machine code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from ncuroof import formatting
from ncuroof.comparison import Delta, Outcome, QuantityChange
from ncuroof.comparison.peaks import PEAK_UNITS
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.diagnosis import load_rules
from ncuroof.metrics.catalogue import quantity_unit
from ncuroof.present.schemas.comparison import ComparisonDocument, MatchEntry

CLOCK = "sm_clock_hz"
"""The quantity whose change is told apart, as the obstacle of a match or beside its time."""

_MOST_EXPLANATIONS = 3
_MOST_CODE_CHANGES = 5
_MOST_DIGITS = 1000.0
_PART_WITHOUT_WORDS = 0.5
_LEAST_IN_PERCENT, _MOST_IN_PERCENT = 0.001, 2.0
"""Amounts after over before: beyond these percents say nothing."""


def change_sentence(
    delta: Delta, *, is_time_comparable: bool = True, are_counted: tuple[bool, bool] = (False, False)
) -> str:
    """Return what changed in a match: "2.1× faster: DRAM bytes −52.0 %; now memory-bound (DRAM), was latency-bound (tail)".

    Args:
        delta: the match.
        is_time_comparable: whether times of the runs are.
        are_counted: whether a counting run counted the launches, before and after: the times of all are then not those under ncu.
    """
    is_time_comparable = is_time_comparable and delta.obstacle is None
    reasons = _reasons(delta, is_time_comparable=is_time_comparable)
    amounts = reasons.removeprefix(": ")
    if is_time_comparable:
        first = _time(delta, is_counted=any(are_counted)) + reasons
    elif delta.obstacle:
        first = "; ".join(filter(None, (f"times are not compared, as {delta.obstacle}", amounts)))
    else:  # the run's first line says why
        first = amounts or "no amount changed"
    parts = [
        first,
        *_of_code(delta, is_time_comparable=is_time_comparable),
    ]
    if is_time_comparable and delta.is_counted_otherwise:
        parts.append(_counted(delta))
    if _is_bound_otherwise(delta):
        parts.append(f"now {_bound(delta, 1)}, was {_bound(delta, 0)}")
    if delta.is_same_work_in_all:
        parts.append(f"the same work in {formatting.launches(delta.n_launches[1])} instead of {delta.n_launches[0]}")
    elif is_launched_otherwise(delta, are_counted):
        parts.append(f"launches {delta.n_launches[0]} → {delta.n_launches[1]}")
    return "; ".join(parts)


def _reasons(delta: Delta, *, is_time_comparable: bool) -> str:
    """Return what explains the change of time, with what goes before it; where times are not compared, what else changed."""
    is_clock_told = delta.obstacle is not None or bool(at_another_clock(delta.clock_frac))
    carried_over = [change for change in delta.changes if not (is_clock_told and change.quantity == CLOCK)]
    shown = [change for change in carried_over if change.explains]
    if not is_time_comparable:
        # Amounts are compared all the same; of the rest only what explains the difference, if anything does.
        shown += [each for each in carried_over if not each.explains and (each.kind == "amount" or not shown)]
    if shown:
        of_what = "that" if is_time_comparable else "the difference in time"
        return ": " + ", ".join(f"{_change(each)}{_why(each, of_what)}" for each in shown[:_MOST_EXPLANATIONS])
    if not (is_time_comparable and delta.is_significant):
        return ""
    alongside = [change for change in delta.changes if change.accompanies][:_MOST_EXPLANATIONS]
    return "; no quantity that compare looks at explains it" + (
        f" ({', '.join(map(_change, alongside))})" if alongside else ""
    )


def _of_code(delta: Delta, *, is_time_comparable: bool) -> Iterator[str]:
    """Yield that the machine code stayed the same where the time did not, or what changed in it."""
    if is_time_comparable and delta.cause:
        yield f"the machine code is the same, so that this comes from {delta.cause}"
    if delta.code_changes:
        telling = [each for each in delta.code_changes if each.is_telling] or delta.code_changes[-1:]
        yield f"the code changed: {', '.join(each.sentence for each in telling[:_MOST_CODE_CHANGES])}"


def is_launched_otherwise(delta: Delta, are_counted: tuple[bool, bool]) -> bool:
    """Return whether a match was launched more or less often; what a counting run lacks may be in it under another name."""
    if delta.n_launches[0] == delta.n_launches[1] or delta.is_same_work_in_all:
        return False
    return not any(are_counted) or (all(are_counted) and delta.counted_ns is not None)


def _is_bound_otherwise(delta: Delta) -> bool:
    """Return whether something else bounds it now; what was not collected is not a change."""
    if "unknown" in delta.verdicts:
        return False
    is_limited_otherwise = None not in delta.limiters and delta.limiters[0] != delta.limiters[1]
    return delta.verdicts[0] != delta.verdicts[1] or (delta.is_significant and is_limited_otherwise)


def times(match: MatchEntry, document: ComparisonDocument) -> list[str]:
    """Return the GPU time before and after; nothing where times are not compared, as they would seem to be."""
    if not document["comparable"]["time"] or match["obstacle"] is not None:
        return []
    return list(map(formatting.duration, match["duration_ns"]))


def both_times(durations_ns: Sequence[float | None]) -> str:
    """Return a time before and after: "1.78 ms → 4.58 ms"."""
    return " → ".join(map(formatting.duration, durations_ns))


def factor(change_frac: float) -> str:
    """Return a change of time as a factor of speed: "2.10× faster", "1.06× slower"."""
    ratio = 1 + change_frac
    if ratio <= 0:
        return "takes no time now"
    return f"{1 / ratio:.3g}× faster" if ratio < 1 else f"{ratio:.3g}× slower"


def signed_share(frac: float) -> str:
    """Return a change in percent with its sign: "−52.0 %", "+3.1 %"; none where it is too small to be one, "<0.1 %" or "0 %".

    A growth of 99.97 % falls short of nothing, and is rounded.
    """
    size = formatting.share(1.0 if 0.9995 <= frac < 1 else abs(frac))
    has_sign = frac != 0 and not size.startswith("<")
    return f"{'+' if frac > 0 else '−'}{size}" if has_sign else size


def _time(delta: Delta, *, is_counted: bool) -> str:
    if delta.change_frac is None:
        return "its time is unknown in at least one run"
    if not delta.is_significant:
        recorded = " under ncu" if delta.is_counted_otherwise else ""
        noise = f"(±{formatting.share(delta.noise_frac)})"
        return f"no change beyond measurement noise{recorded} {noise}{_ambiguous(delta)}"
    if is_counted:
        return f"{factor(delta.change_frac)} under ncu ({both_times(delta.mean_ns)})"
    is_per_launch = delta.n_launches[0] != delta.n_launches[1] and not (delta.is_same_work_in_all or delta.is_in_all)
    return factor(delta.change_frac) + (" per launch" if is_per_launch else "") + at_another_clock(delta.clock_frac)


def settled_by(n_launches: int | None) -> str:
    """Return how many launches of each run would settle what is ambiguous, to follow it; empty where more would not."""
    return f"; about {n_launches} launches in each run would settle it" if n_launches else ""


def _ambiguous(delta: Delta) -> str:
    """Return that a change that matters is not ruled out, and how many launches would settle it; "" where it is."""
    if delta.outcome is not Outcome.AMBIGUOUS:
        return ""
    most = math.exp(abs(math.log1p(delta.change_frac or 0.0)) + math.log1p(delta.noise_frac or 0.0)) - 1
    settled = settled_by(delta.n_to_settle)
    return f", but {formatting.share(most)} is not ruled out{settled}"


def at_another_clock(clock_frac: float) -> str:
    """Return how much higher or lower the SM clock is, with a blank before it; empty where it is about the same."""
    if abs(clock_frac) <= load_comparison_rules().noise.clock_difference_frac:
        return ""
    return f" at an SM clock {formatting.share(abs(clock_frac))} {'higher' if clock_frac > 0 else 'lower'}"


def _counted(delta: Delta) -> str:
    """Return how the average launch changed in the counting runs: not all launches are like the one that ncu profiled."""
    was, became = delta.counted_ns or (1.0, 1.0)
    return (
        f"{factor(became / was - 1)} on average in the counting runs, without ncu ({both_times((was, became))}), "
        "where sizes, neighbouring kernels or cache contents may differ"
    )


def _why(change: QuantityChange, of_what: str) -> str:
    """Return what made a quantity change, and that it explains less than half of the change of time; empty for neither.

    Args:
        change: of the quantity.
        of_what: what to call the change of time.
    """
    told = [
        f"{words} {' → '.join(formatting.quantity(value, quantity_unit(name)) for value in values)}"
        for name, words, *values in change.because
    ]
    frac = change.accounts_for_frac
    if frac is not None and frac < _PART_WITHOUT_WORDS:
        told.append(f"at most {formatting.share(frac)} of {of_what}")
    return f" ({'; '.join(told)})" if told else ""


def _change(change: QuantityChange) -> str:
    if change.kind == "peak":
        values = " → ".join(
            formatting.quantity(value, PEAK_UNITS[change.quantity]) for value in (change.before, change.after)
        )
        return f"{change.words} {values}"
    if change.kind in _WRITTEN:
        values = " → ".join(map(_WRITTEN[change.kind], (change.before, change.after)))
        return f"{change.words} {values}{_AFTER.get(change.kind, '')}"
    if not change.before:
        return f"{change.words} {formatting.scaled(change.after)}, none before"
    if not change.after:
        return f"no {change.words} any more"
    ratio = change.after / change.before
    is_percent = _LEAST_IN_PERCENT <= ratio <= _MOST_IN_PERCENT
    return f"{change.words} {signed_share(ratio - 1)}" if is_percent else f"{change.words} ×{ratio:.3g}"


def _number(value: float) -> str:
    return f"{value:.3g}" if value < _MOST_DIGITS else f"{value:.0f}"


_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "share": formatting.share, "time": formatting.duration, "ratio": _number, "wait": _number
}  # fmt: skip
"""How both values of a change are written, by its kind; of the others, the value after over that before."""

_AFTER = {"wait": " cycles per instruction"}


def _bound(delta: Delta, side: int) -> str:
    verdict, limiter = delta.verdicts[side], delta.limiters[side]
    title = load_rules().verdicts[verdict].title
    return title if limiter is None else f"{title} ({formatting.label(limiter)})"
