"""Builds raw reports from plain dictionaries of counters, for tests that need no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ncuroof.ingest.code.static_code import RAW_CODE, raw_code
from ncuroof.ingest.raw_report import RAW_PROCESSES, RAW_RULES, RAW_WORKLOADS, RawReport
from ncuroof.ingest.session import Session
from ncuroof.metrics.catalogue import BREAKDOWNS, DEVICE_NAME

EMPTY_SESSION = Session(None, None, None, None, None, None, None, (), (), (), (), chooses_launches=False)


def raw_report(*kernels: Mapping[str, float | str], names: Sequence[str] | None = None) -> RawReport:
    """Return a report whose kernels have these counters; percentages are recognised by their names, as in a file.

    A name without parameters gets none, `()`, in its demangled form.
    """
    texts = {BREAKDOWNS["memory"], BREAKDOWNS["compute"], DEVICE_NAME}
    texts |= {name for kernel in kernels for name, value in kernel.items() if isinstance(value, str)}
    counters = sorted({name for kernel in kernels for name in kernel} - texts)
    labels = names or [f"kernel_{number}" for number in range(len(kernels))]
    return RawReport(
        file="test.ncu-rep",
        sha256="0" * 64,
        session=EMPTY_SESSION,
        workloads=pl.DataFrame(
            [
                (label, label if label.endswith(")") else f"{label}()", None, "kernel", [], len(kernel), 0)
                for label, kernel in zip(labels, kernels, strict=True)
            ],
            schema=RAW_WORKLOADS,
            orient="row",
        ),
        processes=pl.DataFrame({"process_id": [None] * len(kernels), "process_name": None}, schema=RAW_PROCESSES),
        counters=pl.DataFrame({name: [kernel.get(name) for kernel in kernels] for name in counters}).cast(pl.Float64),
        units={},
        texts=pl.DataFrame({name: [kernel.get(name) for kernel in kernels] for name in sorted(texts)}).cast(pl.String),
        rules=pl.DataFrame(schema=RAW_RULES),
        code=raw_code([{}] * len(kernels)),
    )


def with_code(report: RawReport, **values: Sequence[Any]) -> RawReport:
    """Return a report with columns of RAW_CODE, a value per workload."""
    columns = (pl.Series(name, each, RAW_CODE[name]) for name, each in values.items())
    return replace(report, code=report.code.with_columns(columns))
