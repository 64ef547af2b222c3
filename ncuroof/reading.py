"""The verbs that begin with files: read reports, compare runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from io import IOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncuroof.analysis import Analysis, PathLike, Reports
from ncuroof.collect.counts import Counts, counts_beside
from ncuroof.errors import ArgumentError, ReportNotFoundError, UnknownNameError
from ncuroof.ingest import READERS, RawReport, ReaderName, open_reports
from ncuroof.metrics import selection

if TYPE_CHECKING:
    from ncuroof.compare import Comparison, Side

BASELINE_SUFFIX = ".json"


def read(
    paths: PathLike | Sequence[PathLike],
    *,
    reader: ReaderName = "auto",
    n_processes: int = 1,
    lines: bool = True,
    on_progress: Callable[[float], None] = lambda _: None,
) -> Reports:
    """Return the report, or reports, at `paths`; of several files with the same content the first.

    Counts of launches beside a report (`run.counts.json` beside `run.ncu-rep`, by `ncuroof profile`) are read with it.

    Args:
        paths: of one report, or of several, or of what ncu prints of them.
        reader: "native" is ncuroof's own, "nvidia" NVIDIA's module, and "auto" our own, and the module where ours declines.
        n_processes: the most processes that read several large files. Those besides this one start anew, so that a script that
            asks for them must be one that can be imported (`if __name__ == "__main__":`).
        lines: whether to read what is known by line of the source; without, findings have no places.
        on_progress: called again and again with the share of all bytes that is read, 1 at the end.

    Raises:
        ReportNotFoundError: no report is named, there is no such file, or it is a directory.
        ReportAccessError: a file cannot be read.
        ReportFormatError: a file is not a report, or nothing of it can be read.
        ReportEmptyError: a report holds no profiled kernel.
        ReaderDeclinedError: the native reader declines, and the module is not to be asked or not installed.
        MissingExtraError: NVIDIA's module is asked for and not installed.
        CountsError: the counts beside a report are not what ncuroof writes.
        UnknownNameError: there is no such reader.
        ArgumentError: something else than a path is named, or the number of processes is none.
    """
    if reader not in READERS:
        raise UnknownNameError(f"no reader {reader!r}", hint=f"use one of: {', '.join(READERS)}")
    is_one = isinstance(paths, (str, bytes, os.PathLike, IOBase)) or not isinstance(paths, Iterable)
    named: Any = [paths] if is_one else paths
    files: list[PathLike] = list(named)
    if wrong := [type(each).__name__ for each in files if not isinstance(each, (str, os.PathLike))]:
        raise ArgumentError(f"the path of a report was wanted, found {wrong[0]}", hint="pass a path, or a list of them")
    if not isinstance(n_processes, int):
        found = type(n_processes).__name__
        raise ArgumentError(
            f"a number of processes was wanted, found {found}", hint="pass a whole number, as n_processes=4"
        )
    if not files:
        raise ReportNotFoundError("a report was wanted, none was named", hint="name one .ncu-rep file or more")
    every = open_reports(
        [Path(file) for file in files],
        selection=selection(lines=lines),
        reader=reader,
        n_processes=n_processes,
        on_progress=on_progress,
    )
    by_content: dict[str, RawReport] = {}
    counts: list[Counts | None] = []
    repeated = []
    for file, report in zip(files, every, strict=True):
        first = by_content.setdefault(report.sha256, report)
        if first is not report:
            repeated.append((report.file, first.file))
            continue
        counts.append(counts_beside(Path(file)))
    return Reports(tuple(by_content.values()), tuple(repeated), tuple(counts))


def compare(before: Analysis | PathLike, after: Analysis | PathLike) -> Comparison:
    """Return what changed from one run to another: matches, times, what explains them, what can be compared at all.

    Args:
        before: an analysis, or the path of a report or of a baseline (.json) of `ncuroof compare --save-baseline`.
        after: the same of the run after.

    Raises:
        NcuroofError: a report cannot be read, as `read` says, or a file is no baseline.
        ArgumentError: one of them is something else.
    """
    from ncuroof.compare import compare as compared  # noqa: PLC0415  comparing is not needed to read

    return compared(side_of(before), side_of(after))


def side_of(run: Analysis | PathLike) -> Side:
    """Return a run as one side of a comparison: an analysis, or the path of a report or of a baseline."""
    from ncuroof.compare import read_baseline  # noqa: PLC0415  comparing is not needed to read

    if isinstance(run, Analysis):
        return run.side()
    if not isinstance(run, (str, os.PathLike)):
        raise ArgumentError(
            f"an analysis or the path of a report was wanted, found {type(run).__name__}",
            hint="pass a path, or ncuroof.read(path).analyse()",
        )
    path = Path(run)
    return read_baseline(path) if path.suffix == BASELINE_SUFFIX else read(path).analyse().side()
