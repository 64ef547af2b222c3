"""What the terminal shows on request: the detail of a run (--verbose), and its kernels as a table (--kernels).

It fits 80 columns, uses wider terminals, says the same without colour, and never cuts advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from ncuroof.formatting import bound_by
from ncuroof.present.analysed import Analysed
from ncuroof.present.palette import verdict_colours
from ncuroof.present.sentences.breakdowns import BreakdownLine, VerdictShare
from ncuroof.present.sentences.wall_time import PLACES_INDENT
from ncuroof.present.texts.layout import (
    LEAST_NAME_WIDTH,
    LEAST_WORD_WIDTH,
    WIDTH,
    filled,
    fitted,
    fitted_names,
    fitting,
)
from ncuroof.present.texts.run_summary import KernelLine, RunSummary, run_summary

MARK_BY_VERDICT = {"memory": "█", "compute": "▓", "balanced": "▒", "latency": "░", "overhead": "·", "unknown": "?"}
"""Character of a verdict in bars: it identifies the verdict where there is no colour."""

_COLUMN_WIDTHS = (4, 8, 10, 26)
"""Columns of number, time, recoverable time and bound; the name takes the rest."""

_BREAKDOWN_WIDTHS = (5, 8, 8, 19, 7)
"""Columns of title, share, time, recoverable time and launches; the name takes the rest."""

_N_BREAKDOWN = 4
"""Most lines for the time by family, and for that by range."""

_MOST_NAME_WIDTH = 120
_MOST_WHERE = 36
_LEAST_FILLED_WIDTH = 16
"""Least width of text beside its start; on narrower terminals, its other lines are not indented."""

_HANGING = re.compile(r" *(?:\S+ %|→) +")
"""Start of a line of prose; its other lines are indented by as much."""


def detail(analysed: Analysed, width: int) -> Iterator[Text]:
    """Yield lines on what was recorded where, a step's time, time by verdict, code and range, and the first kernels."""
    summary = run_summary(analysed)
    yield from _head(summary, width)
    if summary.wall_time:
        yield Text()
        yield from (Text(each) for line in summary.wall_time for each in _wrapped(line, width))
    if any(part.share_frac is not None for part in summary.shares):
        yield Text()
        yield from _legend(summary.shares)
    breakdowns = (("code", summary.families), ("NVTX", summary.ranges))
    names = [line.name for _, lines in breakdowns for line in lines[:_N_BREAKDOWN]]
    for title, lines in breakdowns:
        if len(lines) > 1:
            yield Text()
            yield from _breakdown(title, lines, _name_width(_BREAKDOWN_WIDTHS, names, width))
    if summary.outlook.in_total:
        yield Text()
        yield from (each for line in summary.outlook.in_total for each in prose(f"· {line}", width))
    yield Text()
    yield from _table(summary, width)


def kernel_table(analysed: Analysed, width: int, n_kernels: int | None) -> Iterator[Text]:
    """Yield a line for each group of equal launches, with its advice below; those with the most time above the roofline first.

    Args:
        analysed: an analysis.
        width: of the lines, in cells.
        n_kernels: most groups to list; None for all.
    """
    yield from _table(run_summary(analysed, n_kernels=n_kernels), width)


def _table(summary: RunSummary, width: int) -> Iterator[Text]:
    if summary.kernels:
        yield from _kernels(summary.kernels, width)
    yield from (Text(each) for line in summary.to_know for each in hanging("→ ", line.split(), width))
    if summary.n_more:
        n_all = summary.n_more + len(summary.kernels)
        yield Text(f"{summary.n_more} of {n_all} kernels not shown: --kernels all", style="dim")


def _head(summary: RunSummary, width: int) -> Iterator[Text]:
    """Yield what was recorded where, and the totals."""
    for line in filter(None, (*summary.devices, summary.tool, summary.totals, summary.mfu)):
        yield from prose(line, width)


def _legend(shares: tuple[VerdictShare, ...]) -> list[Text]:
    legend = []
    for part in shares:
        mark, color = MARK_BY_VERDICT[part.name], verdict_colours()[part.name]
        launches = "launches" if part.n_launches != 1 else "launch"
        line = Text.assemble((mark * 2, color), f" {part.title:<15}{part.share:>8}  {part.n_launches:>6} {launches}")
        legend.append(line)
    return legend


def _name_width(others: Sequence[int], names: Iterable[str], width: int) -> int:
    """Return the width of the name column: what 80 columns leave, more if the longest name needs it and the terminal is wider.

    On terminals that leave less than the least width, rows are cut at the right.
    """
    taken = sum(others) + len(others)
    wanted = max([WIDTH - taken, *map(cell_len, names)])
    return max(min(width - taken, wanted), LEAST_NAME_WIDTH)


