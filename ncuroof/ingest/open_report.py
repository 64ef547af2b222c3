"""Opening a report: check that it is one, keep what is whole of a damaged one, and hand it to a reader."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Protocol

from ncuroof.errors import ReportAccessError, ReportEmptyError, ReportFormatError, ReportNotFoundError
from ncuroof.ingest.compressed import decompress
from ncuroof.ingest.container import SNIFF_BYTES, Container, FileKind, sniff, walk
from ncuroof.ingest.nvidia_module import Contents, read_contents
from ncuroof.ingest.raw_report import CounterSelection, RawReport
from ncuroof.ingest.session import read_session


class ReportReader(Protocol):
    """Reads the workloads of an undamaged report file."""

    def __call__(self, path: Path, selection: CounterSelection | None) -> Contents:
        """Return the report's workloads with the selected counters (all of them for None)."""


def open_report(
    path: Path, *, selection: CounterSelection | None = None, reader: ReportReader = read_contents
) -> RawReport:
    """Return the report at `path`; of a damaged one, what is whole, with the loss told in `damage`.

    Args:
        path: a `.ncu-rep`, or the older `.nsight-cuprof-report`.
        selection: the counters to read; all of them for None.
        reader: what reads the workloads.

    Raises:
        ReportNotFoundError: there is no such file, or it is a directory.
        ReportAccessError: the file cannot be read.
        ReportFormatError: it is not a report, or no complete workload is left of it.
        ReportEmptyError: it is a whole report in which no kernel was profiled.
    """
    stored = _bytes(path)
    is_compressed = sniff(stored[:SNIFF_BYTES]) is FileKind.ZSTD
    content = decompress(stored, where=path.name) if is_compressed else stored
    container = walk(content, where=path.name)
    if container.n_workloads == 0:
        raise _nothing_inside(path, container)
    if is_compressed or container.damage is not None or path.suffix == ".ncu-repz":
        contents = _read_copy(content[: container.intact_bytes], path, selection, reader)
    else:
        contents = reader(path, selection)
    return RawReport(
        file=path.name,
        sha256=hashlib.sha256(stored).hexdigest(),
        session=read_session(block.header for block in container.blocks),
        workloads=contents.workloads,
        counters=contents.counters,
        units=contents.units,
        texts=contents.texts,
        rules=contents.rules,
        sections=contents.sections,
        damage=_damage(container, n_read=contents.workloads.height),
    )


def _bytes(path: Path) -> bytes:
    if path.is_dir():
        raise ReportNotFoundError(
            f"{path}: a report file was wanted, a directory was found",
            hint="name the .ncu-rep file inside it",
        )
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ReportNotFoundError(
            f"{path}: no such file", hint="check the path; ncu adds .ncu-rep to the name given with -o"
        ) from error
    except OSError as error:
        raise ReportAccessError(f"{path}: cannot be read: {error.strerror}", hint="check its permissions") from error


def _nothing_inside(path: Path, container: Container) -> ReportFormatError | ReportEmptyError:
    if container.damage is not None:
        return ReportFormatError(
            f"{path.name}: no complete kernel is left in the file: {container.damage}",
            hint="the file was cut or damaged, perhaps while copying; copy or record it again",
        )
    return ReportEmptyError(
        f"{path.name}: a report with profiled kernels was wanted, it holds none",
        hint="ncu profiled no kernel: check its filters (--kernel-name, --launch-skip, --nvtx-include) and its output",
    )


def _read_copy(content: bytes, path: Path, selection: CounterSelection | None, reader: ReportReader) -> Contents:
    """Read the workloads from a copy on disk: NVIDIA's module takes paths, and believes their suffix."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.with_suffix(".ncu-rep").name
        copy.write_bytes(content)
        return reader(copy, selection)


def _damage(container: Container, *, n_read: int) -> str | None:
    lost = container.n_workloads - n_read
    if container.damage is not None:
        return f"{container.damage}; what follows it is lost"
    if lost > 0:
        return f"{lost} of {container.n_workloads} results are malformed and lost"
    return None
