"""Explain why a text has no launch with values.

It may be the log of an ncu that recorded nothing or printed no tables, and then contains the reason; or the output of a profiler
that does not measure what happens inside of kernels. Source: `profiles/printed.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ncuroof.errors import NcuroofError, ReportEmptyError, ReportFormatError
from ncuroof.formatting import counted
from ncuroof.ingest.printed.console import ConsoleRecords, by_words
from ncuroof.ingest.printed.gui_tables import GuiRecords
from ncuroof.ingest.printed.labels import load_printed_labels
from ncuroof.ingest.printed.lines import as_columns, printed_lines
from ncuroof.ingest.printed.log_messages import RunLog, read_log
from ncuroof.ingest.printed.records import PrintedRecords
from ncuroof.ncu.settings import FOLLOWS_FROM_ANOTHER, NOTHING_PROFILED
from ncuroof.resources import profile_file

_RAW_PAGE = "print the counters themselves: ncu --import REPORT --page raw --csv"

_LEAST_VALUES = 2
"""Fewest labels with values in a text of ncu: a single word such as "Duration" is also in other texts."""

_NO_METRICS = re.compile(r"No metrics to collect")
_EMPTY = "the log of a run of ncu that recorded nothing"
_VALUELESS = "the log of a run of ncu that recorded no values"
_LOST = "the log of a run of ncu that profiled {} and then failed; no values are in it"
_CHECK_FILTERS = (
    "check that the program runs and launches kernels, and ncu's filters (--kernel-name, --launch-skip, --nvtx-include)"
)
_DOCTOR = "run ncuroof doctor on the machine of that run: it checks this and says what to do"


def error_without_launches(
    records: PrintedRecords | GuiRecords | ConsoleRecords, path: Path, name: str
) -> NcuroofError:
    """Return the error for a file without launches.

    Args:
        records: the reader that went through the file: for the terminal, if the file has no table of CSV.
        path: path of the file.
        name: the file's name, for messages.
    """
    if isinstance(records, ConsoleRecords):
        return _error_of_text(records, path, name)
    if records.n_lost:
        return ReportFormatError(
            f"{name}: no row of ncu's table is whole, {records.n_lost} are truncated or malformed", hint=_RAW_PAGE
        )
    return ReportEmptyError(
        f"{name}: the table contains no profiled kernel",
        hint="check ncu's filters (--kernel-name, --launch-skip, --nvtx-include) and what it printed",
    )


def _error_of_text(records: ConsoleRecords, path: Path, name: str) -> NcuroofError:
    if records.n_tables:
        return _error_without_values(records, path, name)
    if records.has_sections:
        return ReportFormatError(
            f"{name}: expected a line with the kernel's name and context above its sections, found none",
            hint="add it above the first section of each kernel: `fn(int) (1, 1, 1)x(32, 1, 1), Context 1`",
        )
    return (
        error_of_log(printed_lines(path, name), name)
        or error_of_other_tool(printed_lines(path, name), name)
        or _error_of_stray_values(printed_lines(path, name), name)
        or ReportFormatError(
            f"{name}: expected an Nsight Compute report or output of ncu, found another text file",
            hint="pass the .ncu-rep file itself, or the output of `ncu --import REPORT --page raw --csv`",
        )
    )


def _error_of_stray_values(lines: Iterable[str], name: str) -> ReportFormatError | None:
    """Return the error for values outside of kernels and sections; None if there are fewer than two of them."""
    labels = load_printed_labels()
    found: dict[str, None] = {}
    for line in map(as_columns, lines):
        cells = by_words(line.strip(), "", labels)
        if cells is not None and labels.knows("", cells.label):
            found[cells.label] = None
        if len(found) == _LEAST_VALUES:
            return ReportFormatError(
                f"{name}: expected a line with the kernel's name above its values, found values without ({', '.join(found)})",
                hint="add one above them, `fn(int) (1, 1, 1)x(32, 1, 1), Context 1`, or the heading of their section, "
                "`Section: GPU Speed Of Light Throughput`",
            )
    return None


def _error_without_values(records: ConsoleRecords, path: Path, name: str) -> NcuroofError:
    """Return the error for a text that names launches, or has sections of an unnamed launch, but no values."""
    if records.has_sections and records.n_lost:
        return ReportFormatError(
            f"{name}: expected tables below the name of their kernel, found names and, apart from them, tables",
            hint="move each line with a kernel's name and context above the first section of the kernel",
        )
    found = "sections" if records.is_unnamed else "kernels' names"
    return error_of_log(printed_lines(path, name), name, has_kernels=True) or ReportFormatError(
        f"{name}: expected tables of labels, units and values, found {found} without any",
        hint="keep all of ncu's output for a kernel: its sections with their tables",
    )


def error_of_log(
    lines: Iterable[str], name: str, *, has_kernels: bool = False
) -> ReportEmptyError | ReportFormatError | None:
    """Return the error for a log of ncu without any table, with ncu's reason; None if the text is not a log of ncu.

    Args:
        lines: the lines of the file.
        name: the file's name.
        has_kernels: whether the log names kernels, though without values. If the log states no reason, the result is None.
    """
    log = read_log(lines)
    if log.is_empty:
        return None
    is_without_metrics = any(map(_NO_METRICS.match, log.warnings))
    stuck = log.stuck
    if has_kernels and not log.errors and not is_without_metrics and stuck is None:
        return None
    is_nothing = any(map(NOTHING_PROFILED.match, log.warnings))
    if log.reports or (log.progress and not log.errors and not is_nothing and not has_kernels and stuck is None):
        return ReportFormatError(
            f"{name}: expected ncu's tables, found only its progress",
            hint=f"pass the report that it wrote: {log.reports[0]}"
            if log.reports
            else "pass the .ncu-rep file that this run wrote",
        )
    if not log.progress and not is_nothing and log.failure is None:
        return None
    what = _VALUELESS if has_kernels else _EMPTY
    what = _LOST.format(counted(log.n_profiled, "kernel")) if log.n_profiled else what
    reason, hint = _reason(log)
    return ReportEmptyError(f"{name}: {what}: {reason}", hint=hint)


def _reason(log: RunLog) -> tuple[str, str]:
    """Return why a run recorded nothing, in our words or in ncu's, and what to do."""
    if log.stuck is not None:
        return log.stuck
    failure = log.failure
    if failure is not None:
        return f"{failure.message} ({failure.id})", _DOCTOR if failure.is_of_machine else failure.hint
    words, *_ = sorted([*log.errors, *log.warnings], key=lambda words: FOLLOWS_FROM_ANOTHER.match(words) is not None)
    return f"ncu says “{words}”", _CHECK_FILTERS


def error_of_other_tool(lines: Iterable[str], name: str) -> ReportFormatError | None:
    """Return the error for the output of a different profiler; None if the text is not from a known one.

    Args:
        lines: the lines of the file.
        name: the file's name.
    """
    with profile_file("printed.toml") as raw:
        tools = [(re.compile(tool["pattern"]), tool) for tool in raw["other_tool"]]
    for line in lines:
        for pattern, tool in tools:
            if pattern.match(line):
                return ReportFormatError(
                    f"{name}: expected an Nsight Compute report or output of ncu, found {tool['name']}",
                    hint=tool["hint"],
                )
    return None
