"""`ncuroof fleet`: answers questions about a dataset of reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import click
import polars as pl

from ncuroof.batch.dataset import Dataset
from ncuroof.cli.options import Location, common, either
from ncuroof.cli.outputs import Outputs, written_as
from ncuroof.errors import GatesFailedError, QueryError
from ncuroof.fleet.questions import FactorChanges, across_gpus, by_time, changes, code_versions, factors, overview
from ncuroof.fleet.series import COLUMN_BY_FACTOR, LABEL_PREFIX, label, label_counts
from ncuroof.formatting import counted
from ncuroof.present.analysed import Document
from ncuroof.present.documents.fleet import fleet_document, sql_document
from ncuroof.present.formats import WRITERS
from ncuroof.present.sentences.match_change import factor

_MAX_MESSAGE_LENGTH = 300
_MOST_NAMED = 5

_CHANGE = re.compile(r"(?:\s|--.*\n|/\*(?s:.*?)\*/)*(CREATE|DELETE|DROP|INSERT|TRUNCATE|UPDATE)\b", re.IGNORECASE)
"""Start of an SQL statement that changes a table, perhaps after comments."""


@click.command()
@click.argument("dataset", type=Location())
@click.option(
    "--by",
    "compared",
    multiple=True,
    metavar="WHAT",
    help=f"Look for changes of time by {', '.join(COLUMN_BY_FACTOR)}, or label:NAME. Repeatable; "
    "default: report, driver, ncu and every label.",
)
@click.option(
    "--fail-on",
    "failing",
    multiple=True,
    metavar="WHAT",
    help="Exit with status 3 if a kernel got slower at the newest value of WHAT, as in --by. Repeatable.",
)
@click.option(
    "-k", "--kernel", "wanted", multiple=True, metavar="REGEX", help="Only kernels whose name matches. Repeatable."
)
@click.option("--gpu", metavar="REGEX", help="Only GPUs whose name matches.")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="Only reports recorded on that day (UTC) or later.",
)
@click.option(
    "--top", type=click.IntRange(min=1), default=10, metavar="N", show_default=True, help="Rows to show per list."
)
@click.option("--sql", metavar="SELECT", help="Run a SQL query on the tables kernels and failures instead.")
@click.option("--failures", "wants_failures", is_flag=True, help="List the reports that could not be ingested instead.")
@written_as(*WRITERS["fleet"])
@common()
def fleet(  # noqa: PLR0913  an argument per option
    outputs: Outputs,
    *,
    dataset: str,
    compared: tuple[str, ...],
    failing: tuple[str, ...],
    wanted: tuple[str, ...],
    gpu: str | None,
    since: datetime | None,
    top: int,
    sql: str | None,
    wants_failures: bool,
) -> None:
    """Query a DATASET of `ncuroof ingest`: slowest kernels, most time above the roofline, other GPUs, and what got slower.

    Times are compared only where kernel, shape, program, GPU and clock control are the same. A time counts as changed if it differs
    beyond measurement noise.
    """
    kernel = either(wanted)
    _check_query(sql, wants_failures=wants_failures, failing=failing)
    outputs.check([Path(dataset)])
    source = Dataset.at(dataset)
    regressions: list[FactorChanges] = []
    try:
        everything = source.kernels()
        kernels = _chosen(everything, kernel=kernel, gpu=gpu, since=since)
        if not wants_failures:
            _check_match(everything, kernels, {"--kernel": kernel, "--gpu": gpu, "--since": since})
        query = (
            "SELECT report_location, error, message FROM failures ORDER BY report_location" if wants_failures else sql
        )
        if query is not None:
            writers, document = WRITERS["rows"], sql_document(query, _answer(query, kernels, source.failures()))
        else:
            found = _changes(kernels, compared, failing)
            regressions = [each for each in found if each.by in failing]
            writers, document = WRITERS["fleet"], _report(source, kernels, found, top)
    except pl.exceptions.PolarsError as error:
        raise QueryError(
            f"{dataset}: {_brief(error)}",
            hint="ncuroof explain lists the columns; put names with a dot in double quotes",
        ) from error
    outputs.write(lambda form: writers[form](document))
    _raise_if_slower(regressions)


def _raise_if_slower(found: Sequence[FactorChanges]) -> None:
    """Raise a `GatesFailedError` that names the kernels that got slower at the newest value of a factor."""
    said = [
        f"{row['short_name']} {factor(row['change_frac'])} by {each.by} ({row['before_value']} → {row['value']})"
        for each in found
        for row in each.newly_slower.iter_rows(named=True)
    ]
    if said:
        more = f", and {len(said) - _MOST_NAMED} more" if len(said) > _MOST_NAMED else ""
        raise GatesFailedError(f"{counted(len(said), 'kernel')} slower: {', '.join(said[:_MOST_NAMED])}{more}")


def _check_query(sql: str | None, *, wants_failures: bool, failing: Sequence[str]) -> None:
    """Check that at most one query is given, and that --sql does not change a table: polars would drop tables silently.

    Raises:
        UsageError: --sql, --failures and --fail-on are combined, or a statement changes a table.
    """
    if failing and (sql is not None or wants_failures):
        raise click.UsageError("--fail-on judges changes of time, so it excludes --sql and --failures")
    if sql is None:
        return
    if wants_failures:
        raise click.UsageError("--failures is a query of its own: --sql 'SELECT * FROM failures' chooses and orders")
    if found := _CHANGE.match(sql):
        raise click.UsageError(f"--sql: expected a query that begins with SELECT or WITH, found {found[1].upper()}")


def _brief(error: pl.exceptions.PolarsError) -> str:
    """Return polars' error message, without its query plan and shortened."""
    said = str(error).partition("\n\n")[0]
    return said if len(said) <= _MAX_MESSAGE_LENGTH else f"{said[:_MAX_MESSAGE_LENGTH]}…"


