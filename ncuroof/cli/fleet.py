"""`ncuroof fleet`: what a dataset of reports answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import polars as pl

from ncuroof.batch.dataset import Dataset
from ncuroof.cli.kept_inputs import keep_inputs
from ncuroof.cli.options import common, format_by_suffix
from ncuroof.errors import QueryError
from ncuroof.fleet.questions import across_gpus, by_time, changes, factors, overview
from ncuroof.fleet.series import COLUMN_BY_FACTOR, LABEL_PREFIX, label, label_counts
from ncuroof.present.fleet_document import fleet_document, sql_document
from ncuroof.present.fleet_text import table_markdown, table_text, to_markdown, to_text
from ncuroof.present.json_text import json_text
from ncuroof.present.output import write_whole

_MAX_MESSAGE_LENGTH = 300
_FORMAT_BY_SUFFIX = {".json": "json", ".md": "md", ".txt": "term"}


@click.command()
@click.argument("dataset")
@click.option(
    "--by",
    "compared",
    multiple=True,
    metavar="WHAT",
    help=f"What changes are looked for by: {', '.join(COLUMN_BY_FACTOR)}, or label:NAME; again for more. "
    "By default report, driver, ncu and every label.",
)
@click.option("--kernel", metavar="REGEX", help="Only kernels whose name matches.")
@click.option("--gpu", metavar="REGEX", help="Only GPUs whose name matches.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Only what was recorded on that day (UTC) or later.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="The most lines of each list.")
@click.option("--sql", metavar="SELECT", help="Ask the tables kernels and failures instead.")
@click.option("--failures", "wants_failures", is_flag=True, help="List the reports that could not be taken in instead.")
@click.option("--format", "form", type=click.Choice(["term", "md", "json"]), help="Format, where no suffix says.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; its suffix names the format.")
@click.option("--force", is_flag=True, help="Replace a file that ncuroof did not write.")
@common
def fleet(  # noqa: PLR0913  an argument per option
    *,
    dataset: str,
    compared: tuple[str, ...],
    kernel: str | None,
    gpu: str | None,
    since: datetime | None,
    top: int,
    sql: str | None,
    form: str | None,
    output: Path | None,
    **flags: bool,
) -> None:
    """Ask a DATASET of `ncuroof ingest`: slowest kernels, most recoverable time, the same on other GPUs, and what got slower.

    Times are compared where kernel, shape, program, GPU and clock control are the same, and called changed where they differ
    beyond chance.
    """
    form = form or ("term" if output is None else format_by_suffix(str(output), _FORMAT_BY_SUFFIX))
    keep_inputs([output], [Path(dataset)])
    source = Dataset.at(dataset)
    try:
        kernels = _chosen(source.kernels(), kernel=kernel, gpu=gpu, since=since)
        query = (
            "SELECT report_location, error, message FROM failures ORDER BY report_location"
            if flags["wants_failures"]
            else sql
        )
        if query is not None:
            found = sql_document(query, _answer(query, kernels, source.failures()))
            written = _tabular(found, form)
        else:
            written = _written(_asked(source, kernels, compared, top), form)
    except pl.exceptions.PolarsError as error:
        raise QueryError(
            f"{dataset}: {_brief(error)}",
            hint="docs/columns.md lists the columns; names with a dot go in double quotes",
        ) from error
    if output is not None:
        write_whole(output, written.encode(), force=flags["force"])
    else:
        click.echo(written, nl=False)


def _brief(error: pl.exceptions.PolarsError) -> str:
    """Return what polars says is wrong, without its query plan and all of a long value."""
    said = str(error).partition("\n\n")[0]
    return said if len(said) <= _MAX_MESSAGE_LENGTH else f"{said[:_MAX_MESSAGE_LENGTH]}…"


def _asked(source: Dataset, kernels: pl.LazyFrame, compared: Sequence[str], top: int) -> dict[str, Any]:
    known = [*COLUMN_BY_FACTOR, *(f"{LABEL_PREFIX}{name}" for name in label_counts(kernels)["name"])]
    for name in compared:
        if name not in known:
            raise click.UsageError(f"--by: one of {', '.join(known)} was wanted, found {name!r}")
    return fleet_document(
        source.location,
        overview(kernels),
        by_time(kernels),
        across_gpus(kernels),
        [changes(kernels, name) for name in compared or factors(kernels)],
        source.failures().collect(),
        top=top,
    )


def _chosen(kernels: pl.LazyFrame, *, kernel: str | None, gpu: str | None, since: datetime | None) -> pl.LazyFrame:
    for option, column, pattern in (("--kernel", "name", kernel), ("--gpu", "gpu_name", gpu)):
        if pattern is not None:
            kernels = kernels.filter(pl.col(column).str.contains(_expression(option, pattern)))
    if since is not None:
        kernels = kernels.filter(pl.col("recorded_at") >= since.replace(tzinfo=timezone.utc))
    return kernels


def _expression(option: str, pattern: str) -> str:
    """Return a regular expression that polars takes."""
    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.PolarsError as error:
        raise click.UsageError(f"{option}: a regular expression was wanted, found {pattern!r}") from error
    return pattern


def _answer(query: str, kernels: pl.LazyFrame, failures: pl.LazyFrame) -> pl.DataFrame:
    """Return the rows of a query; each label is a column of its own there, such as "label.commit"."""
    labels = [label(name).alias(f"label.{name}") for name in label_counts(kernels)["name"]]
    return pl.SQLContext(kernels=kernels.with_columns(labels), failures=failures, eager=True).execute(query)


def _written(document: dict[str, Any], form: str) -> str:
    if form == "json":
        return json_text(document)
    return to_markdown(document) if form == "md" else to_text(document)


def _tabular(document: dict[str, Any], form: str) -> str:
    if form == "json":
        return json_text(document)
    write = table_markdown if form == "md" else table_text
    return write(document["columns"], document["rows"])
