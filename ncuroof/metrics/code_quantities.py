"""Quantities from a kernel's machine code and its per-instruction counters, which no counter of the whole kernel gives."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

import polars as pl

from ncuroof.ingest import BY_LANE, RawReport
from ncuroof.metrics.quantities import CounterTable

LOADS_BY_CODE, ATOMIC_WAIT = "access.loads_by_code", "access.atomic_wait_frac"
SERIAL_COPY_WAIT = "access.serial_copy_wait_frac"

N_ALIKE = ("launch.n_alike_threads", "launch.n_alike_blocks")
MOST_EXECUTIONS, WIDE_CONFLICTS = "access.most_executions", "access.wide_conflict_frac"
LOCAL_EXECUTED = "access.local_executed_frac"

UNFUSED_BY_CODE, FP64_DIVISIONS = "arithmetic.fp32_unfused_by_code", "arithmetic.fp64_division_frac"
LOADS_PER_FMA, CONVERSIONS_PER_FMA = "arithmetic.loads_per_multiply_add", "arithmetic.conversions_per_multiply_add"
BEYOND_INTEGERS, GLOBAL_LOADS = "arithmetic.beyond_integers_by_code", "access.global_loads_by_code"
_OF_OPERATIONS = (UNFUSED_BY_CODE, FP64_DIVISIONS, LOADS_PER_FMA, CONVERSIONS_PER_FMA, BEYOND_INTEGERS, GLOBAL_LOADS)

_OF_RAW_CODE = {
    "access.adjacent_loads_frac": "adjacent_loads",
    "access.local_by_code_frac": "local_accesses",
    "access.unread_shared_stores": "unread_shared_stores",
}
"""By quantity, the column of RAW_CODE that it is."""

BY_CODE = (
    LOADS_BY_CODE,
    ATOMIC_WAIT,
    SERIAL_COPY_WAIT,
    *_OF_RAW_CODE,
    *N_ALIKE,
    MOST_EXECUTIONS,
    WIDE_CONFLICTS,
    LOCAL_EXECUTED,
    *_OF_OPERATIONS,
)
"""The columns that `values_by_code` returns."""

_GENERATOR_PARTS = {
    "access.generator_setup_frac": ("global_loads", "memory_instructions"),
    "instructions.generator_frac": ("instructions", "instructions"),
}
"""By quantity: the measure that is summed over the lines of cuRAND's header, and the measure whose kernel total divides it."""

_XU_SAMPLES = "instructions.xu_sample_frac"

_GENERATOR_HEADER = "curand_kernel.h"

_EXECUTED, _THREADS, _THREADS_ON = "inst_executed", "thread_inst_executed", "thread_inst_executed_true"
_MEMORY_TYPE, _GLOBAL, _LOCAL = "memory_type", 4, 8
"""Counter of an instruction's memory type, and its values for global and local memory: `by_line` of profiles/metrics/lines.toml."""

_WAVEFRONTS, _IDEAL_WAVEFRONTS = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
_WIDTH, _WIDE_BITS = "memory_access_size_type", 64
"""Counter of an access's width, in bits from 32 on, and the least width of one for which lanes take turns at the banks."""

_N_PER_DIVISION = 8
"""FP64 instructions that follow the approximation of a reciprocal or root, without the slow path (a choice for roots): where
one code has nine divisions fewer than another, it has 63 DFMA and 12 DMUL fewer."""

_WARP = 32
_RETURNING_ATOMICS = "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"
_SAMPLED = "check.sampled_frac"
_LEAST_SAMPLED_FRAC = 0.6
"""Least share of a kernel's cycles that samples have to cover to stand for all of it; as for the caveat `sampled_in_part`."""

_LEAST_SAMPLES = 30
_LEAST_KNOWN_FRAC = 0.5
"""Least share of the samples waiting for data that lie at instructions for which the code says what they wait for.

A warp that waits for data can also wait for copies and atomics, and not only for loads."""


