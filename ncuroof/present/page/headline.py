"""The run in a few sentences: what it is bound by, whether the GPU is idle, what to do first, and what that saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ncuroof import formatting
from ncuroof.diagnosis import Rules
from ncuroof.present.analysed import Record
from ncuroof.present.explanations.meanings import limiter_in_plain_words
from ncuroof.present.page.launch_rows import launch_names
from ncuroof.present.sentences.actions import PER_WORK, counted_finding, gpu_time, in_kernels, together
from ncuroof.present.sentences.collect_options import (
    RAW_PAGE,
    SHARED_SLICE,
    collect_options,
    is_on_shared_slice,
    raw_page_tells,
)
from ncuroof.present.sentences.remarks import come_first, is_debug_build, to_know_more
from ncuroof.present.sentences.report_names import names_of_several
from ncuroof.present.sentences.savings import about_share
from ncuroof.present.sentences.wall_time import idle_sentence, is_mostly_idle

_MOST_NAME = 60
_LEAST_SECOND_FRAC = 0.1
"""Least share of the time for a second verdict to be mentioned; the bar shows the others."""


def headline(document: Record, rules: Rules) -> tuple[str, ...]:
    """Return up to four sentences; fewer where the report lacks data."""
    weighting = document["summary"].get("weighting")
    idle = idle_sentence(weighting, names_of_several(document["sources"]))
    run, first = [_bound_by(document, rules, gpu_time(document["summary"])), idle], _to_do(document)
    sentences = [*(reversed(run) if is_mostly_idle(weighting) else run), *first]
    return tuple(sentence for sentence in sentences if sentence)


def _bound_by(document: Record, rules: Rules, of_time: str) -> str:
    shares = {
        name: entry["share_frac"]
        for name, entry in document["summary"]["by_verdict"].items()
        if entry["share_frac"] and name in rules.verdicts
    }
    ranked = sorted(shares, key=lambda name: -shares[name])
    if not ranked:
        return _bound_by_without_times(document, rules)
    first, *others = ranked
    if first == "unknown":
        unjudged = formatting.share(shares[first])
        return f"For {unjudged} of {of_time}, the report lacks the counters for a verdict{_to_judge(document)}."
    sentence = (
        f"{formatting.share(shares[first])} of {of_time} is {rules.verdicts[first].title}{_mostly_by(document, first)}"
    )
    if others and shares[others[0]] >= _LEAST_SECOND_FRAC:
        other = "undetermined" if others[0] == "unknown" else rules.verdicts[others[0]].title
        sentence += f", {formatting.share(shares[others[0]])} {other}"
    return f"{sentence}."


def _bound_by_without_times(document: Record, rules: Rules) -> str:
    """Return by what most launches are bound where the report holds no times; empty where there is no verdict either."""
    judged = [kernel for kernel in document["kernels"] if kernel["verdict"] not in {"unknown", "overhead"}]
    if not judged or any(kernel["duration_ns"] for kernel in document["kernels"]):
        return ""
    counts = Counter(kernel["verdict"] for kernel in judged)
    ((verdict, n_launches),) = counts.most_common(1)
    whose = (
        "" if len(document["kernels"]) == 1 else f"{n_launches} of {formatting.launches(len(document['kernels']))}: "
    )
    limiters = {limiter_in_plain_words(each) for each in judged if each["verdict"] == verdict and each["limiter"]}
    limiter = f" ({limiters.pop()})" if len(limiters) == 1 else ""
    return f"{whose}{rules.verdicts[verdict].title}{limiter}; without a duration, what can be saved is not known."


def _to_judge(document: Record) -> str:
    """Return how to know the longest kernel's verdict that is unknown, as ": collect …"; empty where `_to_do` tells it."""
    kernels = [kernel for kernel in document["kernels"] if kernel["verdict"] == "unknown" and kernel["duration_ns"]]
    if not kernels or not in_kernels(document):
        return ""
    longest = max(kernels, key=lambda kernel: kernel["duration_ns"] * kernel.get("weight", 1.0))
    how = to_know_more(longest, document["sources"])
    return f": {how}" if how else ""


def _mostly_by(document: Record, verdict: str) -> str:
    """Return the limiter with the most time among the kernels of a verdict, in parentheses, or nothing."""
    time_by_limiter: dict[str, float] = {}  # in plain words
    for kernel in document["kernels"]:
        if kernel["verdict"] == verdict and kernel["limiter"] and kernel["duration_ns"]:
            time_ns = kernel["duration_ns"] * kernel.get("weight", 1.0)
            limiter = limiter_in_plain_words(kernel)
            time_by_limiter[limiter] = time_by_limiter.get(limiter, 0.0) + time_ns
    if not time_by_limiter or verdict == "overhead":
        return ""
    most = max(time_by_limiter, key=lambda words: time_by_limiter[words])
    return f" ({'mostly ' if len(time_by_limiter) > 1 else ''}{most})"


