"""Opens a report: checks that the file is one, keeps the intact part of a damaged one, and passes it to a reader.

What no reader gives is added from the file: the process that launched each workload, and grid and block shapes of old reports,
which before 2021 were fields of the kernels' results and not counters.

Source: Nsight Compute Customization Guide, "Report File Format": BlockHeader.Process, ProfileResult.GridSize and .BlockSize.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ncuroof.errors import (
    NcuroofError,
    ReaderDeclinedError,
    ReportAccessError,
    ReportEmptyError,
    ReportFormatError,
    ReportNotFoundError,
)
from ncuroof.ingest import wire
from ncuroof.ingest.code.instructions import read_instructions
from ncuroof.ingest.code.modules import code_modules
from ncuroof.ingest.code.static_code import code_table, raw_code
from ncuroof.ingest.embedded_charts import counters_of, read_charts
from ncuroof.ingest.file_content import Content, LoadedFile, Part, close, decompress, part, readable
from ncuroof.ingest.framing import KNOWN_VERSION, SNIFF_BYTES, FileKind, Framing, may_be_report, sniff, walk
from ncuroof.ingest.native.samples import read_samples
from ncuroof.ingest.raw_report import RAW_PROCESSES, RAW_SAMPLES, CounterSelection, RawReport, ResultTables
from ncuroof.ingest.readers import ReaderName, ReportSource, read_results
from ncuroof.ingest.session import Process, processes_of, read_session
from ncuroof.regular_files import head, no_report, oddity

_TIME = "gpu__time_duration.sum"
_SHAPE = tuple(f"launch__{what}_dim_{axis}" for what in ("grid", "block") for axis in "xyz")

_COUNTER_BY_FIELD = {10: "launch__grid_dim", 11: "launch__block_dim"}
_AXIS_BY_FIELD = {1: "x", 2: "y", 3: "z"}
MARK = "launch__grid_dim_x"
"""A report with this counter stores launch shapes as counters, so this module is not needed."""

_GREATEST_ID = 2**63 - 1
"""The largest Int64. A damaged report can contain a larger id; it is read as not known."""


def open_report(
    path: Path,
    *,
    selection: CounterSelection | None = None,
    reader: ReaderName = "auto",
    on_progress: Callable[[float], None] = lambda _: None,
) -> RawReport:
    """Return the report at `path`; of a damaged one, the intact part, with the loss described in `damage`.

    Args:
        path: a `.ncu-rep`, `.ncu-repz` or the older `.nsight-cuprof-report`, or a text file with what ncu printed of one.
        selection: the counters to read; None for all of them.
        reader: what reads the workloads: "native" is ncuroof's own reader, "nvidia" is NVIDIA's module, and "auto" is the native
            reader with the module as fallback if the native reader declines.
        on_progress: called repeatedly with the fraction of the file read so far; only by the native reader.

    Raises:
        ReportNotFoundError: there is no such file, or it is a directory.
        ReportAccessError: the file cannot be read, or was truncated while it was being read.
        ReportFormatError: it is not a report, or no complete workload is left of it.
        ReportEmptyError: it is a complete report in which no kernel was profiled.
        ReaderDeclinedError: the native reader declines, and the module must not be used or is not installed; or the module is
            requested for a printed table.
        MissingExtraError: NVIDIA's module is requested but not installed.
    """
    name = readable(path.name)
    with contextlib.ExitStack() as stack:
        with _refusals(readable(str(path))):
            kind = _kind(path)
            if kind is FileKind.TEXT:
                return _printed(path, name, selection, reader)
            stored = stack.enter_context(_opened(path, name, kind))
        return _read(stored, path, selection, reader, on_progress)


@dataclass(frozen=True, slots=True)
class _Stored:
    """An opened report file.

    Attributes:
        name: the file's name, without its folder.
        file: the file as it is stored.
        content: the report's bytes, decompressed.
        loss: what is wrong with its compression, or None.
    """

    name: str
    file: LoadedFile
    content: Content
    loss: str | None = None


@contextlib.contextmanager
def _opened(path: Path, name: str, kind: FileKind) -> Iterator[_Stored]:
    with LoadedFile(path) as file:
        if kind is not FileKind.ZSTD:
            yield _Stored(name, file, file.content)
            return
        content, loss = decompress(file.content, where=name)
        try:
            yield _Stored(name, file, content, loss)
        finally:
            close(content)


def _read(
    stored: _Stored,
    path: Path,
    selection: CounterSelection | None,
    reader: ReaderName,
    on_progress: Callable[[float], None],
) -> RawReport:
    name, content = stored.name, stored.content
    framing = walk(content, where=name)
    loss = stored.loss or framing.damage
    if framing.n_workloads == 0:
        raise _nothing_inside(name, loss)
    charts = read_charts(content, framing)
    selection = selection.and_names(counters_of(charts)) if selection is not None else None
    is_plain = content is stored.file.content and framing.damage is None
    source = ReportSource(
        name,
        content,
        framing,
        selection,
        path=path if is_plain else None,
        on_bytes=lambda n_bytes: on_progress(n_bytes / len(content)),
    )
    tables, remark = read_results(source, reader)
    n_read = tables.workloads.height
    if n_read == 0:
        raise ReportFormatError(
            f"{name}: none of the report's kernels can be read",
            hint="the file is damaged; copy or record it again",
        )
    session = read_session(block.header for block in framing.blocks)
    is_whole = n_read == framing.n_workloads  # if results are lost, it is not known which
    modules = code_modules(content, framing) if is_whole else {}
    rows = _one_of_each_first(tables)
    return RawReport(
        file=name,
        sha256=stored.file.sha256(),
        session=session,
        workloads=tables.workloads,
        processes=workload_processes(framing, session.processes, n_read),
        counters=_with_shapes(tables.counters, content, framing),
        units=tables.units,
        texts=tables.texts,
        rules=tables.rules,
        code=code_table(content, framing, modules, rows) if is_whole else raw_code([{}] * n_read),
        sections=tables.sections,
        charts=charts,
        damage=_damage(loss, n_read=n_read, n_workloads=framing.n_workloads),
        instructions=read_instructions(content, framing, modules, selection or CounterSelection(frozenset()), rows),
        remarks=tuple(filter(None, (_newer(framing.version), remark))),
        samples=read_samples(content, framing, rows) if is_whole else pl.DataFrame(schema=RAW_SAMPLES),
    )


def report_content(path: Path) -> tuple[bytes, str | None]:
    """Return the bytes of a report, decompressed if necessary, and what is wrong with its compression, or None.

    Raises:
        ReportNotFoundError: there is no such file, or it is a directory.
        ReportAccessError: the file cannot be read.
        ReportFormatError: it does not begin like a report, or nothing can be decompressed.
    """
    name = readable(path.name)
    with _refusals(readable(str(path))):
        kind = _kind(path)
        if kind is FileKind.TEXT:
            raise ReportFormatError(f"{name}: expected a report, found text", hint="pass a .ncu-rep file")
        with _opened(path, name, kind) as stored:
            return bytes(part(stored.content, 0, len(stored.content))), stored.loss


def _with_shapes(counters: pl.DataFrame, content: Content, framing: Framing) -> pl.DataFrame:
    """Return the counters with those of grid and block shape added, which old reports store outside the counters."""
    shapes = None if MARK in counters.columns else launch_shapes(content, framing)
    if shapes is None or shapes.height != counters.height:
        return counters
    found = shapes.select(believable(counters))
    return counters.hstack(found.select(name for name in found.columns if name not in counters.columns))


def _one_of_each_first(tables: ResultTables) -> list[int]:
    """Return all row numbers: first the longest launch of each kernel and launch shape, then the other launches.

    Both groups are sorted by falling duration; without durations they are in file order.
    """
    known = [name for name in (*_SHAPE, _TIME) if name in tables.counters.columns]
    rows = tables.workloads.select("demangled_name").hstack(tables.counters.select(known)).with_row_index("row")
    if _TIME in known:
        rows = rows.sort(_TIME, descending=True, nulls_last=True, maintain_order=True)
    alike = [name for name in rows.columns if name not in ("row", _TIME)]
    is_another = pl.int_range(pl.len()).over(alike) > 0
    return rows.sort(is_another, maintain_order=True)["row"].to_list()


def _kind(path: Path) -> FileKind:
    """Return what kind of file this is, reading no more than its first bytes.

    Raises:
        ReportFormatError: it is neither a report nor text.
        ReportNotFoundError, ReportAccessError, OSError: it cannot be read.
    """
    _require_file(path.stat(), readable(str(path)))
    beginning = head(path, SNIFF_BYTES)
    kind = sniff(beginning)
    if not may_be_report(beginning):
        walk(beginning, where=readable(path.name))  # raises an error that says what the file is instead
    return kind


def _printed(path: Path, name: str, selection: CounterSelection | None, reader: ReaderName) -> RawReport:
    """Return the report in a text file that ncu printed; the reader for it is imported only when needed."""
    if reader == "nvidia":
        raise ReaderDeclinedError(
            f"{name}: NVIDIA's module reads reports, not tables printed by ncu", hint="leave out --reader nvidia"
        )
    from ncuroof.ingest.printed.report import read_printed  # noqa: PLC0415

    return read_printed(path, name, selection)


@contextlib.contextmanager
def _refusals(where: str) -> Iterator[None]:
    """Turn the operating system's errors on reading a file into ncuroof's own."""
    try:
        yield
    except NcuroofError:
        raise
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        if where == "-":
            raise ReportNotFoundError("-: a report cannot be read from standard input", hint="pass a file") from error
        raise no_report(where) from error
    except OSError as error:
        raise ReportAccessError(f"{where}: cannot be read: {error.strerror}", hint="check its permissions") from error


def require_report(path: Path) -> None:
    """Raise unless a file may be a report or what ncu printed of one, by its kind, size and first bytes.

    Raises:
        ReportNotFoundError: there is no such file, or it is a directory.
        ReportAccessError: it is not a regular file, is too large, or cannot be read.
        ReportFormatError: it is something else.
    """
    with _refusals(readable(str(path))):
        _kind(path)


_HINT_BY_ODDITY = {
    "a directory": "pass the .ncu-rep file inside it",
    "a pipe or device": "write the report to a file first",
}


def _require_file(status: os.stat_result, where: str) -> None:
    """Raise unless the file is a regular one of a size that can be read."""
    found = oddity(status)
    if found is None:
        return
    error = ReportNotFoundError if found == "a directory" else ReportAccessError
    hint = _HINT_BY_ODDITY.get(found, "a sparse file or a disk image; pass the report itself")
    raise error(f"{where}: expected a report file, found {found}", hint=hint)


def _nothing_inside(name: str, loss: str | None) -> ReportFormatError | ReportEmptyError:
    if loss is not None:
        return ReportFormatError(
            f"{name}: no complete kernel is left in the file: {loss}",
            hint="the file was truncated or damaged, perhaps while copying; copy or record it again",
        )
    return ReportEmptyError(
        f"{name}: the report contains no profiled kernel",
        hint="check ncu's filters (--kernel-name, --launch-skip, --nvtx-include) and what it printed",
    )


def _damage(loss: str | None, *, n_read: int, n_workloads: int) -> str | None:
    if loss is not None:
        return f"{loss}; everything after it is lost"
    if n_read < n_workloads:
        return f"{n_workloads - n_read} of {n_workloads} results are malformed and lost"
    return None


def _newer(version: int) -> str | None:
    if version <= KNOWN_VERSION:
        return None
    return f"its file version {version} is newer than {KNOWN_VERSION}, the latest known: what is new in it is not read"


def launch_shapes(content: Content, framing: Framing) -> pl.DataFrame | None:
    """Return `launch__{grid,block}_dim_{x,y,z}` of all kernels, in file order.

    None if the report has workloads other than kernels or a result that cannot be read: the rows could then be misaligned.
    """
    if any(kind != "kernel" for kind, _ in framing.results):
        return None
    try:
        rows = [_shape(part(content, *span)) for _, span in framing.results]
    except wire.WireError:
        return None
    names = [f"{counter}_{axis}" for counter in _COUNTER_BY_FIELD.values() for axis in _AXIS_BY_FIELD.values()]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Float64()), orient="row")


def believable(counters: pl.DataFrame) -> list[pl.Expr]:
    """Return the columns of `launch_shapes`, null where x · y · z contradicts `launch__grid_size` or `launch__block_size`.

    The oldest reports (2020) store the grid there in threads instead of blocks.
    """
    columns = []
    for counter in _COUNTER_BY_FIELD.values():
        axes = [f"{counter}_{axis}" for axis in _AXIS_BY_FIELD.values()]
        size = counter.replace("_dim", "_size")
        counted = pl.lit(counters[size] if size in counters.columns else pl.Series([None] * counters.height))
        product = pl.col(axes[0]) * pl.col(axes[1]) * pl.col(axes[2])
        is_sound = (product == counted).fill_null(value=True)
        columns += [pl.when(is_sound).then(pl.col(axis)).alias(axis) for axis in axes]
    return columns


def _shape(result: Part) -> dict[str, float]:
    shape: dict[str, float] = {}
    for number, _, value in wire.fields(result):
        counter = _COUNTER_BY_FIELD.get(number)
        if counter is not None and not isinstance(value, int):
            for axis, _, extent in wire.fields(value):
                if axis in _AXIS_BY_FIELD:
                    shape[f"{counter}_{_AXIS_BY_FIELD[axis]}"] = float(wire.as_int(extent))
        if number > max(_COUNTER_BY_FIELD):
            break  # fields are stored in order; the thousands of counters that follow need not be walked
    return shape


def workload_processes(framing: Framing, known: tuple[Process, ...], n_read: int) -> pl.DataFrame:
    """Return RAW_PROCESSES, one row per workload that was read.

    A session with a single process owns all workloads. Otherwise a row is null if its block names no process, and every row is null
    if results were lost, because it is not known which.

    Args:
        framing: the report's blocks.
        known: the processes of its session.
        n_read: number of workloads that the reader returned.
    """
    only = known[0] if len(known) == 1 else None
    rows: list[Process | None] = []
    if only is None:
        for block in framing.blocks:
            if block.n_workloads:
                rows += [next(processes_of(block.header), None)] * block.n_workloads
    if len(rows) != n_read:
        rows = [only] * n_read
    cells = [
        (process.id if process.id <= _GREATEST_ID else None, process.name) if process else (None, None)
        for process in rows
    ]
    return pl.DataFrame(cells, schema=RAW_PROCESSES, orient="row")
