"""What a reader sees first of a run, as plain values: the answer, what to do, what limits the kernels, and notes.

The terminal and notebooks lay it out. All times are of a step where steps were counted, else of the run: a list with shares of
several wholes cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from ncuroof import formatting
from ncuroof.enums import Verdict
from ncuroof.present.analysed import Analysed
from ncuroof.present.documents.analysis import document, utilisation_document
from ncuroof.present.explanations.meanings import verdicts_in_plain_words
from ncuroof.present.schemas.analysis import ActionEntry, AnalysisDocument, SummaryEntry, WallTimeEntry
from ncuroof.present.sentences.actions import whole_time_ns
from ncuroof.present.sentences.savings import saves
from ncuroof.present.sentences.wall_time import wall_times
from ncuroof.present.texts.answer_sentences import SOME, step_or_gpu_time
from ncuroof.present.texts.run_summary import notes, report_names
from ncuroof.present.view import RunView

_MOST_ACTIONS = 12
"""Most rows, of which the terminal shows as many as it has room for."""

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
class TimeShare:
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
    time: tuple[TimeShare, ...]
    whole: str
    actions: tuple[Instruction, ...]
    n_more: int
    limits: tuple[TimeShare, ...]
    kernels: str
    notes: tuple[str, ...]


def answer(analysed: Analysed) -> Answer:
    """Return what a reader sees first of an analysis."""
    view = RunView(document(analysed, ids=_to_look_at(analysed)))
    summary = view.summary
    reports = report_names(analysed)
    lead, then = view.answer
    return Answer(
        title=" · ".join((formatting.first_of(reports, 2), formatting.first_of(_gpus(view.document), 2))),
        is_simulated=view.is_simulated,
        lead=lead,
        then=then,
        time=_time(view.step),
        whole=step_or_gpu_time(summary),
        actions=tuple(_instruction(action, analysed, summary) for action in view.actions[:_MOST_ACTIONS]),
        n_more=max(len(view.actions) - _MOST_ACTIONS, 0),
        limits=tuple(_limits(summary)),
        kernels=_kernels(analysed, summary),
        notes=tuple(
            note for note in notes(analysed, reports, summary) if f"{note.rstrip('.')}.".lower() != lead.lower()
        ),
    )


def _to_look_at(analysed: Analysed) -> list[int]:
    """Return the id of the longest launch without a verdict, in a list; empty if all have one."""
    unknown = analysed.diagnosis.verdicts.filter(pl.col("verdict") == Verdict.UNKNOWN.value).select("id")
    times = analysed.measurements.kernels.select("id", "duration_ns", "failed")
    longest = (
        unknown.join(times, on="id").filter(~pl.col("failed")).sort("duration_ns", descending=True, nulls_last=True)
    )
    return longest["id"].head(1).to_list()


def _gpus(entries: AnalysisDocument) -> list[str]:
    names = [formatting.printable(formatting.gpu_name(device)) for device in entries["devices"]]
    return [f"{names.count(name)} × {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)]


# ---- times -------------------------------------------------------------------------------------------------------------------


def _time(time: WallTimeEntry | None) -> tuple[TimeShare, ...]:
    if time is None:
        return ()
    idle_frac = time["idle_frac"]
    return (TimeShare("working", 1 - idle_frac, None), TimeShare("waiting", idle_frac, None))


def _limits(summary: SummaryEntry) -> Iterator[TimeShare]:
    """Yield what limits the kernels, the largest share first; small shares are added up."""
    words = verdicts_in_plain_words()
    shares = {name: part["share_frac"] for name, part in summary["by_verdict"].items() if part["share_frac"]}
    ranked = sorted(shares, key=lambda each: -shares[each])
    named = ranked if len(ranked) == _N_LIMITS + 1 else ranked[:_N_LIMITS]
    yield from (TimeShare(words[name], shares[name], name) for name in named)
    if rest := ranked[len(named) :]:
        yield TimeShare("other", sum(shares[name] for name in rest), None)


def _kernels(analysed: Analysed, summary: SummaryEntry) -> str:
    said = [formatting.launches(summary["n_launches"])]
    if summary["duration_ns"] is not None:
        said.append(formatting.duration(summary["duration_ns"]))
    at_peak = ""
    if (use := utilisation_document(analysed)) is not None:
        at_peak = f" at {formatting.percent(use['mfu_frac'])} of the {formatting.label(use['precision'])} peak"
    return ", ".join(said) + at_peak


# ---- what to do --------------------------------------------------------------------------------------------------------------


def _instruction(action: ActionEntry, analysed: Analysed, summary: SummaryEntry) -> Instruction:
    is_idle = action["finding"] is None
    return Instruction(
        advice=formatting.first_sentence(action["advice"] or action["title"]).rstrip("."),
        saves=saves(action, whole_time_ns(summary)),
        kernels="" if is_idle else _kernels_of(action, analysed),
        problem=_idle(action, summary) if is_idle else _problem(action),
        where="" if is_idle else action["where"] or "",
    )


def _idle(action: ActionEntry, summary: SummaryEntry) -> str:
    """Return why the GPU idles and in which activities of the host: "waiting for …: 47 % in backward pass"."""
    part = next(part for part in wall_times(summary["weighting"])[0]["parts"] if part["name"] == action["id"])
    places = [place for place in part["during"] if place["name"] and place["duration_ns"] >= SOME * part["duration_ns"]]
    named = (
        f"{formatting.percent(place['duration_ns'] / part['duration_ns'])} in {formatting.printable(place['name'])}"
        for place in places[:2]
    )
    start = part["title"] if part["title"].startswith("waiting") else f"waiting {part['title']}"
    return ": ".join(filter(None, (start, ", ".join(named))))


def _kernels_of(action: ActionEntry, analysed: Analysed) -> str:
    """Return which kernels an action is about: the one that saves most, and the number of others."""
    names = _names(analysed)
    distinct = list(dict.fromkeys(names[number] for number in action["kernels"]))
    others = f" and {len(distinct) - 1} more" if len(distinct) > 1 else ""
    return formatting.printable(distinct[0]) + others


def _problem(action: ActionEntry) -> str:
    n_launches = action["n_launches"] or 0
    launches = f" ({formatting.launches(n_launches)})" if n_launches > 1 else ""
    condition = "; per unit of work, if more blocks run at once" if action["needs_more_work"] else ""
    return f"{launches}: {_lower(formatting.first_clause(action['title']))}{condition}"


def _lower(title: str) -> str:
    """Return a title for the middle of a sentence; a word that begins with two capitals is a name and stays."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _names(analysed: Analysed) -> Mapping[int, str]:
    kernels = analysed.measurements.kernels.select("id", "short_name", "name")
    return {row["id"]: formatting.kernel_name(row) for row in kernels.iter_rows(named=True)}
