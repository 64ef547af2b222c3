"""A dataset of reports on a file system, and the reports to load into it.

    DATASET/ncuroof.json                              name of the schema
    DATASET/kernels/gpu=h100/<sha256>.parquet         rows of one report (schema FLEET)
    DATASET/failures/<hash of the location>.parquet   a report that could not be loaded (schema FLEET_FAILURES)

Each file appears whole or not at all. So there is no index, any number of writers may work at once, and a report whose file exists
is done. A report with several kinds of GPU is still one file, in the partition `gpu=several`; each of its rows names its GPU.

Reports are found by files, folders and patterns. Both may lie on any file system that fsspec knows.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ncuroof.errors import DatasetError, MissingExtraError, ReportNotFoundError
from ncuroof.fleet import FLEET, FLEET_FAILURES, SCHEMA
from ncuroof.temporary_files import remove_left_over, write_at_once

_MARK = "ncuroof.json"
_KERNELS, _FAILURES = "kernels", "failures"
_SUFFIX = ".parquet"
_SCHEMA_KEY = "ncuroof.schema"

_WHOLE_OR_NOT_AT_ALL = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "memory"})
"""Stores in which an object appears only once it is complete; elsewhere, a temporary file is written and renamed."""

_READ_BY_POLARS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl"})
"""Stores that polars reads directly, so that it fetches only the parts of files that a query needs."""

_LOCAL = frozenset({"", "file", "local"})

SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
"""Suffixes of reports in a folder; a file that is named explicitly may have any name."""

_MAGIC = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset at a location: a path, or a URL that fsspec understands. It can be pickled for other processes.

    Attributes:
        location: the path or URL without a trailing slash.
    """

    location: str

    @classmethod
    def at(cls, location: str) -> Dataset:
        """Return the dataset at a location, which need not exist yet; a path becomes absolute.

        Raises:
            DatasetError: the location names no folder, such as `s3://` or `/`.
        """
        protocol, separator, place = location.partition("://")
        if not separator:
            place = location = str(Path(location).absolute())
        if not place.strip("/") or (separator and not protocol):
            raise DatasetError(
                f"{location}: expected the place of a dataset, found no folder in it",
                hint="name a folder, or a bucket such as s3://BUCKET/FOLDER",
            )
        return cls(location.rstrip("/"))

    @property
    def is_in_memory(self) -> bool:
        """Whether the dataset is in this process's memory, and ends with it."""
        return self._protocol == "memory"

    @property
    def _protocol(self) -> str:
        """What stands before "://" in the location; "" for a path."""
        return self.location.partition("://")[0] if "://" in self.location else ""

    def prepare(self) -> None:
        """Create the dataset if it does not exist, and remove what writers that were killed left half-written.

        Raises:
            DatasetError: the location holds something else, or cannot be written to.
        """
        if not self._has_mark():
            fs, root = self._open()
            try:
                is_other = fs.exists(root) and bool(fs.ls(root, detail=False))
            except OSError as error:
                raise DatasetError(f"{self.location}: cannot be read: {error}", hint="name a folder") from error
            if is_other:
                raise DatasetError(
                    f"{self.location}: expected a dataset or an empty folder, found something else",
                    hint="name a new folder with -o",
                )
            self._put(_MARK, json.dumps({"schema": SCHEMA}).encode() + b"\n")
        if self._protocol in _LOCAL:
            _, root = self._open()
            for folder, _, _ in os.walk(root):
                remove_left_over(Path(folder))

    def check(self) -> None:
        """Check that there is a dataset of this schema.

        Raises:
            DatasetError: there is none.
            MissingExtraError: fsspec is not installed.
        """
        if not self._has_mark():
            raise DatasetError(
                f"{self.location}: expected a dataset of reports, found none",
                hint="write one with: ncuroof ingest REPORT… -o DATASET",
            )

    def hashes(self) -> frozenset[str]:
        """Return the SHA-256 hashes of the reports in the dataset."""
        return frozenset(_base(path).removesuffix(_SUFFIX) for path in self._find(_KERNELS))

    def labels(self, sha256: str) -> dict[str, str]:
        """Return the labels of a report, value by name; empty if it is not in the dataset, or its file is not valid Parquet.

        Raises:
            DatasetError: the file cannot be read.
        """
        fs, root = self._open()
        labels: dict[str, str] = {}
        for path in fs.glob(f"{root}/{_KERNELS}/gpu=*/{sha256}{_SUFFIX}"):
            try:
                rows = pl.read_parquet(io.BytesIO(fs.cat_file(path)), columns=["labels"])
            except pl.exceptions.PolarsError:
                continue
            except OSError as error:
                raise DatasetError(f"{path}: cannot be read: {error}", hint="check permissions") from error
            labels |= {each["name"]: each["value"] for each in rows["labels"].explode().unique().drop_nulls()}
        return labels

    def put_report(self, rows: pl.DataFrame) -> None:
        """Write the rows of one report as one file, which appears whole."""
        self._put(f"{_KERNELS}/{partition(rows)}/{rows['report_sha256'][0]}{_SUFFIX}", _parquet(rows))

    def drop_report(self, sha256: str, *, but: pl.DataFrame) -> None:
        """Delete a report's files outside the partition of `but`, its current rows: an earlier version named its GPU otherwise."""
        fs, root = self._open()
        stays = f"{root}/{_KERNELS}/{partition(but)}/{sha256}{_SUFFIX}"
        for path in fs.glob(f"{root}/{_KERNELS}/gpu=*/{sha256}{_SUFFIX}"):
            if path != stays:
                fs.rm_file(path)

    def put_failure(self, failure: Mapping[str, str]) -> None:
        """Record that a report could not be loaded."""
        rows = pl.DataFrame([failure], schema=FLEET_FAILURES)
        self._put(_failure_name(failure["report_location"]), _parquet(rows))

    def forget_failures(self, locations: Sequence[str]) -> None:
        """Delete the records of failures of reports that have been loaded since."""
        fs, root = self._open()
        noted = set(self._find(_FAILURES))
        for path in {f"{root}/{_failure_name(location)}" for location in locations} & noted:
            fs.rm_file(path)

    def kernels(self) -> pl.LazyFrame:
        """Return the rows of all reports (schema FLEET), lazily.

        Raises:
            DatasetError: there is no dataset, or a file of it cannot be read.
        """
        return self._scan(_KERNELS, FLEET)

    def failures(self) -> pl.LazyFrame:
        """Return the reports that could not be loaded (schema FLEET_FAILURES), lazily."""
        return self._scan(_FAILURES, FLEET_FAILURES)

    def _scan(self, folder: str, schema: pl.Schema) -> pl.LazyFrame:
        self.check()
        paths = self._find(folder)
        if not paths:
            return pl.LazyFrame(schema=schema)
        fs, _ = self._open()
        sources: list[Any] = paths
        if self._protocol in _READ_BY_POLARS:
            sources = [fs.unstrip_protocol(path) for path in paths]
        elif self._protocol not in _LOCAL:
            sources = [io.BytesIO(fs.cat_file(path)) for path in paths]
        return pl.scan_parquet(
            sources,
            schema=schema,
            missing_columns="insert",
            extra_columns="ignore",
            hive_partitioning=False,
            glob=False,
        )

    def _find(self, folder: str) -> list[str]:
        fs, root = self._open()
        top = f"{root}/{folder}"
        if not fs.exists(top):
            return []
        return sorted(path for path in fs.find(top) if path.endswith(_SUFFIX) and not _base(path).startswith("."))

    def _has_mark(self) -> bool:
        fs, root = self._open()
        try:
            content = json.loads(fs.cat_file(f"{root}/{_MARK}"))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError) as error:
            raise DatasetError(f"{self.location}: {_MARK} cannot be read: {error}", hint="name a dataset") from error
        found = content.get("schema") if isinstance(content, dict) else None
        if found != SCHEMA:
            raise DatasetError(
                f"{self.location}: expected schema {SCHEMA}, found {found}",
                hint="read it with the ncuroof version that wrote it, or ingest the reports again",
            )
        return True

    def _put(self, name: str, content: bytes) -> None:
        fs, root = self._open()
        target = f"{root}/{name}"
        try:
            if self._protocol in _WHOLE_OR_NOT_AT_ALL:
                fs.pipe_file(target, content)
                return
            folder = target.rpartition("/")[0]
            fs.makedirs(folder, exist_ok=True)
            if self._protocol in _LOCAL:
                write_at_once(Path(target), content)
                return
            temporary = f"{folder}/.{uuid.uuid4().hex}.part"
            fs.pipe_file(temporary, content)
            fs.mv(temporary, target)
        except OSError as error:
            raise DatasetError(
                f"{target}: cannot be written: {error.strerror or error}", hint="choose another place with -o"
            ) from error

    def _open(self) -> tuple[Any, str]:
        """Return the file system, and the dataset's path on it."""
        fs, root = file_system(self.location)
        return fs, root.rstrip("/")


