"""What a comparison says: the change as a whole, its runs, and of each match what it was matched by and what goes with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from ncuroof import formatting
from ncuroof.comparison import WORK_WORDS, is_beyond, is_other_work
from ncuroof.present.analysed import Record
from ncuroof.present.schemas.comparison import (
    CandidateEntry,
    ChangeSummaryEntry,
    ComparisonDocument,
    FindingChangeEntry,
    LineChangeEntry,
    MatchedGroupEntry,
    MatchEntry,
    RunEntry,
)
from ncuroof.present.schemas.kernels import InlinedEntry
from ncuroof.present.sentences.match_change import CLOCK, at_another_clock, both_times, factor, settled_by, signed_share
from ncuroof.present.sentences.source_lines import place

_LEAST_OF_RUN = 0.01
"""Of the GPU time before: a kernel that was launched more or less often is shown where its time changed by more."""

Alone = Literal["added", "removed", "not_recorded_before", "not_recorded_after"]
"""A list of the document with groups without a match."""

ALONE: Mapping[Alone, str] = {
    "added": "added",
    "removed": "removed",
    "not_recorded_before": "not profiled before",
    "not_recorded_after": "not profiled after",
}
"""These lists, with what to call their groups."""

_LEAST_OF_AMBIGUOUS = 0.05
"""Of the GPU time before: a kernel that takes less may stay ambiguous without a word."""

_MOST_NAME = 60
_MOST_PLACES = 3
_MOST_FINDINGS = 3
_WORDS_BY_HOW = {
    "same": "same name and shape",
    "moved": "same name and shape, other NVTX range",
    "shape": "same name",
    "renamed": "renamed kernel",
    "variant": "variant of the same kernel",
    "version": "version of the same kernel",
    "place": "same position in the run",
    "fused": "kernels fused into one",
    "split": "one kernel split into several",
    "rewritten": "kernels rewritten as others",
    "chosen": "chosen with --pair",
}


def outcome(document: ComparisonDocument) -> Iterator[str]:
    """Yield the change as a whole, or why the runs are not compared, and what else is to be known of it."""
    summary, comparable = document["summary"], document["comparable"]
    is_of_launches = summary["obstacle"] or _is_launched_otherwise(document)
    if summary["matched_change_frac"] is not None and is_of_launches and not document["is_chosen"]:
        yield f"launch for launch, over the kernels that both runs launched: {_of_matched(summary)}"
    if not comparable["time"]:
        yield from (f"times are not compared: {formatting.printable(reason)}" for reason in comparable["reasons"])
    elif document["is_chosen"] and len(document["matches"]) > 1:
        yield from ()  # of the steps of a series there is no sum
    elif summary["obstacle"] is not None:
        yield f"sums over the whole runs say nothing: {formatting.printable(summary['obstacle'])}"
    elif summary["duration_change_frac"] is not None:
        yield _of_the_run(document)
    if step := _step(document["before"], document["after"]):
        yield step
    remarks = (*comparable["remarks"], *_lost(document), *_other_work(document), *_unsettled(document))
    yield from (f"note: {formatting.printable(remark)}" for remark in remarks)
    yield _counts(summary, is_time_comparable=comparable["time"])


def _of_the_run(document: ComparisonDocument) -> str:
    """Return how much faster or slower the run is, where that is known."""
    before, after, summary = document["before"], document["after"], document["summary"]
    change, noise = summary["duration_change_frac"] or 0.0, summary["noise_frac"] or 0.0
    counted = " in the counting runs, without ncu" if after["is_counted"] else ""
    if not is_beyond(change, noise):
        whose = "their" if document["is_chosen"] else "a step's" if summary["is_per_step"] else "the run's"
        return f"{whose} GPU time did not change beyond measurement noise{counted} (±{formatting.share(noise)})"
    is_sure = any(match["sureness"] != "guess" for match in document["matches"])
    condition = "" if is_sure else ", if both do the same work"
    return f"{_subject(document)} {factor(change)}{_at_clock(before, after)}{counted}{condition}"


def _subject(document: ComparisonDocument) -> str:
    """Return what the GPU times are of: a step's time on the wall is another one, and chosen kernels are not the run."""
    if document["is_chosen"]:
        return "the chosen kernel is"
    if document["summary"]["is_per_step"]:
        return "the kernels of a step together are"
    return "the kernels together are" if _step(document["before"], document["after"]) else "the run is"


def _at_clock(before: RunEntry, after: RunEntry) -> str:
    was, became = before["sm_clock_hz"], after["sm_clock_hz"]
    return at_another_clock(became / was - 1) if was and became else ""


