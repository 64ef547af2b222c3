"""What a comparison says: the change as a whole, its runs, and what changed in each match.

A change is one sentence: how much faster or slower, and what explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ncuroof import formatting
from ncuroof.comparison import WORK_WORDS, Delta, QuantityChange, is_beyond, is_other_work
from ncuroof.comparison.peaks import PEAK_UNITS
from ncuroof.comparison.rules import load_comparison_rules
from ncuroof.diagnosis import load_rules
from ncuroof.metrics.catalogue import quantity_unit
from ncuroof.present.analysed import Record
from ncuroof.present.sentences.source_lines import place

_LEAST_OF_RUN = 0.01
"""Of the GPU time before: a kernel that was launched more or less often is shown where its time changed by more."""

ALONE = {
    "added": "added",
    "removed": "removed",
    "not_recorded_before": "not profiled before",
    "not_recorded_after": "not profiled after",
}
"""The document's lists of groups without a match, with what to call these."""

_MOST_NAME = 60
_MOST_PLACES = 3
_MOST_FINDINGS = 3
_WORDS_BY_HOW = {
    "same": "same name and shape",
    "moved": "same name and shape, other NVTX range",
    "shape": "same name",
    "renamed": "renamed kernel",
    "variant": "variant of the same kernel",
    "place": "same position in the run",
    "fused": "kernels fused into one",
    "split": "one kernel split into several",
    "rewritten": "kernels rewritten as others",
    "chosen": "chosen with --pair",
}

CLOCK = "sm_clock_hz"
"""The quantity whose change is told apart, as the obstacle of a match or beside its time."""

_MOST_EXPLANATIONS = 3
_MOST_DIGITS = 1000.0
_PART_WITHOUT_WORDS = 0.5
_LEAST_IN_PERCENT, _MOST_IN_PERCENT = 0.001, 2.0
"""Amounts after over before: beyond these percents say nothing."""


def outcome(document: Record) -> Iterator[str]:
    """Yield the change as a whole, or why the runs are not compared, and what else is to be known of it."""
    summary, comparable = document["summary"], document["comparable"]
    if not comparable["time"]:
        yield from (f"times are not compared: {formatting.printable(reason)}" for reason in comparable["reasons"])
    elif document["is_chosen"] and len(document["matches"]) > 1:
        yield from ()  # of the steps of a series there is no sum
    elif summary["obstacle"] is not None:
        yield f"GPU times of the whole runs are not compared: {formatting.printable(summary['obstacle'])}"
    elif summary["duration_change_frac"] is not None:
        yield _of_the_run(document)
    is_of_launches = summary["obstacle"] or _is_launched_otherwise(document)
    if summary["matched_change_frac"] is not None and is_of_launches and not document["is_chosen"]:
        yield f"launch for launch, over the kernels that both runs launched: {_of_matched(summary)}"
    if step := _step(document["before"], document["after"]):
        yield step
    remarks = (*comparable["remarks"], *_lost(document), *_other_work(document))
    yield from (f"note: {formatting.printable(remark)}" for remark in remarks)
    yield _counts(summary, is_time_comparable=comparable["time"])


def _of_the_run(document: Record) -> str:
    """Return how much faster or slower the run is, where that is known."""
    before, after, summary = document["before"], document["after"], document["summary"]
    change, noise = summary["duration_change_frac"], summary["noise_frac"]
    counted = " in the counting runs, without ncu" if after["is_counted"] else ""
    if not is_beyond(change, noise):
        whose = "their" if document["is_chosen"] else "a step's" if summary["is_per_step"] else "the run's"
        return f"{whose} GPU time did not change beyond measurement noise{counted} (±{formatting.share(noise)})"
    is_sure = any(match["sureness"] != "guess" for match in document["matches"])
    condition = "" if is_sure else ", if both do the same work"
    return f"{_subject(document)} {factor(change)}{_at_clock(before, after)}{counted}{condition}"


def _subject(document: Record) -> str:
    """Return what the GPU times are of: a step's time on the wall is another one, and chosen kernels are not the run."""
    if document["is_chosen"]:
        return "the chosen kernel is"
    if document["summary"]["is_per_step"]:
        return "the kernels of a step together are"
    return "the kernels together are" if _step(document["before"], document["after"]) else "the run is"


