"""Busy times: for how long a kernel needed each resource at its peak. This part of its time scales with the peak."""

from __future__ import annotations

import polars as pl

from ncuroof.diagnosis import load_rules
from ncuroof.diagnosis.conditions import all_hold
from ncuroof.enums import TENSOR_PREFIX
from ncuroof.metrics import largest
from ncuroof.roofline.bounds import LEAST_UNCOUNTED_FRAC
from ncuroof.roofline.sheet_roofs import sheet_precision
from ncuroof.tables import KERNELS, check, conform
from ncuroof.whatif.schemas import BUSY_TIMES

RESOURCES = ("dram", "l2", "l2_slice", "l1", "sm", "fp64", "fp32", "fp16", "tensor")
"""Resources with a peak: two memory levels; one slice of L2, which atomics on few addresses saturate while the others idle; L1 with
shared memory; four kinds of arithmetic; and `sm`, everything else that scales with number and clock of the SMs (issue slots, and
pipes without FLOP counters)."""

ARITHMETIC = ("fp64", "fp32", "fp16", "tensor")
"""Resources whose peaks are FLOP/s."""

PER_SM = ("l1", "sm", *ARITHMETIC)
"""Resources of single SMs. Idle SMs leave theirs unused."""

_MOST_SHARED_BYTES = 2**32 - 1
"""A launch states its shared memory in 32 bits (`sharedMemBytes` of cuLaunchKernel)."""

_FMA, _FMA_HEAVY, _L2, _L2_SLICE, _TENSOR = "fma_frac", "fma_heavy_frac", "l2_frac", "l2_slice_frac", "tensor_pipe_frac"
_COLLIDING = "colliding_atomics"
"""The finding whose conditions say that one slice of L2 executes atomics one after another."""

_SOURCES = {
    "dram": ("utilisation.dram", "bandwidth.dram.frac"),
    "l2": (_L2, "bandwidth.l2.frac"),
    "l2_slice": (_L2_SLICE,),
    "l1": ("utilisation.l1", "bandwidth.l1.frac", "bandwidth.shared.frac"),
    "sm": (
        "utilisation.issue", "utilisation.alu", "utilisation.xu", "utilisation.lsu", "utilisation.tex", "utilisation.uniform",
        "utilisation.branch", "utilisation.address", "utilisation.tma", "utilisation.mio", _FMA_HEAVY,
    ),
    "fp64": ("utilisation.fp64", "work.fp64.frac"),
    "fp32": (_FMA, "work.fp32.frac"),
    "fp16": ("utilisation.fp16", "work.fp16.frac"),
    "tensor": (_TENSOR,),
}  # fmt: skip
"""Utilisations of each resource; the largest counts."""

_WHOLE_L2 = "utilisation.l2"
"""Utilisation of L2 including stages without counters, whose time does not scale with the slices (docs/whatif.md)."""

WGMMA = 90
"""Compute capability of the chips whose counters show what tensor instructions read from shared memory."""
_WAVEFRONTS_PER_LSU_INSTRUCTION = 4
"""Wavefronts of a load or store of 16 bytes per lane: the most that an access without bank conflicts takes."""