def _breakdown(title: str, lines: tuple[BreakdownLine, ...], name_width: int) -> list[Text]:
    """Return time by family or range in a few lines; the last one gives the number of those not shown."""
    n_shown = len(lines) if len(lines) <= _N_BREAKDOWN else _N_BREAKDOWN - 1
    title_width, *widths = _BREAKDOWN_WIDTHS
    shown = []
    for number, line in enumerate(lines[:n_shown]):
        cells = (line.share, line.duration, f"{line.recoverable} above roof", f"×{line.launches}")
        numbers = " ".join(f"{cell:>{cell_width}}" for cell, cell_width in zip(cells, widths, strict=True))
        name = set_cell_size(fitted(line.name, name_width), name_width)
        shown.append(
            Text(f"{'' if number else title:<{title_width}} {name} {numbers}", no_wrap=True, overflow="ellipsis")
        )
        shown[-1].stylize("dim", 0, title_width)
    if n_shown < len(lines):
        shown.append(Text(f"{'':<{title_width}} and {len(lines) - n_shown} more", style="dim"))
    return shown


def _kernels(lines: tuple[KernelLine, ...], width: int) -> Iterator[Text]:
    """Yield a line per kernel, with its advice below."""
    name_width = _name_width(_COLUMN_WIDTHS, _names(lines, _MOST_NAME_WIDTH), width)
    header = _row(("#", "kernel", "time", "above roof", "bound by"), name_width)
    header.stylize("dim")
    yield header
    for line, name in zip(lines, _names(lines, name_width), strict=True):
        bound = bound_by(line.verdict, line.limiter)
        row = _row((str(line.number), name, line.duration, line.recoverable, bound), name_width)
        row.stylize("bold", _COLUMN_WIDTHS[0] + 1, _COLUMN_WIDTHS[0] + 1 + name_width)
        row.stylize(verdict_colours()[line.verdict], len(row) - len(fitted(bound, _COLUMN_WIDTHS[-1])))
        yield row
        if line.advice:
            yield from _advice(line, width)


def _row(cells: tuple[str, str, str, str, str], name_width: int) -> Text:
    number, name, duration, recoverable, bound = cells
    widths = _COLUMN_WIDTHS
    return Text(
        f"{number:>{widths[0]}} {set_cell_size(name, name_width)} {duration:>{widths[1]}} {recoverable:>{widths[2]}} "
        f"{fitted(bound, widths[3])}",
        no_wrap=True,
        overflow="ellipsis",
    )


def _names(lines: Sequence[KernelLine], n_cells: int) -> list[str]:
    """Return kernels' names, cut to fit, with distinguishing words, GPU, launch count and spread of times, which are not cut."""
    rests = [_rest(line, n_cells) for line in lines]
    names = fitted_names([line.name for line in lines], [n_cells - cell_len(rest) for rest in rests])
    return [name + rest for name, rest in zip(names, rests, strict=True)]


def _rest(line: KernelLine, n_cells: int) -> str:
    """Return what follows a kernel's name, with as many distinguishing words as leave room for the name."""
    rest = f" · {line.gpu}" if line.gpu else ""
    rest += f" ×{line.n_launches}" if line.n_launches > 1 else ""
    rest += f" ±{line.spread}" if line.spread else ""
    return _last_that_fit(line.differs_in, n_cells - LEAST_NAME_WIDTH - cell_len(rest)) + rest


def _last_that_fit(words: tuple[str, ...], n_cells: int) -> str:
    """Return as many of the last distinguishing words as fit, behind a dot; the first ones are shared by more names."""
    tails = [f" · {', '.join(words[first:])}" for first in range(len(words))]
    for tail in tails:
        if cell_len(tail) <= n_cells:
            return tail
    return fitted(tails[-1], n_cells) if tails and n_cells >= LEAST_WORD_WIDTH else ""


def _advice(line: KernelLine, width: int) -> list[Text]:
    where = [f"· {fitted(line.where, _MOST_WHERE)}"] if line.where else []
    gain = [f"({line.gain})"] if line.gain else []
    start = f"{'':>{_COLUMN_WIDTHS[0]}} → "
    return [Text(each) for each in hanging(start, (*line.advice.split(), *where, *gain), width)]


def _wrapped(line: str, width: int) -> Iterable[str]:
    """Return a line about wall-clock time wrapped to the width; a list of places, which are names, is cut instead."""
    if line.startswith(PLACES_INDENT):
        return [fitted(line, width)]
    start = found[0] if (found := _HANGING.match(line)) else ""
    return hanging(start, line[len(start) :].split(), width)


def prose(line: str, width: int, *, style: str = "") -> Iterator[Text]:
    """Yield a line wrapped to the width, without indentation."""
    return (Text(each, style=style) for each in filled("", fitting(line.split(" "), width), width))


def hanging(start: str, words: Iterable[str], width: int) -> Iterator[str]:
    """Yield words wrapped to the width; what is too wide for a narrow terminal is parted, not cut."""
    rest = width - cell_len(start)
    if rest < _LEAST_FILLED_WIDTH:
        return filled("", fitting((*start.split(), *words), width), width)
    return filled(start, fitting(words, rest), width)
