"""Which resource limits a kernel: each side of it, and its resident blocks per SM.

A side is limited by the resource of the busiest counter in Speed of Light's breakdown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ncuroof.metrics.catalogue import BREAKDOWNS, Catalogue
from ncuroof.metrics.quantities import CounterTable, largest

SENDS = 0.75
"""access.l2_input_share from which the path from the SMs to L2 is the limit, and not L1: the threshold of the rules, too."""

LEAST_STALL_FRAC = 0.3
"""Share of the warps' time from which a stall reason says what limits a kernel: the threshold of `stall_mio_throttle`, too. In the
seven profiled launches that use shared memory and wait this long for the MIO queue while L1 is busy, 89 to 99 % of L1's wavefronts
were shared memory's."""

NEAR_FRAC = 0.1
"""How far the busiest known unit may be below a side's total and still be its limiter; two sides this close are balanced, too."""

RESOURCES = ("registers", "shared_memory", "warps", "blocks", "barriers")
"""Resources with a limit on the resident blocks, `occupancy.limit_…`; warps and blocks are slots of the SM."""


def busiest_counters(workloads: pl.DataFrame, table: CounterTable, catalogue: Catalogue) -> list[pl.Expr]:
    """Return, for each side, the busiest counter of Speed of Light's breakdown that belongs to a resource.

    It is null where that is far below the side's total: the busiest counter is then one that the report lacks.
    """
    columns = []
    for side, listing in BREAKDOWNS.items():
        busiest = pl.lit(None, pl.String)
        texts = workloads[listing] if listing in workloads.columns else pl.Series([], dtype=pl.String)
        for text in texts.drop_nulls().unique(maintain_order=True):
            candidates = {
                name: counter
                for name in text.split(",")
                if (counter := table.counter(name)) is not None
                and _resource(name, catalogue.resources[side]) is not None
            }
            most = pl.max_horizontal(*candidates.values(), pl.lit(None, pl.Float64))
            is_far = (most < pl.col(f"utilisation.{side}") - NEAR_FRAC).fill_null(value=False)
            named = pl.when(~is_far).then(largest(candidates))
            busiest = pl.when(pl.lit(texts == text)).then(named).otherwise(busiest)
        columns.append(busiest.alias(f"limiter.{side}_counter"))
    return columns


def _resource(name: str, resource_by_prefix: Mapping[str, str]) -> str | None:
    """Return the resource that a counter belongs to: that of the longest matching prefix; None if none matches."""
    matching = [prefix for prefix in resource_by_prefix if name.startswith(prefix)]
    return resource_by_prefix[max(matching, key=len)] if matching else None


def with_limiters(kernels: pl.DataFrame, catalogue: Catalogue) -> pl.DataFrame:
    """Add `limiter.<side>`: the resource of each side's busiest counter, with corrections on the memory side.

    DRAM: it is busier than all Speed of Light units, which do not include it on chips that share the CPU's memory. Shared memory:
    it makes most of a busiest L1 data stage, or was not counted apart from L1 and warps wait mostly for its queue. L1: its data
    stage or its path to L2 is busier at its own peak than all counters say, or a part of it that the report does not list is
    saturated, and what SMs send to L2 is not the limit. L2: that is the limit; or in place of system memory on chips that share the
    CPU's memory, where all fills of L2 come from there.
    """
    columns = []
    for side in BREAKDOWNS:
        busiest = kernels[f"limiter.{side}_counter"]
        resource_by_counter = {
            name: _resource(name, catalogue.resources[side]) for name in busiest.drop_nulls().unique()
        }
        columns.append(busiest.replace_strict(resource_by_counter, return_dtype=pl.String).alias(f"limiter.{side}"))
    kernels = kernels.with_columns(columns)
    sends = (pl.col("access.l2_input_share") >= SENDS).fill_null(value=False)
    is_l1 = (pl.col("utilisation.l1_beyond") > pl.col("utilisation.memory")).fill_null(value=False) & ~sends
    most, dram = pl.col("utilisation.memory_side"), pl.col("utilisation.dram")
    is_dram = (most > pl.col("utilisation.memory")) & (dram >= most)
    is_fill = (pl.col("limiter.memory") == "system_memory") & (pl.col("device.shares_memory") > 0)
    is_data_stage = _is_most("utilisation.l1_data") | pl.col("limiter.memory_counter").str.contains(
        "l1tex__data_(bank|pipe)"
    )
    is_l1 |= _is_most("utilisation.l1_data") | (_is_most("utilisation.l1_to_l2") & ~sends)
    return kernels.with_columns(
        pl.when(is_dram)
        .then(pl.lit("dram"))
        .when(_is_most("utilisation.l1_to_l2") & sends)
        .then(pl.lit("l2"))
        .when(is_data_stage & (pl.col("access.shared_wavefront_share") > 0.5))
        .then(pl.lit("shared"))
        .when((is_l1 | (pl.col("limiter.memory") == "l1")) & _waits_for_shared_memory())
        .then(pl.lit("shared"))
        .when(is_l1)
        .then(pl.lit("l1"))
        .otherwise(pl.when(is_fill).then(pl.lit("l2")).otherwise("limiter.memory"))
        .alias("limiter.memory")
    )


def _is_most(unit: str) -> pl.Expr:
    """Return whether a unit is the busiest of the memory side, and busier than the busiest counter of Speed of Light."""
    busy = pl.col(unit)
    return ((busy > pl.col("utilisation.memory")) & (busy >= pl.col("utilisation.memory_side"))).fill_null(value=False)


def _waits_for_shared_memory() -> pl.Expr:
    """Return whether warps wait mostly for the MIO queue because of shared memory, whose share of the L1 data stage is unknown.

    Special functions use the queue as well: False if the kernel has no shared memory, or the XU is busy enough to fill the queue.
    """
    is_mio = (pl.col("limiter.stall") == "mio_throttle") & (pl.col("limiter.stall_frac") >= LEAST_STALL_FRAC)
    is_xu = (pl.col("scheduler.xu_busy_frac") >= LEAST_STALL_FRAC).fill_null(value=False)
    return (is_mio & (pl.col("access.unsplit_shared_bytes") >= 1) & ~is_xu).fill_null(value=False)


def occupancy_limiters(quantities: Mapping[str, Any]) -> list[str]:
    """Return the resources that allow the fewest blocks per SM; several where they tie, none where no limit is known.

    For a kernel without shared memory, or with at most one barrier per block, reports give the number of block slots as the limit
    of that resource, too. Such ties are left out: barriers where block slots tie, unused shared memory where anything else ties.

    Args:
        quantities: canonical quantities of the kernel; shared memory counts as used if the program requested some per block, or if
            some is allocated where what it requested is not known.
    """
    limits = {name: quantities[f"occupancy.limit_{name}"] for name in RESOURCES}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    tied = [name for name, limit in known.items() if limit == min(known.values())]
    own_bytes = quantities["launch.own_shared_bytes_per_block"]
    used_bytes = quantities["launch.shared_bytes_per_block"] if own_bytes is None else own_bytes
    is_of_slots = {"barriers": "blocks" in tied, "shared_memory": used_bytes == 0 and len(tied) > 1}
    return [name for name in tied if not is_of_slots.get(name, False)]
