"""`ncuroof ingest`: loads many reports into one dataset."""

from __future__ import annotations

import posixpath
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

import click

from ncuroof.batch.dataset import Dataset, find_reports
from ncuroof.batch.ingest import IngestResult, Workers
from ncuroof.batch.ingest import ingest as take_in
from ncuroof.cli.options import Location, common, say
from ncuroof.cli.streams import echo
from ncuroof.errors import DatasetError, IngestIncompleteError
from ncuroof.formatting import counted, launches

_MOST_FAILURES = 20
_LINES_WITHOUT_TERMINAL = 10


@click.command()
@click.argument("reports", nargs=-1, required=True, type=Location())
@click.option(
    "-o",
    "--output",
    "dataset",
    required=True,
    type=Location(),
    metavar="DATASET",
    help="Folder or URL of the dataset to write to.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME=VALUE",
    help="Label for all these reports, e.g. commit=abc. Repeatable. Reports already in the dataset get it only with --again.",
)
@click.option(
    "--again",
    is_flag=True,
    help="Analyse again and replace reports already in the dataset. Labels are kept, except those given with --label; "
    "--label NAME= removes one.",
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Dask scheduler to run on, e.g. tcp://HOST:8786; default: this machine."
)
@click.option(
    "--workers", "n_workers", type=click.IntRange(min=1), help="Workers on this machine; default: one per core."
)
@click.option("--threads", "are_threads", is_flag=True, help="Use threads instead of processes on this machine.")
@common("quiet")
def ingest(  # noqa: PLR0913  an argument per option
    *,
    reports: tuple[str, ...],
    dataset: str,
    labels: tuple[str, ...],
    again: bool,
    scheduler: str | None,
    n_workers: int | None,
    are_threads: bool,
    quiet: bool,
) -> None:
    """Load REPORTS into a dataset with one row per kernel launch: files, folders, or patterns such as 'runs/**/*.ncu-rep'.

    Each report is loaded once, whatever its name. Run again, the command does only what is left to do. If a report cannot be
    loaded, the others still are, and the exit code is 1.
    """
    if scheduler is not None and (n_workers or are_threads):
        raise click.UsageError("--workers and --threads apply to this machine and exclude --scheduler")
    value_by_label = dict(_label(text, may_be_empty=again) for text in labels)
    target = _dataset_to_write(dataset)
    locations = find_reports(reports)
    outcomes = take_in(
        locations,
        target,
        labels=value_by_label,
        again=again,
        workers=Workers(scheduler, n_workers, are_threads),
        progress=(lambda _: None) if quiet else _progress(len(locations)),
    )
    _tell(outcomes, dataset, is_quiet=quiet)


def _dataset_to_write(location: str) -> Dataset:
    """Return the dataset at a location that outlasts the process.

    Raises:
        DatasetError: the location is in this process's memory.
    """
    found = Dataset.at(location)
    if found.is_in_memory:
        raise DatasetError(
            f"{location}: expected a place that outlasts this command, found this process's memory",
            hint="name a folder, or a bucket such as s3://BUCKET/FOLDER, with -o",
        )
    return found


def _label(text: str, *, may_be_empty: bool) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator and (value or may_be_empty)):
        raise click.UsageError(f"--label: expected NAME=VALUE, found {text!r}")
    return name, value


def _tell(outcomes: Sequence[IngestResult], dataset: str, *, is_quiet: bool) -> None:
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if not is_quiet:
        hashes = Counter(outcome.sha256 for outcome in outcomes if outcome.status == "added")
        n_launches = sum({each.sha256: each.n_launches for each in outcomes if each.status == "added"}.values())
        n_present = sum(outcome.status == "present" for outcome in outcomes) + hashes.total() - len(hashes)
        say(
            f"{dataset}: {counted(len(hashes), 'report')} added ({launches(n_launches)}), {n_present} already there, "
            f"{len(failed)} failed"
        )
    if failed:
        for outcome in failed[:_MOST_FAILURES]:
            say(f"failed: {outcome.location}: {outcome.error}: {_without_name(outcome)}")
        if len(failed) > _MOST_FAILURES:
            say(f"and {len(failed) - _MOST_FAILURES} more")
        raise IngestIncompleteError(
            f"{len(failed)} of {len(outcomes)} reports could not be ingested; the others are in {dataset}",
            hint=f"list them with: ncuroof fleet {dataset} --failures",
        )


def _without_name(outcome: IngestResult) -> str:
    """Return an error's message without the report's name, if it begins with that name."""
    name = posixpath.basename(outcome.location)
    return outcome.message.removeprefix(f"{outcome.location}: ").removeprefix(f"{name}: ")


def _progress(n_reports: int) -> Callable[[IngestResult], None]:
    """Return a function that prints progress: on a terminal in a single line, elsewhere in about ten lines."""
    counts: Counter[str] = Counter()
    begin = time.monotonic()
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    longest = 0
    every = 1 if is_terminal else max(1, n_reports // _LINES_WITHOUT_TERMINAL)

    def tell(outcome: IngestResult) -> None:
        nonlocal longest
        counts[outcome.status] += 1
        done = counts.total()
        if done % every and done != n_reports:
            return
        rate = done / max(time.monotonic() - begin, 1e-9)
        line = f"ingest: {done}/{n_reports} reports, {rate:.1f}/s, {counts['failed']} failed"
        longest = max(longest, len(line))
        echo(f"\r{line:<{longest}}" if is_terminal else line, err=True, nl=not is_terminal or done == n_reports)

    return tell
