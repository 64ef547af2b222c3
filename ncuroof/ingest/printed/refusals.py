"""Says what a text contains in which no launch with values was found."""

from __future__ import annotations

from pathlib import Path

from ncuroof.errors import NcuroofError, ReportEmptyError, ReportFormatError
from ncuroof.ingest.printed.console import ConsoleRecords
from ncuroof.ingest.printed.failed_run import error_of_log
from ncuroof.ingest.printed.lines import printed_lines
from ncuroof.ingest.printed.other_tools import error_of_other_tool
from ncuroof.ingest.printed.records import PrintedRecords

_RAW_PAGE = "print the counters themselves: ncu --import REPORT --page raw --csv"
_LONGEST_PREFIX = 60


def error_without_launches(records: PrintedRecords | ConsoleRecords, path: Path, name: str) -> NcuroofError:
    """Return the error for a file without launches.

    Args:
        records: the reader that went through the file: for the terminal, if the file has no table of CSV.
        path: path of the file.
        name: the file's name, for messages.
    """
    if isinstance(records, ConsoleRecords):
        return _of_text(records, path, name)
    if records.n_lost:
        return ReportFormatError(
            f"{name}: no row of ncu's table is whole, {records.n_lost} are truncated or malformed", hint=_RAW_PAGE
        )
    return ReportEmptyError(
        f"{name}: the table contains no profiled kernel",
        hint="check ncu's filters (--kernel-name, --launch-skip, --nvtx-include) and what it printed",
    )


def _of_text(records: ConsoleRecords, path: Path, name: str) -> NcuroofError:
    if records.is_summary:
        return ReportFormatError(
            f"{name}: expected ncu's output for each launch, found sums over several launches (--print-summary)",
            hint=_RAW_PAGE,
        )
    if records.prefix is not None:
        return ReportFormatError(
            f"{name}: expected ncu's lines as it prints them, found them behind {records.prefix.strip()[:_LONGEST_PREFIX]!r}",
            hint="remove what stands before each line, for instance with `cut -c 20-` or `sed 's/^[^|]*| //'`",
        )
    if records.n_tables:
        return _of_names(records, path, name)
    if records.has_sections:
        return ReportFormatError(
            f"{name}: expected a line with the kernel's name and context above its sections, found none",
            hint="add it above the first section of each kernel: `fn(int) (1, 1, 1)x(32, 1, 1), Context 1`",
        )
    return (
        error_of_log(printed_lines(path, name), name)
        or error_of_other_tool(printed_lines(path, name), name)
        or ReportFormatError(
            f"{name}: expected an Nsight Compute report or output of ncu, found another text file",
            hint="pass the .ncu-rep file itself, or the output of `ncu --import REPORT --page raw --csv`",
        )
    )


def _of_names(records: ConsoleRecords, path: Path, name: str) -> NcuroofError:
    """Return the error for a text that names launches, or has sections of an unnamed one, but contains no value of them."""
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
