"""The summary as Markdown, for issues, pull requests and job summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ncuroof._version import __version__
from ncuroof.formatting import bound_by
from ncuroof.present.analysed import Analysed
from ncuroof.present.sentences.actions import LargestSavings
from ncuroof.present.sentences.breakdowns import BreakdownLine
from ncuroof.present.texts.layout import escaped, table_row
from ncuroof.present.texts.run_summary import KernelLine, run_summary

_N_BREAKDOWN = 10
"""Most families or ranges in a table."""


def to_markdown(analysis: Analysed) -> str:
    """Return the summary as Markdown, with names from the report escaped."""
    summary = run_summary(analysis)
    lines = [f"<!-- ncuroof {__version__} -->", f"# {escaped(summary.title)}", ""]
    if summary.is_simulated:
        lines += ["**Simulated: written by ncuroof, not recorded on a GPU.**", ""]
    lines += [
        f"- {escaped(line)}"
        for line in (*summary.devices, summary.tool, summary.totals, summary.mfu, *summary.notes)
        if line
    ]
    if summary.wall_time:
        lines += ["", *map(_bullet, summary.wall_time)]
    if len(summary.shares) > 1 or summary.n_more:  # a single verdict is in every row of the table of kernels already
        lines += ["", "| bound by | share of time | launches |", "|---|--:|--:|"]
        lines += [table_row((part.title, part.share, str(part.n_launches))) for part in summary.shares]
    lines += _breakdown("code", summary.families) + _breakdown("NVTX range", summary.ranges)
    lines += _actions(summary.outlook)
    if summary.kernels:
        lines += ["", *_kernels(summary.kernels)]
    for line in summary.to_know:
        lines += ["", f"{escaped(line)}."]
    if summary.n_more:
        of_kernels = "group of kernels is" if summary.n_more == 1 else "groups of kernels are"
        lines += ["", f"{summary.n_more} more {of_kernels} not shown."]
    return "\n".join(lines) + "\n"


def _bullet(line: str) -> str:
    """Return a line as an item of a list, nested where it is indented."""
    return f"{'  ' if line.startswith(' ') else ''}- {escaped(line.strip())}"


def _actions(found: LargestSavings) -> Iterator[str]:
    """Yield what saves most over the run, and what changes in kernels save together."""
    if not found.actions:
        return
    yield from ("", f"Expected savings of {found.whole}:", "")
    for line in found.actions:
        where = "; ".join(filter(None, (line.launches, line.most, line.condition)))
        advice = f". {line.advice}" if line.advice else ""
        yield f"1. about {line.expected}: {escaped(line.title)} ({where}){escaped(advice)}"
    if total := "; ".join(found.in_total):
        yield from ("", f"{total[0].upper()}{total[1:]}.")


def _breakdown(title: str, parts: Sequence[BreakdownLine]) -> list[str]:
    """Return the table of the time by family or range; empty for a single part, which the totals cover."""
    if len(parts) < 2:
        return []
    lines = ["", f"| {title} | share of time | time | above roof | launches |", "|---|--:|--:|--:|--:|"]
    for part in parts[:_N_BREAKDOWN]:
        cells = (part.name, part.share, part.duration, part.recoverable, part.launches)
        lines.append(table_row(map(escaped, cells)))
    if len(parts) > _N_BREAKDOWN:
        lines += ["", f"{len(parts) - _N_BREAKDOWN} more are not shown."]
    return lines


def _kernels(kernels: Iterable[KernelLine]) -> Iterator[str]:
    yield "| # | kernel | launches | time | above roof | bound by | first thing to do |"
    yield "|--:|---|--:|--:|--:|---|---|"
    for line in kernels:
        bound = bound_by(line.verdict, line.limiter)
        advice = " · ".join(filter(None, (line.advice, line.where))) + (f" ({line.gain})" if line.gain else "")
        launches = f"{line.n_launches}, {line.extremes}" if line.extremes else str(line.n_launches)
        name = " · ".join(filter(None, (line.name, ", ".join(line.differs_in), line.gpu)))
        cells = (str(line.number), name, launches, line.duration, line.recoverable, bound, advice)
        yield table_row(map(escaped, cells))