EXECUTED_BY_OPCODE = "sass__inst_executed_per_opcode"
"""The counter whose instances are executed warp instructions by opcode."""

CODE = pl.Schema(
    {
        "id": pl.UInt32(),
        "sha256": pl.String(),  # as of CodeIdentity; null where the code is not in the report
        "n_instructions": pl.Int64(),
        "is_whole": pl.Boolean(),
        "compiler": pl.String(),  # version of ptxas; null where the code does not say
        "opcodes": pl.String(),  # executed warp instructions by opcode (`instances_text`); null where they were not collected
    }
)
"""One row per workload: what its machine code is, and what of it was executed."""


def code_of(reports: Sequence[RawReport]) -> pl.DataFrame:
    """Return CODE; `id` numbers the workloads over all reports."""
    rows: list[tuple[object, ...]] = []
    for report in reports:
        unknown = [None] * report.workloads.height
        texts = report.texts[EXECUTED_BY_OPCODE] if EXECUTED_BY_OPCODE in report.texts.columns else unknown
        for identity, compiler, text in zip(report.code["identity"], report.code["compiler"], texts, strict=True):
            known = identity or dict.fromkeys(("sha256", "n_instructions", "is_whole"))
            rows.append((len(rows), *known.values(), compiler, text))
    return pl.DataFrame(rows, schema=CODE, orient="row")


def values_by_code(report: RawReport, waits: Collection[str]) -> pl.DataFrame:
    """Return BY_CODE, one row per workload.

    Args:
        report: as read by `ncuroof.ingest`.
        waits: counters of samples that found a warp waiting for data.
    """
    of_code = report.code.select(pl.col(column).cast(pl.Float64).alias(name) for name, column in _OF_RAW_CODE.items())
    found = pl.DataFrame([*_of_instructions(report, waits), *of_code, *_alike(report), *_arithmetic(report)])
    n_serial = report.code["serial_copies"]
    wait = pl.when(n_serial > 0).then(SERIAL_COPY_WAIT).when(n_serial == 0).then(0.0)
    return found.with_columns(wait.alias(SERIAL_COPY_WAIT))


def _of_instructions(report: RawReport, waits: Collection[str]) -> list[pl.Series]:
    """Return what counters of instructions tell of each workload, from LOADS_BY_CODE to LOCAL_EXECUTED but for those of code alone.

    A column is null without the counters for it.
    """
    instructions = report.instructions
    known = {
        **_waits(instructions, waits),
        **_most_executions(instructions),
        **_wide_conflicts(instructions),
        **_local_executed(instructions),
    }
    rows = pl.DataFrame({"row": range(report.workloads.height)}, schema={"row": pl.UInt32})
    values = rows.join(instructions.group_by("row").agg(**known), on="row", how="left", maintain_order="left")
    names = (LOADS_BY_CODE, ATOMIC_WAIT, SERIAL_COPY_WAIT, MOST_EXECUTIONS, WIDE_CONFLICTS, LOCAL_EXECUTED)
    unknown = (pl.lit(None, pl.Float64).alias(name) for name in names if name not in known)
    return values.with_columns(unknown).select(names).get_columns()


def sampled_waits(table: CounterTable) -> tuple[pl.Expr, ...]:
    """Return ATOMIC_WAIT and SERIAL_COPY_WAIT where the samples behind them cover the kernel, else null.

    Without atomics that return a result, or such copies, no warp waits for one, whatever was sampled.
    """
    is_partial = (pl.col(_SAMPLED) < _LEAST_SAMPLED_FRAC).fill_null(value=False)
    without = {
        ATOMIC_WAIT: table.counter_or_null(_RETURNING_ATOMICS) == 0,
        SERIAL_COPY_WAIT: pl.col(SERIAL_COPY_WAIT) == 0,
    }
    return tuple(
        pl.when(has_none).then(0.0).when(~is_partial).then(name).alias(name) for name, has_none in without.items()
    )


