"""What a reader sees first of a run, as plain values: the answer, what to do, what limits the kernels, and notes.

The terminal and notebooks lay it out. All times are of a step where steps were counted, else of the run: a list with shares of
several wholes cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import polars as pl

from ncuroof import formatting
from ncuroof.enums import Verdict
from ncuroof.present.analysed import Analysed, Record
from ncuroof.present.documents.analysis import document
from ncuroof.present.explanations.meanings import verdicts_in_plain_words
from ncuroof.present.sentences.actions import step_ns, without_gain
from ncuroof.present.sentences.collect_options import (
    RAW_PAGE,
    SHARED_SLICE,
    is_on_shared_slice,
    raw_page_tells,
)
from ncuroof.present.sentences.remarks import come_first, debug_build_sentence, to_know_more
from ncuroof.present.sentences.savings import saves
from ncuroof.present.sentences.wall_time import wall_times
from ncuroof.present.texts.run_summary import is_simulated, notes, report_names

_MOST_ACTIONS = 12
"""Most rows, of which the terminal shows as many as it has room for."""

_LEAST_SAVED = 0.005
"""Smallest share of the whole, saved at most, for a row of its own; the first row needs none of it to be the answer."""

_MOSTLY, _SOME = 0.5, 0.1
"""Shares of a time from which on it is most of it, and worth a sentence."""

_AT_THE_ROOF = 0.6
"""Share of the time that the roofline needs from which on a run without savings counts as near the roof (a choice)."""

_N_LIMITS = 3
"""Most parts of what limits the kernels to name; the others are added up where there are several."""


SIMULATED = "simulated: written by ncuroof, not recorded on a GPU"


@dataclass(frozen=True, slots=True)
class Instruction:
    """Something to do.

    Attributes:
        advice: what to do: the first sentence of the advice.
        saves: what that saves: "about 4 ms, at most 8.8 ms".
        kernels: the kernels that it is about; empty for idle time.
        problem: what is wrong with them, or why the GPU is idle.
        where: the source line; empty where none is known.
    """

    advice: str
    saves: str
    kernels: str
    problem: str
    where: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a time: its name, its share, and the verdict that gives its colour; no verdict for idle time and the rest."""

    name: str
    share_frac: float
    verdict: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader sees first of a run.

    Attributes:
        title: the reports and the GPUs.
        is_simulated: whether a report was written by ncuroof, not recorded on a GPU.
        lead: the answer in a sentence or two.
        then: what else belongs to it, or empty.
        time: what the GPU does in a step; empty where that is not known, or it is hardly idle.
        whole: the time that savings are part of: "a step of 13.9 ms".
        actions: what to do, by what is expected to be saved.
        n_more: further actions.
        limits: what limits the kernels.
        kernels: the kernels that this is about: "321 launches, 3.35 ms".
        notes: what a reader must know before trusting the numbers, the most important first.
    """

    title: str
    is_simulated: bool
    lead: str
    then: str
    time: tuple[Part, ...]
    whole: str
    actions: tuple[Instruction, ...]
    n_more: int
    limits: tuple[Part, ...]
    kernels: str
    notes: tuple[str, ...]


def answer(analysed: Analysed) -> Answer:
    """Return what a reader sees first of an analysis."""
    entries = document(analysed, ids=_to_look_at(analysed))
    summary = entries["summary"]
    reports = report_names(analysed)
    actions = _worth_a_row(entries)
    lead, then = _lead(entries, actions)
    return Answer(
        title=" · ".join((formatting.first_of(reports, 2), formatting.first_of(_gpus(entries), 2))),
        is_simulated=is_simulated(analysed),
        lead=lead,
        then=then,
        time=_time(summary),
        whole=_whole(summary),
        actions=tuple(_instruction(action, analysed, entries) for action in actions[:_MOST_ACTIONS]),
        n_more=max(len(actions) - _MOST_ACTIONS, 0),
        limits=tuple(_limits(summary)),
        kernels=_kernels(analysed, summary),
        notes=tuple(
            note for note in notes(analysed, reports, summary) if f"{note.rstrip('.')}.".lower() != lead.lower()
        ),
    )


def _to_look_at(analysed: Analysed) -> list[int]:
    """Return the launch to look at where a verdict is missing: the longest without one; empty where there is none."""
    unknown = analysed.diagnosis.verdicts.filter(pl.col("verdict") == Verdict.UNKNOWN.value).select("id")
    times = analysed.measurements.kernels.select("id", "duration_ns", "failed")
    longest = (
        unknown.join(times, on="id").filter(~pl.col("failed")).sort("duration_ns", descending=True, nulls_last=True)
    )
    return longest["id"].head(1).to_list()


def _gpus(entries: Record) -> list[str]:
    names = [formatting.printable(formatting.gpu_name(device)) for device in entries["devices"]]
    return [f"{names.count(name)} × {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)]


# ---- the sentences -----------------------------------------------------------------------------------------------------------


def _lead(entries: Record, actions: Sequence[Record]) -> tuple[str, str]:
    """Return the answer, and what else belongs to it."""
    summary = entries["summary"]
    n_measured = summary["n_kernels"] - summary["n_failed"]
    if not n_measured and "selection" in summary:
        return (
            "None of the selected launches was measured.",
            "ncu failed to profile them; other launches are not affected.",
        )
    if not n_measured:
        return "No launch was measured.", "Nothing can be said about this run before it is recorded again."
    if come_first(summary["debug_build_frac"]):
        said = debug_build_sentence(summary)
        return f"{said[0].upper()}{said[1:]}.", ""
    timed = _of_step(summary, actions)
    if timed:
        return timed
    takes = _takes(summary)
    if _unknown_frac(summary) > _MOSTLY:
        return _counters_missing(entries, summary)
    return takes, _what_saves(entries, actions)


def _takes(summary: Record) -> str:
    launches = formatting.launches(summary["n_launches"])
    launches = f"{launches[0].upper()}{launches[1:]}"
    if summary["duration_ns"] is None:
        return (
            f"{launches}; the report does not say how long {'it takes' if summary['n_launches'] == 1 else 'they take'}."
        )
    verb = "takes" if summary["n_launches"] == 1 else "take"
    return f"{launches} {verb} {formatting.duration(summary['duration_ns'])} of GPU time{_mostly(summary)}."


def _mostly(summary: Record) -> str:
    """Return what limits most of the time: ", 62 % of it limited by too little work in flight"; empty where nothing stands out."""
    shares = {name: part["share_frac"] or 0.0 for name, part in summary["by_verdict"].items()}
    most = max(shares, key=lambda name: shares[name], default=None)
    if most is None or most == Verdict.UNKNOWN.value or shares[most] < _MOSTLY:
        return ""
    how_much = "" if (share := percent(shares[most])) == "100 %" else f" {share} of it"
    return f",{how_much} limited by {verdicts_in_plain_words()[most]}"


def _what_saves(entries: Record, actions: Sequence[Record]) -> str:
    """Return what the first change saves; where nothing saves anything, how near the roof the run is, and what is left to do."""
    summary = entries["summary"]
    if actions:
        first = actions[0]
        per_work = " of the time per unit of work" if first["needs_more_work"] else ""
        return f"The first change below saves {saves(first, _whole_ns(summary))}{per_work}."
    duration_ns, recoverable_ns = summary["duration_ns"], summary["recoverable_ns"]
    if not duration_ns or recoverable_ns is None:
        return "Nothing that ncuroof knows would save much of it."
    least_ns = max(duration_ns - recoverable_ns, 0.0)
    found = summary["outlook"]
    fusion = without_gain(found["near_dram_roof_frac"], found["too_short_frac"])
    if least_ns < _AT_THE_ROOF * duration_ns:
        needs = f"These bytes and this arithmetic need only {formatting.duration(least_ns)} of it on this GPU"
        return f"{needs}; {fusion}." if fusion else f"{needs}, but no counter in the report says what takes the rest."
    least = f"{formatting.duration(least_ns)} of it is the least that these bytes and this arithmetic need on this GPU"
    rest = f"; {fusion}" if fusion else ": move fewer bytes or compute less to save more"
    return f"The kernels are near the roof: {least}{rest}."


def _counters_missing(entries: Record, summary: Record) -> tuple[str, str]:
    """Return that most of the time has no verdict, and how to get one."""
    unknown = percent(_unknown_frac(summary))
    of_time = "" if unknown == "100 %" else f" for {unknown} of the GPU time"
    lead = f"The report lacks the counters that say what limits the kernels{of_time}."
    how = _how_to_record(entries)
    return f"{lead} {how}".rstrip(), _takes(summary)


def _how_to_record(entries: Record) -> str:
    if not entries["kernels"]:
        return ""
    (kernel,) = entries["kernels"]
    if is_on_shared_slice(kernel):
        return f"{SHARED_SLICE[0].upper()}{SHARED_SLICE[1:]}."
    if raw_page_tells(kernel, entries["sources"]):
        return f"Print everything that was collected: ncu --import REPORT {RAW_PAGE}."
    options = to_know_more(kernel, entries["sources"]).removeprefix("collect ")
    return f"Record again with ncuroof profile, or with ncu {options}." if options else ""


def _unknown_frac(summary: Record) -> float:
    """Return the share of the time without a verdict, of the launches where no time is known."""
    unknown = summary["by_verdict"].get(Verdict.UNKNOWN.value)
    if unknown is None:
        return 0.0
    share_frac: float | None = unknown["share_frac"]
    return unknown["n_launches"] / max(summary["n_launches"], 1) if share_frac is None else share_frac


def _of_step(summary: Record, actions: Sequence[Record]) -> tuple[str, str] | None:
    """Return how long a step takes, for how much of it the GPU waits, and why; None where no timeline tells."""
    times = wall_times(summary.get("weighting"))
    if not times or "selection" in summary:
        return None
    time = times[0]
    idle_ns = time["idle_frac"] * time["duration_ns"]
    busy, idle = formatting.duration(time["duration_ns"] - idle_ns), formatting.duration(idle_ns)
    which = "A step" if time["n_steps"] else "The run"
    takes = f"{which} takes {formatting.duration(time['duration_ns'])}."
    if time["idle_frac"] < _SOME:
        return f"{takes} The GPU works for nearly all of it.{_first_is(actions, summary)}", ""
    longest = max(
        (part for part in time["parts"] if part["is_idle"]), key=lambda part: part["share_frac"], default=None
    )
    cause = ""
    if longest:
        word = "mostly" if longest["share_frac"] > _MOSTLY * time["idle_frac"] else "longest"
        cause = f", {word} {longest['title'].removeprefix('waiting ')}"
    lead = f"{takes} The GPU works for {busy} (kernels and copies) and waits for {idle} ({percent(time['idle_frac'])}){cause}."
    if not time["n_steps"]:
        return lead, "That includes start-up and warm-up: ncuroof profile --step N measures a later step alone."
    if actions and actions[0]["finding"] is None:
        return lead, "Start there: no change to a kernel is expected to save as much."
    return lead, _first_is(actions, summary).strip()


def _first_is(actions: Sequence[Record], summary: Record) -> str:
    return f" The first change below saves {saves(actions[0], _whole_ns(summary))}." if actions else ""


# ---- times -------------------------------------------------------------------------------------------------------------------


def _whole_ns(summary: Record) -> float | None:
    gpu_ns: float | None = summary["duration_ns"]
    whole_ns = None if "selection" in summary else step_ns(summary)
    return gpu_ns if whole_ns is None else whole_ns


def _whole(summary: Record) -> str:
    """Return the time that savings are part of: "a step of 13.9 ms", "3.35 ms"; empty where it is not known."""
    whole_ns = _whole_ns(summary)
    if whole_ns is None:
        return ""
    of_step = "selection" not in summary and step_ns(summary) is not None
    return f"a step of {formatting.duration(whole_ns)}" if of_step else formatting.duration(whole_ns)


def _time(summary: Record) -> tuple[Part, ...]:
    times = wall_times(summary.get("weighting"))
    if not times or "selection" in summary or times[0]["idle_frac"] < _SOME:
        return ()
    idle_frac = times[0]["idle_frac"]
    return (Part("working", 1 - idle_frac, None), Part("waiting", idle_frac, None))


def _limits(summary: Record) -> Iterator[Part]:
    """Yield what limits the kernels, the largest share first; small shares are added up."""
    words = verdicts_in_plain_words()
    shares = {name: part["share_frac"] for name, part in summary["by_verdict"].items() if part["share_frac"]}
    ranked = sorted(shares, key=lambda each: -shares[each])
    named = ranked if len(ranked) == _N_LIMITS + 1 else ranked[:_N_LIMITS]
    yield from (Part(words[name], shares[name], name) for name in named)
    if rest := ranked[len(named) :]:
        yield Part("other", sum(shares[name] for name in rest), None)


def _kernels(analysed: Analysed, summary: Record) -> str:
    said = [formatting.launches(summary["n_launches"])]
    if summary["duration_ns"] is not None:
        said.append(formatting.duration(summary["duration_ns"]))
    at_peak = ""
    if analysed.measurements.kernels["nvtx"].list.len().sum():
        found = analysed.expected.utilisation
        if found is not None:
            use = asdict(found)
            at_peak = f" at {percent(use['mfu_frac'])} of the {formatting.label(use['precision'])} peak"
    return ", ".join(said) + at_peak


def percent(share_frac: float) -> str:
    """Return a share in whole percent: "62 %", "<1 %"; the first screen needs no more."""
    rounded = round(100 * share_frac)
    if rounded == 0 and share_frac > 0:
        return "<1 %"
    return ">99 %" if rounded == 100 and share_frac < 1 else f"{rounded} %"


# ---- what to do --------------------------------------------------------------------------------------------------------------


def _worth_a_row(entries: Record) -> list[Record]:
    """Return the actions that save enough of the whole for a row, in their order."""
    whole_ns = _whole_ns(entries["summary"])
    known = [action for action in entries["actions"] if action["gain_ns"]]
    return [action for action in known if not whole_ns or action["gain_ns"] >= _LEAST_SAVED * whole_ns]


def _instruction(action: Record, analysed: Analysed, entries: Record) -> Instruction:
    summary = entries["summary"]
    is_idle = action["finding"] is None
    return Instruction(
        advice=formatting.first_sentence(action["advice"] or action["title"]).rstrip("."),
        saves=saves(action, _whole_ns(summary)),
        kernels="" if is_idle else _kernels_of(action, analysed),
        problem=_idle(action, summary) if is_idle else _problem(action),
        where="" if is_idle else action["where"] or "",
    )


def _idle(action: Record, summary: Record) -> str:
    """Return why the GPU idles and in which activities of the host: "waiting for …: 47 % in backward pass"."""
    part = next(part for part in wall_times(summary["weighting"])[0]["parts"] if part["name"] == action["id"])
    places = [
        place for place in part["during"] if place["name"] and place["duration_ns"] >= _SOME * part["duration_ns"]
    ]
    named = (
        f"{percent(place['duration_ns'] / part['duration_ns'])} in {formatting.printable(place['name'])}"
        for place in places[:2]
    )
    start = part["title"] if part["title"].startswith("waiting") else f"waiting {part['title']}"
    return ": ".join(filter(None, (start, ", ".join(named))))


def _kernels_of(action: Record, analysed: Analysed) -> str:
    """Return which kernels an action is about: the one that saves most, and the number of others."""
    names = _names(analysed)
    distinct = list(dict.fromkeys(names[number] for number in action["kernels"]))
    others = f" and {len(distinct) - 1} more" if len(distinct) > 1 else ""
    return formatting.printable(distinct[0]) + others


def _problem(action: Record) -> str:
    launches = f" ({formatting.launches(action['n_launches'])})" if action["n_launches"] > 1 else ""
    condition = "; per unit of work, if more blocks run at once" if action["needs_more_work"] else ""
    return f"{launches}: {_lower(formatting.first_clause(action['title']))}{condition}"


def _lower(title: str) -> str:
    """Return a title for the middle of a sentence; a word that begins with two capitals is a name and stays."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _names(analysed: Analysed) -> Mapping[int, str]:
    kernels = analysed.measurements.kernels.select("id", "short_name", "name")
    return {row["id"]: formatting.kernel_name(row) for row in kernels.iter_rows(named=True)}
