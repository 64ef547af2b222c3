"""The table of kernels as static text, which the page's script replaces: a row per group of equal launches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from ncuroof import formatting
from ncuroof.diagnosis import Rules
from ncuroof.present.explanations.meanings import limiter_label
from ncuroof.present.page.data import dram_intensity
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.actions import most_worth
from ncuroof.present.sentences.breakdowns import extremes
from ncuroof.present.sentences.source_lines import where_sentence
from ncuroof.present.view import LaunchRow, RunView

_N_TOP = 3


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A row of the table of kernels: a group of equal launches."""

    id: Annotated[int, "of the launch that represents the group"]
    name: Annotated[str, "short name, cut to fit, with what distinguishes it from others"]
    cells: Annotated[Mapping[str, str], "cell texts by column key"]
    verdict: Annotated[str, "name of the verdict"]
    verdict_title: Annotated[str, "title of the verdict, or failed"]
    is_limited: Annotated[bool, "whether a limiter is known"]
    advice: Annotated[str, "of the finding that saves most, or empty"]
    where: Annotated[str, "source lines that it concerns, or empty"]


COLUMNS = (
    ("id", "#", "number"),
    ("name", "Kernel", "text"),
    ("launches", "Launches", "number"),
    ("time", "Time", "number"),
    ("share", "Share", "number"),
    ("recoverable", "Above roof", "number"),
    ("verdict", "Verdict", "text"),
    ("limiter", "Limiter", "text"),
    ("intensity", "DRAM FLOP/B", "number"),
    ("efficiency", "Of roofline", "number"),
    ("memory", "Memory", "number"),
    ("compute", "Compute", "number"),
    ("finding", "First finding", "text"),
)
"""Key, title and kind of the columns of the table of kernels."""


def table_columns(kernels: Sequence[KernelEntry]) -> list[tuple[str, str, str]]:
    """Return COLUMNS, with the unit of these kernels' work in the titles."""
    unit = formatting.work_units(kernel["dominant_precision"] or "" for kernel in kernels)
    return [(key, title.replace("FLOP", unit.rpartition(" or ")[2]), kind) for key, title, kind in COLUMNS]


def table_rows(view: RunView, rules: Rules, rows: Iterable[LaunchRow]) -> list[KernelRow]:
    """Return the rows as text.

    Args:
        view: an analysis.
        rules: titles of the verdicts.
        rows: of the view.
    """
    total_ns, names = view.summary["duration_ns"], view.names
    return [_row(view.kernels[row.position], row, total_ns, rules, names[row.position]) for row in rows]


def top_rows(view: RunView, rules: Rules) -> list[KernelRow]:
    """Return the rows of the first groups that have recoverable time, with the extremes of their times."""
    rows = table_rows(view, rules, view.rows[:_N_TOP])
    return [
        replace(
            row,
            cells={**row.cells, "launches": formatting.launches(group["n_launches"]), "extremes": extremes(group)},
        )
        for row, group in zip(rows, view.document["groups"], strict=False)
        if group["recoverable_ns"]
    ]


def _row(kernel: KernelEntry, row: LaunchRow, total_ns: float | None, rules: Rules, name: str) -> KernelRow:
    utilisation = kernel["utilisation"]
    finding = most_worth(kernel["findings"])
    return KernelRow(
        id=kernel["id"],
        name=name,
        cells={
            "id": str(kernel["id"]),
            "launches": str(row.n_launches),
            "time": formatting.duration(row.duration_ns),
            "share": formatting.share(row.duration_ns / total_ns if row.duration_ns is not None and total_ns else None),
            "recoverable": formatting.duration(row.recoverable_ns),
            "limiter": limiter_label(kernel) or formatting.MISSING,
            "intensity": formatting.scaled(dram_intensity(kernel)),
            "efficiency": formatting.share(kernel["min_time_frac"]),
            "memory": formatting.share(utilisation.get("memory")),
            "compute": formatting.share(utilisation.get("compute")),
            "finding": finding["title"] if finding else "",
        },
        verdict=kernel["verdict"],
        is_limited=bool(kernel["limiter"]),
        verdict_title="failed" if kernel["failed"] else rules.verdicts[kernel["verdict"]].title,
        advice=finding["advice"] if finding else "",
        where=where_sentence(finding["where"]) if finding else "",
    )