def busy_times(kernels: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Return how long each launch would need each resource at its peak.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
        work: WORK.

    Returns:
        BUSY_TIMES, rows as in `kernels`.

    Raises:
        SchemaError: a column is absent or has another type.

    Source: Wang et al., arXiv 2009.04598 (time-based roofline): bytes / bandwidth and work / peak are times.
    """
    check(kernels, KERNELS, table="KERNELS")
    rows = kernels.join(tensor_types(work), on="id", how="left", maintain_order="left").with_columns(
        _tensor().alias(_TENSOR),
        *_fma_pipe(),
        pl.coalesce("utilisation.l2_stages", _WHOLE_L2).alias(_L2),
        _full_slice().alias(_L2_SLICE),
        pl.col("tensor_precision").alias("to_precision"),
        pl.col("id").alias("fused_id"),
        pl.when(pl.col("occupancy.waves") > 0)  # printed tables round few waves to none
        .then(pl.col("launch.n_blocks") / pl.col("occupancy.waves"))
        .alias("n_resident_blocks"),
        *(pl.col("launch.n_blocks").alias(name) for name in ("recorded_n_blocks", "n_blocks")),
        _possible_shared_bytes().alias("shared_bytes_per_block"),
        pl.col("device.sm_count").alias("sm_count"),
        pl.col("traffic_bytes.dram_read").alias("dram_read_bytes"),
        pl.col("traffic_bytes.dram_write").alias("dram_write_bytes"),
        *(pl.col("roofline.ridge_ratio").alias(name) for name in ("recorded_ridge_ratio", "ridge_ratio")),
    )
    share = {name: sm_share(pl.col("n_blocks"), pl.col("sm_count")) if name in PER_SM else 1.0 for name in RESOURCES}
    # Some counters are of the busiest SM, so the quotient can exceed 1; SMs with blocks are busy at most all of their time.
    reached = {name: (_busiest(name, rows.columns) / share[name]).clip(0, 1) for name in RESOURCES}
    most = pl.max_horizontal(reached.values())
    of_whole_l2 = pl.max_horizontal(reached["l2"], pl.col(_WHOLE_L2).clip(0, 1))
    of_sms = pl.coalesce(reached["sm"], reached["l1"])
    is_known = reached["dram"].is_not_null() & of_sms.is_not_null() & ~pl.col("failed") & (most > 0)
    return (
        rows.with_columns(
            *((reached[name] * share[name] * pl.col("duration_ns")).alias(f"busy.{name}") for name in RESOURCES),
            (of_whole_l2 * pl.col("duration_ns")).alias("busy.l2_whole"),
            pl.when(is_known).then(most).alias("reached_frac"),
            pl.when(is_known).then(pl.max_horizontal(most, of_whole_l2)).alias("reached_by_whole_l2_frac"),
            largest(reached).alias("limiter"),
        )
        .with_columns(
            _as_dram().alias("busy.l2_as_dram"),
            pl.min_horizontal(_operands() * pl.col("duration_ns"), "busy.l1").alias("busy.operands"),
        )
        .pipe(conform, BUSY_TIMES)
    )


def _possible_shared_bytes() -> pl.Expr:
    """Return the shared memory that a block asks for; null if a damaged counter says more than a launch can ask for."""
    asked = pl.col("launch.own_shared_bytes_per_block")
    return pl.when(asked <= _MOST_SHARED_BYTES).then(asked)


def sm_share(n_blocks: pl.Expr, sm_count: pl.Expr) -> pl.Expr:
    """Return the share of the SMs' time that evenly distributed blocks can use: blocks / (SMs × ceil(blocks / SMs)).

    132 blocks fill 132 SMs. With 133 blocks, one SM is busy twice as long as the others: 133 / 264. 1 if blocks or SMs are unknown.
    """
    rounds = (n_blocks / sm_count).ceil()
    return pl.when((n_blocks > 0) & (sm_count > 0)).then(n_blocks / (sm_count * rounds)).otherwise(1.0)


def _busiest(resource: str, columns: list[str]) -> pl.Expr:
    known = [name for name in _SOURCES[resource] if name in columns]
    return pl.max_horizontal(known).clip(0, 1) if known else pl.lit(None, pl.Float64)


def _fma_pipe() -> tuple[pl.Expr, pl.Expr]:
    """Return how busy the FMA pipe was as a whole, and how busy its heavy half was if that was busier.

    Only the heavy half executes integer multiply-add, at 64 per clock and SM whatever the FP32 rate of the chip, so it scales with
    number and clock of the SMs.

    Source: CUDA C++ Programming Guide, table 'Throughput of Native Arithmetic Instructions'.
    """
    whole, busier = pl.col("utilisation.fma_pipe"), pl.col("utilisation.fp32")
    return pl.coalesce(whole, busier).alias(_FMA), pl.when(busier > whole).then(busier).alias(_FMA_HEAVY)


def _tensor() -> pl.Expr:
    """Return how busy the tensor pipe was; 0 if no tensor work was counted and it was hardly busy."""
    is_noise = pl.col("tensor_precision").is_null() & (pl.col("utilisation.tensor") <= LEAST_UNCOUNTED_FRAC)
    return pl.when(is_noise).then(0.0).otherwise(pl.coalesce("utilisation.tensor", "tensor_frac"))


def _as_dram() -> pl.Expr:
    """Return the time that L2's bytes would take at the bandwidth of DRAM; null if either is unknown."""
    of_dram = pl.col("dram_read_bytes") + pl.col("dram_write_bytes")
    return pl.when(of_dram > 0).then(pl.col("busy.dram") * pl.col("traffic_bytes.l2") / of_dram)


def _operands() -> pl.Expr:
    """Return the largest share of the time in which tensor instructions can have read shared memory directly.

    It is limited by the time of the tensor pipe, and by the time of shared memory without loads and stores. It is 0 except on 9.0
    (wgmma): on later chips (tcgen05), the wavefronts of L1 do not include the reads of tensor instructions.

    Source: PTX ISA, wgmma.mma_async: matrices lie in shared memory. See `utilisation.beside_operands`, `traffic_bytes.shared`.
    """
    beside = pl.col("utilisation.l1") - _WAVEFRONTS_PER_LSU_INSTRUCTION * pl.col("utilisation.lsu")
    read = pl.min_horizontal(beside.clip(lower_bound=0), _TENSOR)
    has_them = (pl.col("compute_capability") == WGMMA) & beside.is_not_null()
    return pl.when(has_them).then(read.fill_null(0.0)).otherwise(0.0)


def _full_slice() -> pl.Expr:
    """Return how busy the busiest slice of L2 was if atomics saturate it alone; 0 if they do not."""
    is_full = all_hold(load_rules().findings[_COLLIDING].all_of)
    return pl.when(is_full).then("access.hottest_l2_slice_frac").otherwise(0.0)


def tensor_types(work: pl.DataFrame) -> pl.DataFrame:
    """Return, per kernel, the tensor type whose work takes longest, and the share of the time for all tensor types.

    Types are named as in data sheets: without sparsity, and with the suffix for accumulation in FP16.
    """
    done = work.filter(pl.col("precision").str.starts_with(TENSOR_PREFIX) & (pl.col("frac") > 0) & pl.col("reliable"))
    return (
        done.sort("id", "frac", maintain_order=True)
        .group_by("id", maintain_order=True)
        .agg(
            sheet_precision().last().alias("tensor_precision"),
            pl.col("frac").sum().alias("tensor_frac"),
        )
    )