def _waits(instructions: pl.DataFrame, waits: Collection[str]) -> dict[str, pl.Expr]:
    """Return LOADS_BY_CODE, ATOMIC_WAIT and SERIAL_COPY_WAIT of a kernel.

    They are null where samples are few or the code explains too few of them.
    """
    counted = [pl.col(name) for name in sorted(waits) if name in instructions.columns]
    if not counted:
        return {}
    n_samples = pl.coalesce(counted)
    known = n_samples.filter(pl.col("n_loads").is_not_null()).sum()
    is_enough = n_samples.sum() >= _LEAST_SAMPLES
    are_loads_known = is_enough & (known >= _LEAST_KNOWN_FRAC * n_samples.sum())

    def share(is_for: str) -> pl.Expr:
        known_waits = n_samples.filter(pl.col(is_for).is_not_null()).sum()
        are_known = is_enough & (known_waits >= _LEAST_KNOWN_FRAC * n_samples.sum())
        return pl.when(are_known).then(n_samples.filter(is_for).sum() / n_samples.sum())

    return {
        LOADS_BY_CODE: pl.when(are_loads_known).then((n_samples * pl.col("n_loads")).sum() / known),
        ATOMIC_WAIT: share("waits_for_atomic"),
        SERIAL_COPY_WAIT: share("waits_for_copies"),
    }


def _most_executions(instructions: pl.DataFrame) -> dict[str, pl.Expr]:
    """Return MOST_EXECUTIONS of a kernel: executions of its most frequently executed global-memory instruction.

    It is null where no instruction accesses global memory. An instruction without predicated-off lanes accessed memory as often as
    it was executed. Otherwise its count may include executions with all lanes off, and a lower bound is used: the lanes that were
    on, over the size of a warp.
    """
    if not {_EXECUTED, _THREADS, _THREADS_ON, _MEMORY_TYPE} <= set(instructions.columns):
        return {}
    has_all_lanes = pl.col(_THREADS_ON) == pl.col(_THREADS)
    n_executions = pl.when(has_all_lanes).then(_EXECUTED).otherwise(pl.col(_THREADS_ON) / _WARP)
    return {MOST_EXECUTIONS: n_executions.filter(pl.col(_MEMORY_TYPE) == _GLOBAL).max()}


def _wide_conflicts(instructions: pl.DataFrame) -> dict[str, pl.Expr]:
    """Return WIDE_CONFLICTS of a kernel: the share of the wavefronts beyond the ideal that accesses of 8 or 16 bytes take.

    It is null where no access has a bank conflict.
    """
    if not {_WAVEFRONTS, _IDEAL_WAVEFRONTS, _WIDTH} <= set(instructions.columns):
        return {}
    excess = pl.col(_WAVEFRONTS) - pl.col(_IDEAL_WAVEFRONTS)
    whole = excess.sum()
    return {WIDE_CONFLICTS: pl.when(whole > 0).then(excess.filter(pl.col(_WIDTH) >= _WIDE_BITS).sum() / whole)}


def _local_executed(instructions: pl.DataFrame) -> dict[str, pl.Expr]:
    """Return LOCAL_EXECUTED of a kernel; null where no instruction that accesses global or local memory was executed."""
    if not {_EXECUTED, _MEMORY_TYPE} <= set(instructions.columns):
        return {}
    n_local, n_global = (pl.col(_EXECUTED).filter(pl.col(_MEMORY_TYPE) == kind).sum() for kind in (_LOCAL, _GLOBAL))
    return {LOCAL_EXECUTED: pl.when(n_local + n_global > 0).then(n_local / (n_local + n_global))}


def _arithmetic(report: RawReport) -> list[pl.Series]:
    """Return _OF_OPERATIONS of each workload; null where its code is unknown, or has no arithmetic of the kind in a divisor."""
    unknown = (None,) * len(_OF_OPERATIONS)
    codes = report.code.select("operations", has_divisions=~pl.col("has_reciprocals_alone").fill_null(value=False))
    rows = [unknown if n is None else _of_operations(n, has_divisions=known) for n, known in codes.iter_rows()]
    return _columns(_OF_OPERATIONS, rows)


