"""A counted network at its roofline times on one machine: lower bounds of where its time will go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ncuroof.formatting import MISSING, byte_count, counted, duration, flop_count, flop_rate, intensity, share
from ncuroof.model import Machine, Operation, Prediction, machine_of, predict
from ncuroof.present.charts.roofline_svg import Mark, roofline_svg
from ncuroof.tables import check

_MOST_LINES = 12

EXPECTED = pl.Schema(
    {
        "id": pl.UInt32(),  # number of the call, in the order of calls
        "operator": pl.String(),  # PyTorch's name, e.g. aten::mm
        "module": pl.String(),  # innermost torch.nn.Module; null outside any
        "is_backward": pl.Boolean(),
        "inputs": pl.String(),  # sizes of the input tensors
        "dtype": pl.String(),  # of the first input
        "flop": pl.Float64(),  # null if the operator's work is unknown
        "matrix_flop": pl.Float64(),  # work of products, convolutions and attention
        "read_bytes": pl.Float64(),
        "written_bytes": pl.Float64(),
        "intensity_flop_per_byte": pl.Float64(),  # null if nothing moves, or the work is unknown
    }
)
"""One row per counted call of an operator, except views and allocations."""

EXPECTED_TIMES = pl.Schema(
    {
        **EXPECTED,
        "precision": pl.String(),  # roof of the work that takes longest; null without work
        "bound": pl.String(),  # compute or memory; null if a roof or the work is unknown
        "least_ns": pl.Float64(),  # roofline time
    }
)
"""EXPECTED, with each call's roofline time on one machine."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedRoofline:
    """Every counted call at its roofline time on one machine.

    Each operator counts as a separate kernel: operators that a compiler fuses move fewer bytes.

    Attributes:
        machine: the machine.
        calls: EXPECTED_TIMES, one row per call.
        remarks: remarks that end the summary.
    """

    machine: Machine
    calls: pl.DataFrame
    remarks: tuple[str, ...] = ()

    @property
    def least_ns(self) -> float | None:
        """Sum of the roofline times, without calls whose work or roof is unknown; None if that leaves nothing."""
        return self._sum("least_ns")

    @property
    def flop(self) -> float | None:
        """Sum of the known work, a lower bound if that of some calls is unknown; None if that leaves nothing."""
        return self._sum("flop")

    @property
    def bytes(self) -> float:
        """Sum of the compulsory traffic, both directions."""
        return float(self.calls["read_bytes"].sum()) + float(self.calls["written_bytes"].sum())

    def by_operator(self) -> pl.DataFrame:
        """Return one row per operator: calls, work, traffic, least time and its share, the longest first.

        Times do not include `n_unknown` calls, whose work or roof is unknown. Work does not include calls of unknown work, and
        intensity is the known work over the bytes of all calls. With such calls, work, time and intensity are lower bounds, and
        null if they would be 0. Shares are of the total known time.
        """
        return self._grouped_by("operator")

    def by_module(self, depth: int | None = None) -> pl.DataFrame:
        """Return one row per module, with the columns of `by_operator`, the longest first.

        Args:
            depth: number of leading names of a module's path to group by, 1 for the whole network; default: innermost modules.
        """
        module = pl.col("module") if depth is None else pl.col("module").str.split(".").list.head(depth).list.join(".")
        return self._grouped_by(module.alias("module"))

    def svg(self, title: str = "expected, at best") -> str:
        """Return the roofline chart as SVG: a mark per operator and shapes, except calls without work or time."""
        calls = self.calls.filter((pl.col("flop") > 0) & (pl.col("least_ns") > 0))
        names = ["operator", "inputs", "dtype"]
        once = calls.unique(subset=[*names, "flop", "read_bytes"], maintain_order=True)
        return roofline_svg(title, [self._mark(row) for row in once.iter_rows(named=True)])

    def _mark(self, row: Mapping[str, Any]) -> Mark:
        rate = row["flop"] / row["least_ns"] * 1e9
        rate_text = flop_rate(rate, row["precision"])
        return Mark(
            intensity_flop_per_byte=row["intensity_flop_per_byte"],
            flop_per_s=rate,
            tooltip=f"{row['operator']} {row['inputs']} {row['dtype']}, {row['module'] or 'outside'}: {rate_text}",
            machine=self.machine.id,
            precision=row["precision"],
            peak_flop_per_s=self.machine.peak_flop_per_s[row["precision"]],
            bandwidth_bytes_per_s=self.machine.bandwidth_bytes_per_s["dram"],
        )

    def _grouped_by(self, key: str | pl.Expr) -> pl.DataFrame:
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
        """Return a summary as text: totals, and the operators that take longest."""
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
    """Return the sum of the known values; null if some are unknown and the others sum to 0: a lower bound of 0 is useless."""
    values = pl.col(name)
    return pl.when(values.is_not_null().all() | (values.sum() > 0)).then(values.sum()).alias(name)


def _at_least(amount: str, what: str) -> str:
    return f"{what} not known" if amount == MISSING else f"{amount} at least"


def against(
    table: pl.DataFrame, operations: Sequence[Operation], gpu: Machine | str, remarks: tuple[str, ...]
) -> ExpectedRoofline:
    """Return the calls of a network at their roofline times on a machine.

    Args:
        table: EXPECTED.
        operations: the operation of each row of `table`.
        gpu: a machine, or its name.
        remarks: remarks that end the summary.

    Raises:
        ArgumentError: `gpu` is neither a machine nor a name.
        UnknownNameError: no machine has that name, or several GPUs match it.
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
