"""Evaluates the catalogue's quantities over a table of counters in base units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from ncuroof.errors import ProfileError
from ncuroof.metrics.catalogue import Catalogue
from ncuroof.metrics.catalogue_types import Quantity, Stalls
from ncuroof.metrics.formula import sum_of

MEANINGFUL_STALLS_EXCEPT = frozenset({"selected", "not_selected"})
"""Warp states that are part of the latency but not a reason for it: the warp issued, or could have."""


DEFINITION_PREFIX = "definition."
"""Prefix of the column that says which source (formula) a quantity's value comes from."""


_LATENCY, _SAMPLES = "sum of latencies", "sum of samples"


class CounterTable:
    """Counters in base units, one row per workload, and the quantities computed from them so far."""

    def __init__(self, counters: pl.DataFrame) -> None:
        self.frame = counters
        self._counters = frozenset(counters.columns)
        self._chips = frozenset(counters.select(self.capability().alias("chip")).to_series().unique())

    def counter(self, name: str) -> pl.Expr | None:
        """Return the expression of a counter, or None if no workload has it."""
        return pl.col(name) if name in self._counters else None

    def counter_or_null(self, name: str) -> pl.Expr:
        """Return the expression of a counter; a null literal if no workload has it."""
        return pl.col(name) if name in self._counters else pl.lit(None, pl.Float64)

    def capability(self) -> pl.Expr:
        """Return the compute capability, major × 10 + minor; null where the report does not say."""
        major, minor = (
            self.counter_or_null(f"device__attribute_compute_capability_{part}") for part in ("major", "minor")
        )
        return 10 * major + minor

    def is_on(self, capabilities: Sequence[int]) -> pl.Expr:
        """Return, per workload, whether its chip is among `capabilities`; an empty sequence means all chips."""
        return self.capability().is_in([float(each) for each in capabilities]) if capabilities else pl.lit(value=True)

    def is_all_on(self, capabilities: Sequence[int]) -> bool:
        """Return whether every workload's chip is known to be among `capabilities`; an empty sequence means all chips."""
        return not capabilities or self._chips.issubset(map(float, capabilities))

    def is_any_on(self, capabilities: Sequence[int]) -> bool:
        """Return whether any workload's chip is among `capabilities`; an empty sequence means all chips."""
        return not capabilities or not self._chips.isdisjoint(map(float, capabilities))

    def known_quantities(self) -> frozenset[str]:
        """Return the names of the columns that were added to the recorded counters."""
        return frozenset(self.frame.columns) - self._counters

    def add(self, columns: Iterable[pl.Expr | pl.Series]) -> None:
        """Add columns: expressions over the existing ones, or series with a value per workload."""
        self.frame = self.frame.with_columns(*columns)


def add_quantities(table: CounterTable, catalogue: Catalogue) -> None:
    """Add a Float64 column per quantity and stall reason, null where not known, and String columns `definition.<quantity>`."""
    for batch in _by_depth(catalogue.quantities, table.known_quantities()):
        known = table.known_quantities()
        table.add([column for quantity in batch for column in _columns(quantity, table, known)])
    table.add(_stall_columns(table, catalogue.stalls).get_columns())


def _by_depth(quantities: Sequence[Quantity], known: frozenset[str]) -> Iterable[list[Quantity]]:
    """Yield the quantities in batches; each batch reads only counters, known columns and quantities of earlier batches."""
    done = set(known)
    left = list(quantities)
    while left:
        batch = [q for q in left if all(source.formula.quantities <= done for source in q.sources)]
        if not batch:
            raise ProfileError(f"metrics.toml: {left[0].name} reads a quantity that does not exist, or itself")
        yield batch
        done |= {quantity.name for quantity in batch}
        left = [quantity for quantity in left if quantity.name not in done]