def _of_operations(n: Mapping[str, int], *, has_divisions: bool) -> tuple[float | None, ...]:
    n_loads, n_fma = n["global_load"] + n["shared_load"], n["ffma"] + n["dfma"]
    per_fma = [each / n_fma if n_fma else None for each in (n_loads, n["conversion"])]
    divisions = _divisions(n if has_divisions else {**n, "rcp64h": 0})
    return _unfused(n), divisions, *per_fma, n["beyond_integers"], n["global_load"]


def _unfused(n: Mapping[str, int]) -> float | None:
    """Return additions and multiplications over all FP32 arithmetic."""
    unfused = n["fadd"] + n["fmul"]
    return unfused / (unfused + n["ffma"]) if unfused + n["ffma"] else None


def _divisions(n: Mapping[str, int]) -> float | None:
    """Return the share of the FP64 arithmetic that divisions and square roots take."""
    whole = n["dadd"] + n["dmul"] + n["dfma"]
    return min(_N_PER_DIVISION * (n["rcp64h"] + n["rsq64h"]) / whole, 1) if whole else None


def _alike(report: RawReport) -> list[pl.Series]:
    """Return N_ALIKE of each workload: how many threads of a block, and blocks, its code cannot distinguish; null where unknown."""
    unread = report.code["unread_indices"].to_list()
    extents = report.counters.select(pl.selectors.starts_with("launch__block_dim_", "launch__grid_dim_"))
    # A table of no columns has no rows: their number is that of the workloads.
    has_indices = any(each is not None for each in unread) and extents.width
    launches = extents.to_dicts() if has_indices else [{}] * len(unread)
    return _columns(N_ALIKE, [_n_alike(names, launch) for names, launch in zip(unread, launches, strict=True)])


def _columns(names: Sequence[str], rows: Sequence[tuple[float | None, ...]]) -> list[pl.Series]:
    return [pl.Series(name, [row[place] for row in rows], pl.Float64) for place, name in enumerate(names)]


def _n_alike(unread: Sequence[str] | None, launch: Mapping[str, float | None]) -> tuple[float | None, ...]:
    """Return N_ALIKE of a launch whose code reads no index along the extents `unread`.

    Where the lanes of a warp exchange values (BY_LANE), threads are known to be alike only if whole warps are.
    """
    if unread is None:
        return None, None
    threads, blocks = (_product([launch.get(name) for name in unread if what in name]) for what in ("block", "grid"))
    n_wide = launch.get("launch__block_dim_x")
    are_warps_alike = "launch__block_dim_x" not in unread and n_wide is not None and n_wide % _WARP == 0
    return None if BY_LANE in unread and not are_warps_alike else threads, blocks


def _product(extents: list[float | None]) -> float | None:
    return None if None in extents else prod(filter(None, extents))


def shares_by_lines(lines: pl.DataFrame) -> pl.DataFrame:
    """Return shares of a kernel's totals, one row per kernel that has LINES.

    They are `_GENERATOR_PARTS` of cuRAND's header, and `_XU_SAMPLES`, the share of the samples that are at instructions of XU.

    Args:
        lines: LINES.
    """
    is_generator = pl.col("file") == _GENERATOR_HEADER
    total = pl.col("value") / pl.col("frac")
    shares = [
        (
            pl.col("value").filter(is_generator & (pl.col("measure") == part)).sum()
            / total.filter(pl.col("measure") == whole).first()
        ).alias(name)
        for name, (part, whole) in _GENERATOR_PARTS.items()
    ]
    samples, of_xu = (total.filter(pl.col("measure") == measure).first() for measure in ("samples", "xu_samples"))
    return lines.group_by("id", maintain_order=True).agg(*shares, (of_xu / samples).alias(_XU_SAMPLES))