def partition(rows: pl.DataFrame) -> str:
    """Return the partition of a report's rows: `gpu=` with the GPU's name in lower case, `several` or `unknown`."""
    names = rows["gpu_name"].drop_nulls().unique().to_list()
    gpu = names[0] if len(names) == 1 else "several" if names else "unknown"
    return "gpu=" + (re.sub(r"[^a-z0-9]+", "-", gpu.removeprefix("NVIDIA ").lower()).strip("-") or "unknown")


def _parquet(rows: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    rows.write_parquet(buffer, metadata={_SCHEMA_KEY: SCHEMA})
    return buffer.getvalue()


def _failure_name(location: str) -> str:
    return f"{_FAILURES}/{hashlib.sha256(location.encode()).hexdigest()}{_SUFFIX}"


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def find_reports(wanted: Sequence[str]) -> list[str]:
    """Return the locations of reports without repeats, in the order of `wanted`, sorted within a folder or pattern.

    Args:
        wanted: paths or URLs of files, folders (all reports under them) and patterns, in which `**` is any number of folders.

    Raises:
        ReportNotFoundError: a path does not exist, or a folder or pattern contains no report.
        MissingExtraError: fsspec, or what it needs for a location, is not installed.
    """
    return list(dict.fromkeys(location for each in wanted for location in _found(each)))


def _found(wanted: str) -> Iterator[str]:
    is_pattern = bool(_MAGIC & set(wanted)) and not Path(wanted).exists()
    fs, path = file_system(wanted)
    if is_pattern:
        found = [name for name in fs.glob(path) if fs.isfile(name)]
    elif fs.isdir(path):
        found = [name for name in fs.find(path) if name.endswith(SUFFIXES)]
    elif "://" not in wanted and not Path(wanted).exists():
        raise ReportNotFoundError(f"{wanted}: no such file or folder", hint="check the path; nothing was loaded")
    else:
        yield wanted if "://" in wanted else str(Path(wanted).absolute())
        return
    if not found:
        raise ReportNotFoundError(
            f"{wanted}: expected reports, found none", hint=f"reports end in {', '.join(SUFFIXES)}"
        )
    yield from (str(fs.unstrip_protocol(name)) if "://" in wanted else str(name) for name in sorted(found))


def file_system(location: str) -> tuple[Any, str]:
    """Return the fsspec file system of a location, and its path there.

    Raises:
        MissingExtraError: fsspec, or what it needs for this kind of location, is not installed.
    """
    try:
        import fsspec  # noqa: PLC0415  only fleets need it
    except ImportError as error:
        raise MissingExtraError(
            f"datasets of reports need fsspec: {error}", hint="pip install 'ncuroof[fleet]'"
        ) from error
    try:
        fs, path = fsspec.url_to_fs(location if "://" in location else str(Path(location).absolute()))
    except (ImportError, ValueError) as error:
        raise MissingExtraError(
            f"{location}: {error}",
            hint="install the fsspec package for this kind of location, for example s3fs for s3://",
        ) from error
    return fs, path