def _at_clock(before: Record, after: Record) -> str:
    was, became = before["sm_clock_hz"], after["sm_clock_hz"]
    return at_another_clock(became / was - 1) if was and became else ""


def _step(before: Record, after: Record) -> str:
    """Return how long a step takes (wall-clock time); empty where it is not known for both runs. GPU time alone does not say it."""
    was, became = before["step_ns"], after["step_ns"]
    if not was or became is None:
        return ""
    idle = " → ".join(formatting.share(side["idle_frac"]) for side in (before, after))
    took = f"{formatting.duration(was)} → {formatting.duration(became)} ({100 * (became / was - 1):+.1f} %)"
    return f"a step takes {took}; the GPU is idle for {idle} of it"


def _of_matched(summary: Record) -> str:
    change, noise = summary["matched_change_frac"], summary["matched_noise_frac"]
    return (
        factor(change)
        if is_beyond(change, noise)
        else f"no change beyond measurement noise (±{formatting.share(noise)})"
    )


def _is_launched_otherwise(document: Record) -> bool:
    """Return whether one run has kernels that the other has not, or launched some more often in the same steps."""
    if any(document[key] for key in ALONE):
        return True
    return not document["summary"]["is_of_other_steps"] and any(
        match["is_launched_otherwise"] for match in document["matches"]
    )


def _counts(summary: Record, *, is_time_comparable: bool) -> str:
    numbers = ((summary[f"n_{key}"], words) for key, words in ALONE.items())
    alone = ", ".join(f"{number} {words}" for number, words in numbers if number or words in {"added", "removed"})
    if not is_time_comparable:
        return f"{formatting.counted(summary['n_matches'], 'kernel')} matched, {alone}"
    n_faster, n_slower, n_unknown = (summary[key] for key in ("n_faster", "n_slower", "n_unknown"))
    n_at_other_clocks = summary["n_at_other_clocks"]
    n_counted_otherwise = summary["n_counted_otherwise"]
    n_unchanged = summary["n_matches"] - n_faster - n_slower - n_unknown - n_at_other_clocks - n_counted_otherwise
    unknown = f"{n_unknown} without a known time, " if n_unknown else ""
    unknown += f"{n_at_other_clocks} at another SM clock, " if n_at_other_clocks else ""
    unknown += f"{n_counted_otherwise} changed only in the counting runs, " if n_counted_otherwise else ""
    return (
        f"{formatting.counted(n_faster, 'kernel')} faster, {n_slower} slower, {n_unchanged} unchanged, {unknown}{alone}"
    )


def _lost(document: Record) -> Iterator[str]:
    """Yield where kernels may be that one run seems to lack: lost in its damaged report, not profiled, or in other steps."""
    for key, when in (("added", "before"), ("removed", "after")):
        if document[key] and document[when]["damage"]:
            yield f"kernels shown as {key} may be among those that are lost in the damaged run {when}"
        if document[key] and (unclear_ns := document[when]["unclear_ns"]):
            yield (
                f"kernels shown as {key} may be among those of {formatting.duration(unclear_ns)} that were counted "
                f"under other names but not profiled {when}"
            )
        if document[key] and document["summary"]["is_of_other_steps"]:
            yield f"kernels shown as {key} may run in steps that the run {when} does not cover"


def _other_work(document: Record) -> Iterator[str]:
    """Yield that a kernel does far more or less work than before: its input may have changed, and not its code."""
    found = [match for match in document["matches"] if is_other_work(match["work_ratio"] or 1.0)]
    if not found:
        if not document["matches"]:
            yield "no kernel of one run matches a kernel of the other"
        return
    most = max(found, key=lambda match: max(time or 0.0 for time in match["duration_ns"]))
    n_others = len(found) - 1
    others = (
        f", and so {'does' if n_others == 1 else 'do'} {formatting.counted(n_others, 'other kernel')}"
        if n_others
        else ""
    )
    what = WORK_WORDS[most["work_of"]]
    yield f"{match_name(most)} does a different amount of work ({what} ×{most['work_ratio']:.3g}){others}: is the input the same?"


def side(run: Record) -> str:
    """Return a run in a line: its name, its GPUs, launches and time."""
    gpus = ", ".join(map(formatting.printable, run["gpus"])) or "unknown GPU"
    remarks = (" (simulated, not recorded)" if run["is_simulated"] else "") + (
        formatting.DAMAGED if run["damage"] else ""
    )
    return f"{formatting.printable(run['label'])} · {gpus} · {_launches_and_time(run)}{remarks}"


