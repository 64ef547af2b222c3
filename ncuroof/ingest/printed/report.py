"""Reads ncu's printed raw or details page, as CSV or for a terminal, into the same tables as the report itself.

What ncu does not print is null or empty: versions, command line, clock and cache control, charts; on the raw page, also sections
and rules.

Source: what ncu prints of recorded reports; Nsight Compute CLI documentation, "Command Line Options", "Console Output".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from ncuroof.errors import ReportEmptyError, ReportFormatError
from ncuroof.ingest.code.static_code import raw_code
from ncuroof.ingest.counter_choice import CounterChoice
from ncuroof.ingest.file_content import sha256
from ncuroof.ingest.printed.console import ConsoleRecords
from ncuroof.ingest.printed.gui_tables import GuiRecords
from ncuroof.ingest.printed.labels import (
    PrintedLabels,
    load_printed_labels,
    with_listings,
    with_members,
    with_same_clocks,
)
from ncuroof.ingest.printed.lines import Prefix, as_columns, learned_prefix, printed_lines
from ncuroof.ingest.printed.log_messages import trouble_beside_tables
from ncuroof.ingest.printed.records import PrintedRecords
from ncuroof.ingest.printed.sentences import mentioned_counters
from ncuroof.ingest.printed.summaries import DURATION_ENDS, invocation_counts, spread_sentences
from ncuroof.ingest.printed.tables import (
    Gathered,
    Gatherer,
    PrintedRule,
    function_name,
    is_number,
    launch_counters,
    open_ranges,
    workload_kind,
)
from ncuroof.ingest.printed.unknown_counters import sentences
from ncuroof.ingest.printed.values import Values, values_of, with_exact_shares, without_failed
from ncuroof.ingest.raw_report import (
    RAW_PROCESSES,
    RAW_RULES,
    RAW_WORKLOADS,
    CounterSelection,
    RawReport,
    is_measured,
    telling,
)
from ncuroof.ingest.session import Process, Session
from ncuroof.sidecars.counts import Counts

_Records = PrintedRecords | GuiRecords | ConsoleRecords
"""A reader of one of the forms."""

_RULE_TYPES = {"OK": "ok", "INF": "ok", "WRN": "warning", "ERR": "error", "OPT": "optimization"}
_SCOPES = {"local", "global"}

_RAW_PAGE = "print the counters themselves: ncu --import REPORT --page raw --csv"


def read_printed(path: Path, name: str, selection: CounterSelection | None) -> RawReport:
    """Return the report in a file of printed tables: its CSV tables or, if it has none, those printed for a terminal.

    Args:
        path: path of the file.
        name: the file's name, for messages.
        selection: the counters to read; None for all of them.

    Raises:
        ReportFormatError: the file has no such table; no units; no counter with a known name; lines of several
            ranks; numbers in two notations; or more counters of a kind than any GPU has.
        ReportEmptyError: its tables contain no launch or no value, or it is the log of a run without any.
        OSError: the file cannot be read.
    """
    labels = load_printed_labels()
    records, gathered = _gathered(path, name, selection, labels)
    if not gathered.launches:
        from ncuroof.ingest.printed.refusals import error_without_launches  # noqa: PLC0415  only for a file without tables

        raise error_without_launches(records, path, name)
    values = without_failed(values_of(gathered, name), gathered.launches)
    missing = [label for label in gathered.unavailable if label not in values.numbers.columns]
    unknown = list(sentences(missing, labels, selection.names if selection else ()))
    _require_counters(gathered, values, name, unknown)
    mentioned = mentioned_counters(gathered.rules)
    numbers, units = with_same_clocks(values.numbers, values.units)
    numbers, units = with_exact_shares(numbers, units)
    counts = invocation_counts(gathered.launches, numbers)
    numbers = numbers.drop(*DURATION_ENDS, strict=False)
    counters = _with_others(numbers, [launch_counters(launch) for launch in gathered.launches])
    counters = _with_others(counters, [mentioned.get(row, {}) for row in range(len(gathered.launches))])
    processes = [_process(launch) for launch in gathered.launches]
    return RawReport(
        file=name,
        sha256=sha256(path),
        session=_session(processes),
        workloads=_workloads(gathered.launches, values),
        processes=pl.DataFrame(
            [(process.id, process.name) if process else (None, None) for process in processes],
            schema=RAW_PROCESSES,
            orient="row",
        ),
        counters=counters,
        units=units,
        texts=with_listings(values.texts, values.numbers),
        rules=_rules(gathered.rules, labels),
        code=raw_code([{}] * len(gathered.launches)),
        sections=tuple(dict.fromkeys(labels.section(each) for each in gathered.sections)),
        damage="; ".join(_damage(records)) or None,
        warnings=(
            *_warnings(gathered, records),
            *(["ncu has no value of counters that it was asked for: " + "; ".join(unknown)] if unknown else []),
            *trouble_beside_tables(printed_lines(path, name)),
        ),
        remarks=tuple(_remarks(gathered, counts)),
        counts=counts,
        is_printed=True,
    )


def _gathered(
    path: Path, name: str, selection: CounterSelection | None, labels: PrintedLabels
) -> tuple[_Records, Gathered]:
    """Return the reader that found tables in the file, and the rows it found: CSV tables first, then those for a terminal.

    Raises:
        ReportFormatError: lines of several ranks are interleaved, or the tables cannot be used (see `Gatherer.gather`).
    """
    choice = CounterChoice(with_members(selection), name)
    prefix: Prefix | None = None

    def lines() -> Iterator[str]:
        every = printed_lines(path, name)
        return every if prefix is None else prefix.without(every)

    def gathered(records: _Records) -> tuple[_Records, Gathered]:
        return records, Gatherer(choice, labels, name).gather(records)

    def first_found() -> tuple[_Records, Gathered]:
        for table in (PrintedRecords(lines()), GuiRecords(lines())):
            found = gathered(table)
            if table.n_tables:
                return found
        return gathered(ConsoleRecords(map(as_columns, lines()), labels))

    records, found = first_found()
    if not found.launches and (prefix := learned_prefix(lines())) is not None:
        records, found = first_found()
    if not isinstance(records, ConsoleRecords):
        return records, found
    console = records
    if console.n_tables == 0 and console.has_sections and not console.has_other_names:
        console = ConsoleRecords(map(as_columns, lines()), labels, is_unnamed=True)
        _, found = gathered(console)
    if console.is_mixed or (prefix is not None and prefix.is_of_ranks):
        raise ReportFormatError(
            f"{name}: expected the output of one rank, found interleaved lines of several ranks",
            hint="write one log per rank (srun --output=%j.%t.log, mpirun --output-filename), or pick one rank (grep '^0: ') or "
            "container (docker compose logs NAME)",
        )
    return console, found


def _require_counters(gathered: Gathered, values: Values, name: str, unknown: Sequence[str]) -> None:
    if unknown and not values.numbers.width:
        raise ReportEmptyError(
            f"{name}: ncu has no value of any counter that it was asked for: {'; '.join(unknown)}",
            hint="record again with names that ncu --query-metrics lists and a suffix (.sum, .avg.pct_of_peak_sustained_elapsed), "
            "or with --set full",
        )
    if gathered.unknown_labels and not values.numbers.width:
        some = ", ".join(repr(label) for label in list(gathered.unknown_labels)[:3])
        raise ReportFormatError(
            f"{name}: expected counter names, found labels that can mean several counters: {some}",
            hint=_RAW_PAGE,
        )


def _with_others(numbers: pl.DataFrame, others: Sequence[Mapping[str, float]]) -> pl.DataFrame:
    """Return the counters with the values of `others` (one mapping per launch) where no counter of that name was printed."""
    columns = {column.name: column for column in numbers.iter_columns()}
    for name in dict.fromkeys(name for each in others for name in each):
        values = pl.Series(name, [each.get(name) for each in others], pl.Float64)
        columns[name] = columns[name].fill_null(values) if name in columns else values
    return pl.DataFrame(list(columns.values()))


def _workloads(launches: Sequence[Mapping[str, str]], values: Values) -> pl.DataFrame:
    names = [launch.get("Kernel Name") or None for launch in launches]
    function_by_name = {name: function_name(name) if name else None for name in dict.fromkeys(names)}
    collected = [column for column in values.numbers.columns if is_measured(column) and column not in DURATION_ENDS]
    n_found, n_not_finite, n_zero = (
        _n_true(flags, collected, len(names))
        for flags in (values.numbers.select(pl.all().is_not_null()), values.not_finite, values.numbers == 0)
    )
    return pl.DataFrame(
        {
            "function_name": [function_by_name[name] for name in names],
            "demangled_name": names,
            "mangled_name": [None] * len(names),
            "workload": [workload_kind(launch) for launch in launches],
            "nvtx": [open_ranges(launch) for launch in launches],
            "n_collected": telling(n_found + n_not_finite, n_not_finite, n_zero),
            "n_not_finite": n_not_finite,
        },
        schema=RAW_WORKLOADS,
    )


def _n_true(flags: pl.DataFrame, columns: Sequence[str], n_rows: int) -> pl.Series:
    if not columns:
        return pl.repeat(0, n_rows, dtype=pl.UInt32, eager=True)
    return flags.select(pl.sum_horizontal(pl.col(columns)).cast(pl.UInt32)).to_series()


def _process(launch: Mapping[str, str]) -> Process | None:
    number = launch.get("Process ID", "")
    return Process(int(number), launch.get("Process Name") or None) if is_number(number) else None


def _session(processes: Iterable[Process | None]) -> Session:
    """Return the session of a printed table: only the processes are known."""
    process_by_id = {process.id: process for process in processes if process is not None}
    return Session(None, None, None, None, None, None, None, (), (), tuple(process_by_id.values()), ())


def _rules(printed: Sequence[PrintedRule], labels: PrintedLabels) -> pl.DataFrame:
    rows = [
        (
            rule.row,
            rule.cells["Rule Name"],
            labels.section(rule.section),
            "",
            rule.cells["Rule Description"],
            _RULE_TYPES.get(rule.cells["Rule Type"], "none"),
            _share(rule.cells["Estimated Speedup"]),
            scope if (scope := rule.cells["Estimated Speedup Type"]) in _SCOPES else None,
        )
        for rule in printed
    ]
    return pl.DataFrame(rows, schema=RAW_RULES, orient="row")


def _share(percent: str) -> float | None:
    """Return a printed speedup in percent as a fraction; None if it is not a finite number.

    ncu prints at most two decimals and percentages have no thousands separator, so a comma is always a decimal comma.
    """
    try:
        share = float(percent.replace(",", ".")) / 100
    except ValueError:
        return None
    return share if math.isfinite(share) else None


def _damage(records: _Records) -> Iterable[str]:
    if records.n_lost:
        yield f"{records.n_lost} of its rows are truncated or malformed and lost"
    if not isinstance(records, ConsoleRecords):
        return
    if records.n_empty:
        named = "a launch is" if records.n_empty == 1 else f"{records.n_empty} launches are"
        yield f"{named} named without any value"
    if records.is_cut:
        yield "it ends within a table"


def _warnings(gathered: Gathered, records: _Records) -> Iterable[str]:
    if not isinstance(records, ConsoleRecords):
        return
    names = {launch.get("Kernel Name") for launch in gathered.launches}
    if records.is_unnamed:
        n = len(gathered.launches)
        launches = "one launch" if n == 1 else f"{n} launches, a new one from each section that repeats"
        yield f"no line names a kernel: the sections are read as {launches}"
    if records.n_unnamed:
        repeated = "a section that repeats" if records.n_unnamed == 1 else f"{records.n_unnamed} sections that repeat"
        kernels = "a kernel" if records.n_unnamed == 1 else "kernels"
        yield f"{repeated} with other values and without a kernel's name: read as of {kernels} without a name, on the same GPU"
    counted = ", ".join(f"{n} for {function_name(name)}" for name, n in records.n_apart.items() if n)
    if counted and len(names) > 1:
        yield f"tables apart from any kernel's name are assigned to the last kernel named before them: {counted}"


def _remarks(gathered: Gathered, counts: Counts | None) -> Iterable[str]:
    yield (
        "a table printed by ncu: its numbers are rounded (least with --print-units auto), and versions, command line and "
        "clock control are unknown"
    )
    if counts is not None:
        yield from spread_sentences(counts)
    if gathered.unknown_labels:
        yield f"labels left out because they do not name a single counter: {', '.join(gathered.unknown_labels)}"
