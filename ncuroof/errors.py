"""All errors that ncuroof raises on purpose: what was expected, what was found, where, and what to do.

The command line prints a `NcuroofError` as one line on standard error plus its hint, and exits with its `exit_code`.
Any other exception that escapes is a bug in ncuroof.
"""

from __future__ import annotations

import re

_N_KEYS = 4
"""Largest number of keys of a JSON object that a message names."""

_NO_NUMBER = re.compile(r"(?:could not convert string to float|invalid literal for int\(\) with base 10): (.{,40})")
"""Python's messages for a text that is not a number."""


class NcuroofError(Exception):
    """Base class of all errors that ncuroof raises on purpose.

    Attributes:
        slug: stable name of this kind of error, for documentation and scripts.
        exit_code: exit status of the command line: 2 if the command itself is wrong, independent of its files; 1 if a
            file, the machine or the run is; 3 if a gate failed.
        hint: what the user can do about it, or None.
    """

    slug = "error"
    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class ReportNotFoundError(NcuroofError, FileNotFoundError):
    """The report's path does not exist, or is a directory."""

    slug = "report-not-found"


class OutsideRootError(NcuroofError, PermissionError):
    """A path leads out of the folder that `ncuroof mcp` may read."""

    slug = "outside-root"


class ReportFormatError(NcuroofError, ValueError):
    """The file is not a report that ncuroof can read, or none of its content is readable."""

    slug = "report-format"


class ReportEmptyError(NcuroofError, ValueError):
    """The file is a valid report without any profiled workload."""

    slug = "report-empty"


class ReportAccessError(NcuroofError, OSError):
    """The operating system refused to let the report be read."""

    slug = "report-access"


class ReaderDeclinedError(NcuroofError, ValueError):
    """ncuroof's own reader cannot guarantee to read this report as NVIDIA's module would, and the module is not available."""

    slug = "reader-declined"


class RedactionError(NcuroofError, ValueError):
    """Something that should have been removed from a report is still in it; nothing was written."""

    slug = "redaction"


class OutputError(NcuroofError, OSError):
    """The output could not be written; nothing was left half-written."""

    slug = "output"


class OutputFormatError(NcuroofError, ValueError):
    """The output format is unknown, or does not fit the requested destination."""

    slug = "output-format"
    exit_code = 2


class UnitError(NcuroofError, ValueError):
    """A metric has a unit that ncuroof does not know; a guessed scale could give a wrong number."""

    slug = "unit"


class ProfileError(NcuroofError, ValueError):
    """A file of `profiles/` is malformed: a key is missing, unknown, or of the wrong type."""

    slug = "profile"


class SchemaError(NcuroofError, TypeError):
    """A table lacks a column of its schema, or a column has the wrong type."""

    slug = "schema"


class UnknownNameError(NcuroofError, KeyError):
    """No GPU, operation, element type, verdict, finding, caveat, quantity, view, memory level or reader has that name."""

    slug = "unknown-name"
    exit_code = 2

    def __str__(self) -> str:
        return str(self.args[0])


class ArgumentError(NcuroofError, TypeError):
    """A Python function got an argument of the wrong type."""

    slug = "argument"


class MissingExtraError(NcuroofError, ImportError):
    """An optional dependency is not installed."""

    slug = "missing-extra"


class ModelError(NcuroofError, ValueError):
    """The sizes or options of an operation are impossible."""

    slug = "model"
    exit_code = 2


class GateError(NcuroofError, ValueError):
    """A gate (a limit that `ncuroof compare` enforces) is malformed."""

    slug = "gate"
    exit_code = 2


class BaselineError(NcuroofError, ValueError):
    """A file is not a baseline written by ncuroof, or is damaged."""

    slug = "baseline"


class CalibrationError(NcuroofError, ValueError):
    """A file is not a calibration written by ncuroof, or is damaged; or there is nothing to calibrate."""

    slug = "calibration"


class WhatIfError(NcuroofError, ValueError):
    """An impossible change, fusion or projection was requested."""

    slug = "what-if"
    exit_code = 2


class GatesFailedError(NcuroofError):
    """Some gates failed, or kernels got slower in a fleet; the result was written anyway."""

    slug = "gates-failed"
    exit_code = 3


class DatasetError(NcuroofError, OSError):
    """There is no dataset of reports, or it has a different schema, or it cannot be read or written."""

    slug = "dataset"


class ClusterError(NcuroofError, ConnectionError):
    """The Dask scheduler cannot be reached, or was lost."""

    slug = "cluster"


class IngestIncompleteError(NcuroofError):
    """Some reports could not be loaded into the dataset; all others are in it."""

    slug = "ingest-incomplete"


class QueryError(NcuroofError, ValueError):
    """A query of a dataset is malformed: SQL, a label, a date."""

    slug = "query"
    exit_code = 2


class NcuNotFoundError(NcuroofError, FileNotFoundError):
    """NVIDIA's `ncu` is not on this machine, or what `NCUROOF_NCU` names is not ncu."""

    slug = "ncu-not-found"


class ProfileRequestError(NcuroofError, ValueError):
    """The options of `ncuroof profile` contradict each other, or name something that does not exist."""

    slug = "profile-request"
    exit_code = 2


class ProfilingError(NcuroofError, RuntimeError):
    """ncu recorded nothing or aborted; the message and hint translate what ncu printed into a reason and a fix."""

    slug = "profiling"


class SelectionError(NcuroofError, ValueError):
    """No launch matches the filters, or a filter is not a regular expression."""

    slug = "selection"
    exit_code = 2


class CountsError(NcuroofError, ValueError):
    """A counts file was not written by ncuroof, or a trace not by PyTorch's profiler or Nsight Systems."""

    slug = "counts"


def complaint(error: Exception) -> str:
    """Return what an exception says about the document that was being read, without Python's terms.

    Args:
        error: a KeyError, TypeError, AttributeError, OverflowError or ValueError.
    """
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    if isinstance(error, OverflowError):
        return "a number is too large"
    if isinstance(error, (TypeError, AttributeError)):
        return "a value has the wrong type"
    found = _NO_NUMBER.match(str(error))
    return f"expected a number, found {found[1]}" if found else str(error)


def found_json(content: object) -> str:
    """Return what a file contains instead of a document: "an empty JSON object", "a JSON object with 'a', 'b'", "a JSON list"."""
    if not isinstance(content, dict):
        return "a JSON list" if isinstance(content, list) else "a single JSON value"
    keys = ", ".join(repr(f"{key:.40}") for key in list(content)[:_N_KEYS])
    return f"a JSON object with {keys}{', …' if len(content) > _N_KEYS else ''}" if keys else "an empty JSON object"
