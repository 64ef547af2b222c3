"""Builds the documents of a fleet: its answers `ncuroof.fleet_answers/1`, which texts print too, and `ncuroof.fleet_sql/1`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import polars as pl

from ncuroof.fleet.questions import FactorChanges, Overview, by_recoverable_time
from ncuroof.present.analysed import Document
from ncuroof.present.documents.json_text import TOOL

SCHEMA = "ncuroof.fleet_answers/1"
SQL_SCHEMA = "ncuroof.fleet_sql/1"


def fleet_document(  # noqa: PLR0913  an argument per list
    dataset: str,
    found: Overview,
    kernels: pl.DataFrame,
    gpus: pl.DataFrame,
    changes: Sequence[FactorChanges],
    code: pl.DataFrame,
    failures: pl.DataFrame,
    *,
    top: int,
) -> Document:
    """Return the document; each list has its first `top` entries and the number of all.

    Args:
        dataset: location of the dataset.
        found: totals over the fleet.
        kernels: table that `by_time` returns.
        gpus: table that `across_gpus` returns.
        changes: one entry per factor, such as driver version or a label.
        code: table that `code_versions` returns.
        failures: FLEET_FAILURES.
        top: most entries per list.
    """
    first_launches = gpus["launch"].unique(maintain_order=True).head(top)
    overview = asdict(found)
    overview["gpus"] = [{"name": name, "n_launches": n} for name, n in found.gpus]
    overview["labels"] = [{"name": name, "n_values": n} for name, n in found.labels]
    return {
        "schema": SCHEMA,
        "tool": TOOL,
        "dataset": dataset,
        "overview": overview,
        "slowest": _listed(kernels, top),
        "recoverable": _listed(by_recoverable_time(kernels), top),
        "across_gpus": _listed(gpus.filter(pl.col("launch").is_in(first_launches.implode())), gpus.height),
        "changes": [_change(each, top) for each in changes],
        "code": _listed(code, top),
        "failures": _listed(failures, top),
    }


def sql_document(query: str, rows: pl.DataFrame) -> Document:
    """Return the document of an SQL query's answer."""
    return {"schema": SQL_SCHEMA, "tool": TOOL, "query": query, "columns": rows.columns, "rows": plain(rows)}


def plain(rows: pl.DataFrame) -> list[Document]:
    """Return rows as JSON values, with dates as text."""
    parsed: list[Document] = json.loads(rows.write_json())
    return parsed


def _change(found: FactorChanges, top: int) -> Document:
    return {
        "by": found.by,
        "n_series": found.n_series,
        "n_steps": found.steps.height,
        "n_compared": found.n_compared,
        "slower": _listed(found.slower, top),
        "faster": _listed(found.faster, top),
        "other_work": _listed(found.other_work, top),
    }


def _listed(rows: pl.DataFrame, top: int) -> Document:
    return {"n": rows.height, "rows": plain(rows.head(top))}
