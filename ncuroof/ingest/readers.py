"""Chooses between the two readers of a report's results: the native one first, NVIDIA's module if the native one declines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from ncuroof.errors import MissingExtraError, NcuroofError, ReaderDeclinedError, ReportAccessError
from ncuroof.ingest.file_content import Content, copy_part
from ncuroof.ingest.framing import Framing
from ncuroof.ingest.native.reader import read_native
from ncuroof.ingest.raw_report import CounterSelection, DeclinedError, ResultTables
from ncuroof.temporary_files import temporary_folder

ReaderName = Literal["auto", "native", "nvidia"]
READERS: tuple[ReaderName, ...] = get_args(ReaderName)


@dataclass(frozen=True, slots=True)
class ReportSource:
    """A report to read.

    Attributes:
        name: the file's name, for error messages.
        content: the report's bytes, decompressed.
        framing: its intact blocks.
        selection: the counters to read; None for all of them.
        path: path of a file with exactly these bytes; None if the file is compressed or damaged.
        on_bytes: called repeatedly with the number of bytes read so far.
    """

    name: str
    content: Content
    framing: Framing
    selection: CounterSelection | None
    path: Path | None
    on_bytes: Callable[[int], None] = lambda _: None


def read_results(source: ReportSource, reader: ReaderName) -> tuple[ResultTables, str | None]:
    """Return the results of a report, and why it was read with the fallback reader, or None.

    Raises:
        ReportFormatError: the report lists more counters of a kind than any GPU has.
        ReportAccessError: no copy can be written for NVIDIA's module, or the file disappeared in the meantime.
        ReaderDeclinedError: the native reader declines, and the module must not be used or is not installed.
        MissingExtraError: NVIDIA's module is requested but not installed.
    """
    if reader == "nvidia":
        return _with_module(source), None
    try:
        return read_native(source.content, source.framing, source.selection, source.name, source.on_bytes), None
    except DeclinedError as declined:
        if reader == "native":
            raise _refusal(source, declined, "read it with NVIDIA's module: --reader nvidia") from declined
        try:
            return _with_module(source), f"read with NVIDIA's module: {declined}"
        except MissingExtraError as error:
            raise _refusal(source, declined, "install NVIDIA's module: pip install 'ncuroof[nvidia]'") from error


def _refusal(source: ReportSource, declined: DeclinedError, hint: str) -> ReaderDeclinedError:
    return ReaderDeclinedError(f"{source.name}: ncuroof's own reader declines it: {declined}", hint=hint)


def _with_module(source: ReportSource) -> ResultTables:
    """Read with NVIDIA's module, from a copy if it could not open the file itself.

    The module decides by the suffix whether a file is compressed, accepts only UTF-8 paths, and reads nothing of a damaged file.
    """
    from ncuroof.ingest.nvidia_module import read_tables  # noqa: PLC0415  most reports are read without

    if source.path is not None and source.path.suffix != ".ncu-repz" and _is_utf8(source.path):
        return read_tables(source.path, source.selection)
    return _from_copy(source)


def _is_utf8(path: Path) -> bool:
    return not any("\udc80" <= character <= "\udcff" for character in str(path))


def _from_copy(source: ReportSource) -> ResultTables:
    """Read with NVIDIA's module from a temporary copy of the intact part: it only accepts paths."""
    from ncuroof.ingest.nvidia_module import read_tables  # noqa: PLC0415  most reports are read without

    try:
        with temporary_folder() as folder:
            copy = folder / "copy.ncu-rep"
            copy_part(source.content, source.framing.intact_bytes, copy)
            return read_tables(copy, source.selection)
    except NcuroofError:
        raise
    except OSError as error:
        raise ReportAccessError(
            f"{source.name}: cannot write a copy of its undamaged part for NVIDIA's module: {error.strerror}",
            hint="set TMPDIR to a folder with more space, or use --reader native",
        ) from error