def _columns(quantity: Quantity, table: CounterTable, known: frozenset[str]) -> list[pl.Expr]:
    """Return the quantity's value from the first source that has one and, if `is_defined`, the column that says which source."""
    values, definitions = [], []
    for source in quantity.sources:
        value = source.formula.expression(table.counter, known) if table.is_any_on(source.capabilities) else None
        if value is None:
            continue
        if not table.is_all_on(source.capabilities):
            value = pl.when(table.is_on(source.capabilities)).then(value)
        values.append(value)
        definitions.append(pl.when(value.is_not_null()).then(pl.lit(source.note or source.formula.text)))
    columns = [first_known(*values).cast(pl.Float64).alias(quantity.name)]
    if quantity.is_defined:
        columns.append(first_known(*definitions).cast(pl.String).alias(f"{DEFINITION_PREFIX}{quantity.name}"))
    return columns


def first_known(*values: pl.Expr | None) -> pl.Expr:
    """Return, row by row, the first value that is not null; arguments that are None are skipped."""
    present = [value for value in values if value is not None]
    if len(present) == 1:
        return present[0]
    return pl.coalesce(present) if present else pl.lit(None, pl.Float64)


def _stall_columns(table: CounterTable, stalls: Stalls) -> pl.DataFrame:
    """Return each reason's share of the warp latency: from the latency counters, else from samples.

    The counters come from several passes, and the passes of a short kernel differ, so the reasons can sum to more than the latency.
    The shares are then of that sum, so that they never exceed 1 together. Where the latency counter is missing, the sum of the
    reasons replaces it, if all reasons that every chip counts are there.
    """
    found = {
        reason: [counter for name in stalls.of_samples(reason) if (counter := table.counter(name)) is not None]
        for reason in stalls.reasons
    }
    samples = {reason: pl.coalesce(counters) for reason, counters in found.items() if counters}
    all_samples = sum_of(samples.values()) if samples else pl.lit(None, pl.Float64)
    latencies = {
        reason: counter
        for reason in stalls.reasons
        if (counter := table.counter(stalls.of_latency(reason))) is not None
    }
    total = table.counter_or_null(stalls.total)
    if latencies:
        is_every_one = pl.all_horizontal(
            table.counter_or_null(stalls.of_latency(reason)).is_not_null()
            for reason in stalls.reasons
            if reason not in stalls.only_on_some_chips
        )
        is_known = total.is_not_null() | is_every_one
        total = pl.when(is_known).then(pl.max_horizontal(total, sum_of(latencies.values())))
    # Columns of their own: as part of each reason's expression, the sums would be added up twice per reason.
    sums = table.frame.with_columns(
        pl.when(total != 0).then(total).alias(_LATENCY), pl.when(all_samples != 0).then(all_samples).alias(_SAMPLES)
    )
    columns = []
    for reason in stalls.reasons:
        counter = latencies.get(reason)
        candidates = []
        if counter is not None:
            candidates.append(counter / pl.col(_LATENCY))
        if reason in samples:
            candidates.append(samples[reason] / pl.col(_SAMPLES))
        share = pl.coalesce(candidates) if candidates else pl.lit(None)
        columns.append(share.cast(pl.Float64).alias(f"stalls.{reason}"))
    return sums.with_columns(columns).select(f"stalls.{reason}" for reason in stalls.reasons)


def top_stall(stalls: Stalls) -> list[pl.Expr]:
    """Return the stall reason with the largest share, not counting selected and not selected, and that share."""
    reasons = [reason for reason in stalls.reasons if reason not in MEANINGFUL_STALLS_EXCEPT]
    shares = {reason: pl.col(f"stalls.{reason}") for reason in reasons}
    return [largest(shares).alias("limiter.stall"), pl.max_horizontal(shares.values()).alias("limiter.stall_frac")]


def largest(value_by_name: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return, row by row, the name of the largest value, the first of equals; null where no value is above zero.

    The expression repeats the maximum for each candidate; polars computes it once in a lazy query.
    """
    if not value_by_name:
        return pl.lit(None, pl.String)
    highest = pl.max_horizontal(value_by_name.values())
    name_of_highest = pl.coalesce(pl.when(value == highest).then(pl.lit(name)) for name, value in value_by_name.items())
    return pl.when(highest > 0).then(name_of_highest)