def _changes(kernels: pl.LazyFrame, compared: Sequence[str], failing: Sequence[str]) -> list[FactorChanges]:
    """Return the changes by the factors to show, and by those that --fail-on names.

    Raises:
        UsageError: a factor does not exist.
    """
    known = [*COLUMN_BY_FACTOR, *(f"{LABEL_PREFIX}{name}" for name in label_counts(kernels)["name"])]
    for option, names in (("--by", compared), ("--fail-on", failing)):
        for name in names:
            if name not in known:
                raise click.UsageError(f"{option}: expected one of {', '.join(known)}, found {name!r}")
    return [changes(kernels, name) for name in dict.fromkeys((*(compared or factors(kernels)), *failing))]


def _report(source: Dataset, kernels: pl.LazyFrame, found: Sequence[FactorChanges], top: int) -> Document:
    return fleet_document(
        source.location,
        overview(kernels),
        by_time(kernels),
        across_gpus(kernels),
        found,
        code_versions(kernels),
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


def _check_match(everything: pl.LazyFrame, chosen: pl.LazyFrame, filters: Mapping[str, str | datetime | None]) -> None:
    """Check that the filters leave a launch, unless the dataset is empty.

    Raises:
        UsageError: no launch matches.
    """
    given = [
        f"{option} {value:%Y-%m-%d}" if isinstance(value, datetime) else f"{option} {value!r}"
        for option, value in filters.items()
        if value is not None
    ]
    if given and chosen.head(1).collect().is_empty():
        n_launches = everything.select(pl.len()).collect().item()
        if n_launches:
            raise click.UsageError(
                f"{' '.join(given)}: matches none of the {n_launches} profiled launches in the dataset; "
                "without filters, the command lists kernels, GPUs and dates"
            )


def _expression(option: str, pattern: str) -> str:
    """Return the pattern if it is a regular expression that polars accepts.

    Raises:
        UsageError: it is not.
    """
    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.PolarsError as error:
        raise click.UsageError(f"{option}: expected a regular expression, found {pattern!r}") from error
    return pattern


def _answer(query: str, kernels: pl.LazyFrame, failures: pl.LazyFrame) -> pl.DataFrame:
    """Return the rows of a query. Each label is a column, such as "label.commit"."""
    labels = [label(name).alias(f"label.{name}") for name in label_counts(kernels)["name"]]
    return pl.SQLContext(kernels=kernels.with_columns(labels), failures=failures, eager=True).execute(query)