def _launches_and_time(run: Record) -> str:
    """Return the launches of a run, and their time: "250 of 321 launches (69 profiled), 2.83 ms of 3.77 ms".

    Of a run that was counted these are the launches that the profiled ones represent, of all that were counted.
    """
    failed = f"{run['n_failed']} of them failed to profile" if run["n_failed"] else ""
    time = formatting.duration(run["duration_ns"])
    if not run["is_counted"]:
        return ", ".join(filter(None, (formatting.launches(run["n_kernels"]), failed, time)))
    n_launches, n_left, left_ns = run["n_launches"], run["n_not_recorded"], run["not_recorded_ns"]
    launches = (
        f"{n_launches} of {formatting.launches(n_launches + n_left)}" if n_left else formatting.launches(n_launches)
    )
    profiled = ", ".join(filter(None, (f"{run['n_kernels']} profiled", failed)))
    whole = f" of {formatting.duration(run['duration_ns'] + left_ns)}" if left_ns and run["duration_ns"] else ""
    return f"{launches} ({profiled}), {time}{whole}"


def moved(document: Record) -> list[Record]:
    """Return the matches to show: those that changed beyond noise, or in verdict, or, where times are not compared, in amounts.

    Also those that were launched more or less often, where this moved the run's time, and the runs cover the same steps.
    """
    is_comparable = document["comparable"]["time"]
    is_launched_otherwise = is_comparable and not document["summary"]["is_of_other_steps"]
    least_ns = _LEAST_OF_RUN * (document["before"]["duration_ns"] or 0.0)
    return [
        match
        for match in document["matches"]
        if (match["is_significant"] and is_comparable)
        or match["is_counted_otherwise"]
        or (is_launched_otherwise and match["is_launched_otherwise"] and _moved_ns(match) > least_ns)
        or (match["verdict"][0] != match["verdict"][1] and "unknown" not in match["verdict"])
        or (not is_comparable and match["changes"])
        or (match["obstacle"] is not None and any(change["quantity"] != CLOCK for change in match["changes"]))
    ]


def _moved_ns(match: Record) -> float:
    was, became = match["duration_ns"]
    return 0.0 if was is None or became is None else abs(became - was)


def match_name(match: Record) -> str:
    """Return the names of a match, once where they are the same before and after."""
    before, after = (" + ".join(short_group(group) for group in match[side]) for side in ("before", "after"))
    return formatting.printable(before if before == after else f"{before} → {after}")


def short_group(group: Record) -> str:
    """Return the name of a group of launches, no longer than a line has room for."""
    return formatting.kernel_name(group, _MOST_NAME)


def changed_lines(match: Record) -> list[str]:
    """Return the source lines whose time changed most: "1.78 ms → 4.58 ms at gemm.cu:84 · __syncthreads();"."""
    return [
        f"{both_times(change['time_ns'])} at {_changed_place(change)} · {formatting.printable(change['text'])}"
        for change in match["lines"][:_MOST_PLACES]
    ]


def changed_findings(match: Record) -> list[str]:
    """Return the findings that are gone, with what they promised and what came of it, and those that are new.

    "gone: Bank conflicts (up to 30.6 %); time −28.0 %", "new: Low occupancy (up to 12.0 %)".
    """
    found = match["findings"] or {"gone": (), "new": ()}
    change = match["change_frac"] if match["is_significant"] else None
    has_kept = change is None or change < 0  # of a slower kernel nobody asks what a finding promised
    came = f"; time {signed_share(change)}" if change is not None and has_kept else ""
    gone = (_promised(finding) if has_kept else finding["title"] for finding in _largest(found["gone"]))
    lines = [f"gone: {', '.join(gone)}{came}"] if found["gone"] else []
    return lines + ([f"new: {', '.join(map(_promised, _largest(found['new'])))}"] if found["new"] else [])


def _largest(findings: Sequence[Record]) -> list[Record]:
    """Return the findings that save the most at most; those of unknown gain come last."""
    return sorted(findings, key=lambda finding: -(finding["gain_frac"] or 0.0))[:_MOST_FINDINGS]