def _step(before: RunEntry, after: RunEntry) -> str:
    """Return how long a step takes (wall-clock time); empty where it is not known for both runs. GPU time alone does not say it."""
    was, became = before["step_ns"], after["step_ns"]
    if not was or became is None:
        return ""
    idle = " → ".join(formatting.share(side["idle_frac"]) for side in (before, after))
    took = f"{formatting.duration(was)} → {formatting.duration(became)} ({formatting.signed_percent(became / was - 1)})"
    return f"a step takes {took}; the GPU is idle for {idle} of it"


def _of_matched(summary: ChangeSummaryEntry) -> str:
    change, noise = summary["matched_change_frac"] or 0.0, summary["matched_noise_frac"] or 0.0
    return (
        factor(change)
        if is_beyond(change, noise)
        else f"no change beyond measurement noise (±{formatting.share(noise)})"
    )


def _is_launched_otherwise(document: ComparisonDocument) -> bool:
    """Return whether one run has kernels that the other has not, or launched some more often in the same steps."""
    if any(document[key] for key in ALONE):
        return True
    return not document["summary"]["is_of_other_steps"] and any(
        match["is_launched_otherwise"] for match in document["matches"]
    )


def _counts(summary: ChangeSummaryEntry, *, is_time_comparable: bool) -> str:
    counts: Record = summary
    numbers = ((counts[f"n_{key}"], words) for key, words in ALONE.items())
    alone = ", ".join(f"{number} {words}" for number, words in numbers if number or words in {"added", "removed"})
    if not is_time_comparable:
        return f"{formatting.counted(summary['n_matches'], 'kernel')} matched, {alone}"
    n_faster, n_slower, n_unknown = summary["n_faster"], summary["n_slower"], summary["n_unknown"]
    n_at_other_clocks = summary["n_at_other_clocks"]
    n_counted_otherwise = summary["n_counted_otherwise"]
    n_ambiguous = summary["n_ambiguous"]
    n_unchanged = (
        summary["n_matches"] - n_ambiguous - n_faster - n_slower - n_unknown - n_at_other_clocks - n_counted_otherwise
    )
    unchanged = f"{n_unchanged} unchanged" + (f", {n_ambiguous} ambiguous" if n_ambiguous else "")
    unknown = f"{n_unknown} without a known time, " if n_unknown else ""
    unknown += f"{n_at_other_clocks} at another SM clock, " if n_at_other_clocks else ""
    unknown += f"{n_counted_otherwise} changed only in the counting runs, " if n_counted_otherwise else ""
    return f"{formatting.counted(n_faster, 'kernel')} faster, {n_slower} slower, {unchanged}, {unknown}{alone}"


def _lost(document: ComparisonDocument) -> Iterator[str]:
    """Yield where kernels may be that one run seems to lack: lost in its damaged report, not profiled, or in other steps."""
    of_before = ("added", "before", document["added"], document["before"])
    of_after = ("removed", "after", document["removed"], document["after"])
    for key, when, groups, run in (of_before, of_after):
        if groups and run["damage"]:
            yield f"kernels shown as {key} may be among those that are lost in the damaged run {when}"
        if groups and (unclear_ns := run["unclear_ns"]):
            yield (
                f"kernels shown as {key} may be among those of {formatting.duration(unclear_ns)} that were counted "
                f"under other names but not profiled {when}"
            )
        if groups and document["summary"]["is_of_other_steps"]:
            yield f"kernels shown as {key} may run in steps that the run {when} does not cover"


def _other_work(document: ComparisonDocument) -> Iterator[str]:
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
    what = WORK_WORDS[most["work_of"] or ""]
    yield f"{match_name(most)} does a different amount of work ({what} ×{most['work_ratio']:.3g}){others}: is the input the same?"


def _unsettled(document: ComparisonDocument) -> Iterator[str]:
    """Yield what is ambiguous of the kernel that takes most of the time among those whose outcome is, where that is much."""
    found = [match for match in document["matches"] if match["outcome"] == "ambiguous"]
    most = max(found, key=lambda match: match["duration_ns"][0] or 0.0, default=None)
    if most and (most["duration_ns"][0] or 0.0) >= _LEAST_OF_AMBIGUOUS * (document["before"]["duration_ns"] or 0.0):
        change = f"{signed_share(most['change_frac'] or 0.0)} ± {formatting.share(most['noise_frac'])}"
        yield f"ambiguous: {match_name(most)}: {change}{settled_by(most['n_to_settle'])}"


