"""A counted network against the roofs of one machine: where its time will go, at least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ncuroof.model import Machine, Operation, Prediction, machine_of, predict
from ncuroof.present.charts.roofline_svg import Mark, roofline_svg
from ncuroof.present.format import MISSING, byte_count, counted, duration, flop_count, flop_rate, intensity, share
from ncuroof.tables import check
from ncuroof.torch.tables import EXPECTED, EXPECTED_TIMES

_MOST_LINES = 12


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedRoofline:
    """Every counted call at its roofline time on one machine.

    Each operator is a kernel of its own: what a compiler fuses moves less.

    Attributes:
        machine: whose roofs.
        calls: EXPECTED_TIMES, a row per call.
        remarks: what else there is to say, in words.
    """

    machine: Machine
    calls: pl.DataFrame
    remarks: tuple[str, ...] = ()

    @property
    def least_ns(self) -> float | None:
        """Sum of the roofline times; calls whose work or roof is not known are not in it. None where that leaves nothing."""
        return self._sum("least_ns")

    @property
    def flop(self) -> float | None:
        """Sum of all work that is known: at least so much, where that of some calls is not. None where that leaves nothing."""
        return self._sum("flop")

    @property
    def bytes(self) -> float:
        """Sum of all compulsory traffic."""
        return float(self.calls["read_bytes"].sum()) + float(self.calls["written_bytes"].sum())

    def by_operator(self) -> pl.DataFrame:
        """Return a row per operator: calls, work, traffic, least time and its share, the longest first.

        Of `n_unknown` calls the least time is not known, for want of their work or of a roof: the time leaves them out. Work leaves
        out calls whose work is not known; intensity is that work over the bytes of all. Where something is left out, these are
        at least so much, and null where that would be 0; shares are of the time that is known.
        """
        return self._by("operator")

    def by_module(self, depth: int | None = None) -> pl.DataFrame:
        """Return a row per module, columns as of `by_operator`, the longest first.

        Args:
            depth: names of the path that count, 1 for the whole network; by default all: innermost modules.
        """
        module = pl.col("module") if depth is None else pl.col("module").str.split(".").list.head(depth).list.join(".")
        return self._by(module.alias("module"))

    def svg(self, title: str = "expected, at best") -> str:
        """Return the roofline as a picture: a mark for every operator and its shapes; what does no work has no place."""
        calls = self.calls.filter((pl.col("flop") > 0) & (pl.col("least_ns") > 0))
        names = ["operator", "inputs", "dtype"]
        once = calls.unique(subset=[*names, "flop", "read_bytes"], maintain_order=True)
        return roofline_svg(title, [self._mark(row) for row in once.iter_rows(named=True)])

    def _mark(self, row: Mapping[str, Any]) -> Mark:
        rate = row["flop"] / row["least_ns"] * 1e9
        told = flop_rate(rate, row["precision"])
        return Mark(
            intensity_flop_per_byte=row["intensity_flop_per_byte"],
            flop_per_s=rate,
            told=f"{row['operator']} {row['inputs']} {row['dtype']}, {row['module'] or 'outside'}: {told}",
            machine=self.machine.id,
            precision=row["precision"],
            peak_flop_per_s=self.machine.peak_flop_per_s[row["precision"]],
            bandwidth_bytes_per_s=self.machine.bandwidth_bytes_per_s["dram"],
        )

    def _by(self, key: str | pl.Expr) -> pl.DataFrame:
        moved = (pl.col("read_bytes") + pl.col("written_bytes")).sum()
        memory_ns = pl.col("least_ns").filter(pl.col("bound") == "memory").sum()
        sums = self.calls.group_by(key, maintain_order=True).agg(
            pl.len().alias("n_calls"),
            pl.col("least_ns").null_count().alias("n_unknown"),
            _lower_bound("flop"),
            moved.alias("bytes"),
            _lower_bound("least_ns"),
            pl.when(_lower_bound("least_ns").is_not_null()).then(memory_ns).alias("memory_bound_ns"),
        )
        is_there = pl.col("bytes") > 0
        return sums.with_columns(
            pl.when(is_there).then(pl.col("flop") / pl.col("bytes")).alias("intensity_flop_per_byte"),
            (pl.col("least_ns") / (self.least_ns or None)).alias("share_frac"),
        ).sort("least_ns", descending=True, nulls_last=True, maintain_order=True)

    def _sum(self, name: str) -> float | None:
        total: float | None = self.calls.select(_lower_bound(name)).item()
        return total

    def __repr__(self) -> str:
        calls = counted(self.calls.height, "call")
        return f"<ExpectedRoofline: {self.machine.name}; {calls}, {_at_least(duration(self.least_ns), 'time')}>"

    def __str__(self) -> str:
        """Return a summary for people: totals, and the operators that take longest."""
        unknown = self.calls.filter(pl.col("least_ns").is_null())
        work = flop_count(self.flop)
        lines = [
            f"{self.machine.name}: {_at_least(duration(self.least_ns), 'time')}, "
            f"{_at_least(work, 'work') if self.calls['flop'].null_count() else work}, {byte_count(self.bytes)}, "
            f"{counted(self.calls.height, 'call')}"
        ]
        for row in self.by_operator().head(_MOST_LINES).iter_rows(named=True):
            name = row["operator"].removeprefix("aten::").replace("_scaled_dot_product_", "")
            memory = row["memory_bound_ns"] / row["least_ns"] if row["least_ns"] else None
            lines.append(
                f"{share(row['share_frac']):>7}  {duration(row['least_ns']):>8}  {name[:36]:<36} {row['n_calls']:>5}× "
                f"{intensity(row['intensity_flop_per_byte']):>12}  memory-bound {share(memory)}"
                + (f", {row['n_unknown']} unknown" if row["n_unknown"] else "")
            )
        if unknown.height:
            names = ", ".join(sorted(set(unknown["operator"])))
            lines.append(
                f"not included in the time: {counted(unknown.height, 'call')} whose work or roof is unknown ({names})"
            )
        return "\n".join([*lines, *self.remarks])


def _lower_bound(name: str) -> pl.Expr:
    """Return the sum of what is known; null where something is not known and the rest is 0, for at least 0 tells nothing."""
    values = pl.col(name)
    return pl.when(values.is_not_null().all() | (values.sum() > 0)).then(values.sum()).alias(name)


def _at_least(told: str, what: str) -> str:
    return f"{what} not known" if told == MISSING else f"{told} at least"


def against(
    table: pl.DataFrame, operations: Sequence[Operation], gpu: Machine | str, remarks: tuple[str, ...] = ()
) -> ExpectedRoofline:
    """Return the calls of a network at their roofline times on a machine.

    Args:
        table: EXPECTED.
        operations: of its rows.
        gpu: a machine, or its name.
        remarks: for the summary.

    Raises:
        ArgumentError: it is neither.
        UnknownNameError: no machine is called so.
        SchemaError: a column is absent or has another type.
    """
    check(table, EXPECTED, table="EXPECTED")
    machine = machine_of(gpu)
    found: dict[int, Prediction] = {}
    for operation in operations:  # calls of the same shapes share their operation
        if id(operation) not in found:
            found[id(operation)] = predict(operation, machine)
    predictions = [found[id(operation)] for operation in operations]
    times = table.with_columns(
        pl.Series("precision", [each.precision for each in predictions], dtype=pl.String),
        pl.Series("bound", [each.bound for each in predictions], dtype=pl.String),
        pl.Series("least_ns", [each.least_ns for each in predictions], dtype=pl.Float64),
    )
    return ExpectedRoofline(machine, check(times, EXPECTED_TIMES, table="EXPECTED_TIMES"), remarks)
