"""Every error that ncuroof raises on purpose: what was wanted, what was found, where, and what to do.

The command line turns a `NcuroofError` into one line on standard error plus its hint, and exits with its `exit_code`.
Anything else that escapes is a defect of ncuroof.
"""

from __future__ import annotations

_N_KEYS = 4
"""Of a JSON object, in a message."""


class NcuroofError(Exception):
    """The root of all errors that ncuroof raises on purpose.

    Attributes:
        slug: stable name of this kind of error, for documentation and scripts.
        exit_code: what the command line exits with.
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


class ReportFormatError(NcuroofError, ValueError):
    """The file is not a report that ncuroof reads, or nothing in it can be read."""

    slug = "report-format"


class ReportEmptyError(NcuroofError, ValueError):
    """The file is a valid report that holds no profiled workload."""

    slug = "report-empty"


class ReportAccessError(NcuroofError, OSError):
    """The operating system refused to let the report be read."""

    slug = "report-access"


class ReaderDeclinedError(NcuroofError, ValueError):
    """ncuroof's own reader cannot be sure to read this report as NVIDIA's module does, and the module was not to be had."""

    slug = "reader-declined"


class RedactionError(NcuroofError, ValueError):
    """Something that was to be taken out of a report is still in it; nothing was written."""

    slug = "redaction"


class OutputError(NcuroofError, OSError):
    """The output could not be written; nothing was left half-written."""

    slug = "output"


class OutputFormatError(NcuroofError, ValueError):
    """The output's format is unknown, or does not fit the place it should go to."""

    slug = "output-format"


class UnitError(NcuroofError, ValueError):
    """A metric carries a unit that ncuroof does not know; guessing a scale would give a wrong number."""

    slug = "unit"


class ProfileError(NcuroofError, ValueError):
    """A file of `profiles/` is malformed: a key is missing, unknown, or of the wrong kind."""

    slug = "profile"


class SchemaError(NcuroofError, TypeError):
    """A table lacks a column of its schema, or a column has another type."""

    slug = "schema"


class UnknownNameError(NcuroofError, KeyError):
    """No GPU, operation, element type, verdict, finding, caveat, quantity, view, memory level or reader has that name."""

    slug = "unknown-name"

    def __str__(self) -> str:
        return str(self.args[0])


class ArgumentError(NcuroofError, TypeError):
    """A verb of Python was given something of another kind than it takes."""

    slug = "argument"


class MissingExtraError(NcuroofError, ImportError):
    """An optional dependency is not installed."""

    slug = "missing-extra"


class ModelError(NcuroofError, ValueError):
    """An operation model was asked for sizes or options that make no sense."""

    slug = "model"
    exit_code = 2


class GateError(NcuroofError, ValueError):
    """A gate is not written as gates are."""

    slug = "gate"
    exit_code = 2


class BaselineError(NcuroofError, ValueError):
    """A file is no baseline that ncuroof wrote, or is damaged."""

    slug = "baseline"


class CalibrationError(NcuroofError, ValueError):
    """A file is no calibration that ncuroof wrote, or is damaged; or there is nothing to calibrate."""

    slug = "calibration"


class WhatIfError(NcuroofError, ValueError):
    """A change, a fusion or a projection that cannot be made was asked for."""

    slug = "what-if"
    exit_code = 2


class GatesFailedError(NcuroofError):
    """Some gates did not hold: what was compared has been written all the same."""

    slug = "gates-failed"
    exit_code = 3


class DatasetError(NcuroofError, OSError):
    """A dataset of reports is not there, is of another schema, or cannot be read or written."""

    slug = "dataset"


class ClusterError(NcuroofError, ConnectionError):
    """The Dask scheduler cannot be reached, or was lost."""

    slug = "cluster"


class IngestIncompleteError(NcuroofError):
    """Some reports could not be taken into the dataset; all the others are in it."""

    slug = "ingest-incomplete"


class QueryError(NcuroofError, ValueError):
    """A question to a dataset is not written as it should be: SQL, a label, a date."""

    slug = "query"


class NcuNotFoundError(NcuroofError, FileNotFoundError):
    """NVIDIA's `ncu` is not on this machine, or what was named is not it."""

    slug = "ncu-not-found"


class ProfileRequestError(NcuroofError, ValueError):
    """What `ncuroof profile` was asked for contradicts itself, or names something that is not there."""

    slug = "profile-request"
    exit_code = 2


class ProfilingError(NcuroofError, RuntimeError):
    """ncu recorded nothing, or stopped; its own words were turned into a reason and a fix."""

    slug = "profiling"


class CountsError(NcuroofError, ValueError):
    """The counts beside a report are not ncuroof's, or a trace is none of PyTorch's profiler or Nsight Systems."""

    slug = "counts"


def found_json(content: object) -> str:
    """Return what was found in the place of a document: "an empty JSON object", "a JSON object with 'a', 'b'", "a JSON list"."""
    if not isinstance(content, dict):
        return "a JSON list" if isinstance(content, list) else "a single JSON value"
    keys = ", ".join(repr(f"{key:.40}") for key in list(content)[:_N_KEYS])
    return f"a JSON object with {keys}{', …' if len(content) > _N_KEYS else ''}" if keys else "an empty JSON object"