def side(run: RunEntry) -> str:
    """Return a run in a line: its name, its GPUs, launches and time."""
    gpus = ", ".join(map(formatting.printable, run["gpus"])) or "unknown GPU"
    remarks = (" (simulated, not recorded)" if run["is_simulated"] else "") + (
        formatting.DAMAGED if run["damage"] else ""
    )
    return f"{formatting.printable(run['label'])} · {gpus} · {_launches_and_time(run)}{remarks}"


def _launches_and_time(run: RunEntry) -> str:
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


def moved(document: ComparisonDocument) -> list[MatchEntry]:
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


def slower(document: ComparisonDocument) -> list[MatchEntry]:
    """Return the matches that got slower beyond noise and are no guess, those that cost most first."""
    found = [match for match in document["matches"] if match["outcome"] == "slower" and match["sureness"] != "guess"]
    return sorted(found, key=lambda match: -cost_ns(match))


def cost_ns(match: MatchEntry) -> float:
    """Return how much more GPU time all launches of a match take than before; 0 where that is not known."""
    was, became = match["duration_ns"]
    return 0.0 if was is None or became is None else float(became - was)


def _moved_ns(match: MatchEntry) -> float:
    was, became = match["duration_ns"]
    return 0.0 if was is None or became is None else abs(became - was)


def match_name(match: MatchEntry) -> str:
    """Return the names of a match, once where they are the same before and after."""
    return _names(match["before"], match["after"])


def _names(*sides: Sequence[MatchedGroupEntry]) -> str:
    before, after = (" + ".join(map(short_group, groups)) for groups in sides)
    return formatting.printable(before if before == after else f"{before} → {after}")


def short_group(group: MatchedGroupEntry) -> str:
    """Return the name of a group of launches, no longer than a line has room for."""
    return formatting.kernel_name(group, _MOST_NAME)


def changed_lines(match: MatchEntry) -> list[str]:
    """Return the source lines whose time changed most: "1.78 ms → 4.58 ms at gemm.cu:84 · __syncthreads();"."""
    return [
        f"{both_times(change['time_ns'])} at {_changed_place(change)} · {formatting.printable(change['text'] or '')}"
        for change in match["lines"][:_MOST_PLACES]
    ]


def changed_findings(match: MatchEntry) -> list[str]:
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


def _largest(findings: Sequence[FindingChangeEntry]) -> list[FindingChangeEntry]:
    """Return the findings that save the most at most; those of unknown gain come last."""
    return sorted(findings, key=lambda finding: -(finding["gain_frac"] or 0.0))[:_MOST_FINDINGS]


def _promised(finding: FindingChangeEntry) -> str:
    gain = finding["gain_frac"]
    return f"{finding['title']}{'' if gain is None else f' (up to {formatting.share(gain)})'}"


def _changed_place(change: LineChangeEntry) -> str:
    """Return the line after, or the one before where no warp is found any more."""
    before, after = change["line"]
    at: InlinedEntry = {"file": change["file"], "line": after or before or 0, "callers": change["callers"]}
    return place(at) if after else f"{place(at)} (before)"


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


def candidate(found: CandidateEntry) -> str:
    """Return that two kernels without a match may belong together, why, and the option that compares them."""
    names = _names([found["before"]], [found["after"]])
    option = formatting.printable(shlex.quote(found["pair"]))
    return f"perhaps {names} ({'; '.join(found['why'])}): compare them with --pair {option}"


def how_matched(match: MatchEntry) -> str:
    """Return what kernels were matched by, how sure that is, and their shapes where these differ; "" for the very same."""
    before, after = match["before"], match["after"]
    shapes = [_launched(side[0]) for side in (before, after)] if len(before) == len(after) == 1 else ["", ""]
    if (match["how"], match["sureness"]) == ("same", "certain") and shapes[0] == shapes[1]:
        return ""
    sure = "" if match["sureness"] == "certain" else f" ({match['sureness']})"
    reasons = [*match["why"], *([" → ".join(shapes)] if shapes[0] != shapes[1] else [])]
    return f"{_WORDS_BY_HOW[match['how']]}{sure}" + (f": {'; '.join(reasons)}" if reasons else "")


def _launched(group: MatchedGroupEntry) -> str:
    sizes = (formatting.compact_extent(group[size]) for size in ("grid", "block"))
    n_blocks, n_threads = (size.replace("×", " × ") or formatting.MISSING for size in sizes)
    return f"{n_blocks} block{'' if n_blocks == '1' else 's'} of {n_threads}"