_SAVED = ("gain_ns", "expected_ns", "expected_low_ns", "expected_high_ns")


@dataclass(frozen=True, slots=True)
class _Advice:
    """An advice, the launch that it saves most, the number of launches that share it, and what they save together."""

    sentence: str
    kernel: Record
    n_launches: int
    saved: Record


def _most_worth(document: Record) -> _Advice | None:
    """Return the wording of the first action's advice, and the kernel, that save most; other families may have other wordings."""
    first_action = in_kernels(document)[0]["finding"]
    gains: dict[tuple[str, str], list[tuple[dict[str, float], Record]]] = {}
    for kernel in document["kernels"]:
        finding = counted_finding(kernel["findings"])
        if finding is not None and finding["id"] == first_action:
            sentence = formatting.first_sentence(finding["advice"])
            weight = kernel.get("weight", 1.0)
            gains.setdefault((sentence, kernel["short_name"]), []).append(
                ({name: finding[name] * weight for name in _SAVED}, kernel)
            )
    if not gains:
        return None
    totals = {named: {name: sum(saved[name] for saved, _ in own) for name in _SAVED} for named, own in gains.items()}
    named = max(totals, key=lambda each: totals[each]["expected_ns"])
    _, kernel = max(gains[named], key=lambda entry: entry[0]["expected_ns"])
    n_launches = round(sum(each.get("n_represented", 1.0) for _, each in gains[named]))
    return _Advice(named[0], kernel, n_launches, totals[named])


def _to_do(document: Record) -> list[str]:
    """Return what to do first, and what that saves.

    Where no gain is known, that is the first advice for the longest kernel, or how to record what is missing. Where most of the
    time is in debug builds, it is the first advice for the longest of them.
    """
    if come_first(document["summary"]["debug_build_frac"]):
        debug_builds = [kernel for kernel in document["kernels"] if is_debug_build(kernel)]
        return [_for_the_longest(document, debug_builds, "the longest debug build")]
    if not in_kernels(document):
        return [_for_the_longest(document, document["kernels"])]
    if document["summary"]["outlook"]["is_mostly_unjudged"]:
        return []  # what to collect is what matters: `_to_judge`
    most = _most_worth(document)
    if most is None:
        return []
    is_second = bool(idle_sentence(document["summary"].get("weighting")))
    start = "Among kernels, start with" if is_second else "Start with"
    return [_first(most, start, _name(document, most.kernel)), _gives(document, most)]


def _first(most: _Advice, where: str, name: str) -> str:
    n_others = most.n_launches - 1
    others = f" and {n_others} other {'launch' if n_others == 1 else 'launches'}" if n_others > 0 else ""
    return f"{where} {name}{others}: {most.sentence}"


def _for_the_longest(document: Record, kernels: Sequence[Record], which: str = "the longest kernel") -> str:
    timed = [kernel for kernel in kernels if kernel["duration_ns"]]
    if not timed:
        found = next((kernel for kernel in kernels if kernel["findings"]), None)
        if found is None:
            return ""
        return f"Start with {_name(document, found)}: {formatting.first_sentence(found['findings'][0]['advice'])}"
    longest = max(timed, key=lambda kernel: kernel["duration_ns"] * kernel.get("weight", 1.0))
    finding = next(iter(longest["findings"]), None)
    if finding is not None:
        return f"Start with {_name(document, longest)}, {which}: {formatting.first_sentence(finding['advice'])}"
    if is_on_shared_slice(longest):
        return f"To learn more, {SHARED_SLICE}."
    options = collect_options(entry["collect"] for entry in longest["missing"])
    if raw_page_tells(longest, document["sources"]):
        return f"To learn more, print the raw page, which holds everything that was collected: ncu {RAW_PAGE} (--import REPORT)."
    return f"To learn more, record again with ncu {options}." if options else ""


def _name(document: Record, kernel: Record) -> str:
    kernels = document["kernels"]
    return formatting.printable(launch_names(kernels, _MOST_NAME)[kernels.index(kernel)])


def _gives(document: Record, most: _Advice) -> str:
    actions, duration_ns = in_kernels(document), document["summary"]["duration_ns"]
    if not duration_ns:
        return ""
    all_together = together(document, is_listed=False)
    saved = about_share(most.saved, duration_ns)
    first = f"That saves {saved} of {gpu_time(document['summary'])}"
    if actions[0]["needs_more_work"]:
        first += f" {PER_WORK}"
    if rest := round(actions[0]["n_launches"] - most.n_launches):
        others = f"in {rest} more {'launch' if rest == 1 else 'launches'}"
        first += f" ({formatting.share(actions[0]['share_frac'])} with the same finding {others})"
    if not all_together:
        return f"{first}."
    if (n_first := document["summary"]["outlook"]["n_first"]) > 1:
        return f"{first}; the top {n_first} changes, {all_together}."
    return f"{first}: {all_together}."