def _promised(finding: Record) -> str:
    gain = finding["gain_frac"]
    return f"{finding['title']}{'' if gain is None else f' (up to {formatting.share(gain)})'}"


def _changed_place(change: Record) -> str:
    """Return the line after, or the one before where no warp is found any more."""
    before, after = change["line"]
    return place({**change, "line": after}) if after else f"{place({**change, 'line': before})} (before)"


def alone(group: Record, key: str) -> str:
    """Return of a group without a match its launches and time, and what the other run counted of it.

    Args:
        group: of the document.
        key: in which of its lists it is, of ALONE.
    """
    found = f"{formatting.launches(group['n_launches'])}, {formatting.duration(group['duration_ns'])}"
    if (counted := group.get("counted")) is None:
        return found
    when = key.rpartition("_")[2]
    shape = "" if counted["is_same_shape"] else ", in another shape"
    n_launches, duration = formatting.launches(counted["n_launches"]), formatting.duration(counted["duration_ns"])
    return f"{found} (counted {when}{shape}: {n_launches}, {duration})"


def how_matched(match: Record) -> str:
    """Return what kernels were matched by, how sure that is, and their shapes where these differ; "" for the very same."""
    before, after = match["before"], match["after"]
    shapes = [_launched(side[0]) for side in (before, after)] if len(before) == len(after) == 1 else ["", ""]
    if (match["how"], match["sureness"]) == ("same", "certain") and shapes[0] == shapes[1]:
        return ""
    sure = "" if match["sureness"] == "certain" else f" ({match['sureness']})"
    return f"{_WORDS_BY_HOW[match['how']]}{sure}" + (f": {shapes[0]} → {shapes[1]}" if shapes[0] != shapes[1] else "")


def _launched(group: Record) -> str:
    sizes = (formatting.compact_extent(group[size]) for size in ("grid", "block"))
    n_blocks, n_threads = (size.replace("×", " × ") or formatting.MISSING for size in sizes)
    return f"{n_blocks} block{'' if n_blocks == '1' else 's'} of {n_threads}"


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
    parts = [_time(delta, is_counted=any(are_counted)) if is_time_comparable else _not_compared(delta)]
    is_clock_told = delta.obstacle is not None or bool(at_another_clock(delta.clock_frac))
    carried_over = [change for change in delta.changes if not (is_clock_told and change.quantity == CLOCK)]
    shown = [change for change in carried_over if change.explains]
    if (
        not is_time_comparable
    ):  # amounts are compared all the same; of the rest only what explains the difference, if anything does
        shown += [each for each in carried_over if not each.explains and (each.kind == "amount" or not shown)]
    if shown:
        of_what = "that" if is_time_comparable else "the difference in time"
        parts[0] += ": " + ", ".join(f"{_change(each)}{_why(each, of_what)}" for each in shown[:_MOST_EXPLANATIONS])
    elif is_time_comparable and delta.is_significant:
        parts[0] += "; no quantity that compare looks at explains it"
        if alongside := [change for change in delta.changes if change.accompanies][:_MOST_EXPLANATIONS]:
            parts[0] += f" ({', '.join(map(_change, alongside))})"
    if is_time_comparable and delta.is_counted_otherwise:
        parts.append(_counted(delta))
    if _is_bound_otherwise(delta):
        parts.append(f"now {_bound(delta, 1)}, was {_bound(delta, 0)}")
    if delta.is_same_work_in_all:
        parts.append(f"the same work in {formatting.launches(delta.n_launches[1])} instead of {delta.n_launches[0]}")
    elif is_launched_otherwise(delta, are_counted):
        parts.append(f"launches {delta.n_launches[0]} → {delta.n_launches[1]}")
    return "; ".join(parts)


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


def _not_compared(delta: Delta) -> str:
    return "times are not compared" + (f", as {delta.obstacle}" if delta.obstacle else "")


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
        return f"no change beyond measurement noise{recorded} (±{formatting.share(delta.noise_frac)})"
    if is_counted:
        return f"{factor(delta.change_frac)} under ncu ({both_times(delta.mean_ns)})"
    is_per_launch = delta.n_launches[0] != delta.n_launches[1] and not (delta.is_same_work_in_all or delta.is_in_all)
    return factor(delta.change_frac) + (" per launch" if is_per_launch else "") + at_another_clock(delta.clock_frac)


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
