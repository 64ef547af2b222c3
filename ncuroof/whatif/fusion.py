"""Fuse two kernels into one: what the second reads of what the first wrote need not move."""

from __future__ import annotations

import polars as pl

from ncuroof.errors import WhatIfError
from ncuroof.metrics import largest
from ncuroof.tables import check
from ncuroof.whatif.schemas import BUSY_TIMES, PROJECTION
from ncuroof.whatif.unit_times import RESOURCES

_JOINER = " + "


def parse_fusion(text: str, busy: pl.DataFrame) -> tuple[str, str]:
    """Parse two short names, separated by a comma. A name may contain commas.

    Raises:
        WhatIfError: no comma in the text separates two names of kernels.
    """
    names = set(busy["short_name"].drop_nulls())
    parts = text.split(",")
    splits = [(",".join(parts[:at]).strip(), ",".join(parts[at:]).strip()) for at in range(1, len(parts))]
    found = [split for split in splits if set(split) <= names]
    if not found:
        absent = next((name for split in splits[:1] for name in split if name not in names), text)
        raise WhatIfError(
            f"expected two kernels, WRITER,READER; no kernel is called {absent!r}",
            hint=f"kernels are {', '.join(sorted(names)[:8])}, …",
        )
    return found[0]


def fuse(busy: pl.DataFrame, first: str, second: str) -> pl.DataFrame:
    """Return the launches after fusing the n-th launch of one kernel with the n-th launch of a second kernel.

    A kernel fused with itself fuses every second launch with the one before it. The two parts need the same resources as before,
    without the intermediate result. Its size is the smaller of the bytes that the first part wrote to DRAM and those that the
    second part read. It is saved twice, once as a write and once as a read, at each part's own time per byte, in DRAM and in L2.

    Args:
        busy: BUSY_TIMES in the order of the run.
        first: short name of the kernel that writes the intermediate.
        second: short name of the kernel that reads the intermediate.

    Returns:
        BUSY_TIMES with the same rows; both parts have the `fused_id` of the first.

    Raises:
        WhatIfError: a kernel does not exist, or the two are fused already, ran on different GPUs, or were not launched equally
        often. SchemaError: a column is absent or has another type.
    """
    check(busy, BUSY_TIMES, table="BUSY_TIMES")
    before, after = _writers_and_readers(busy, first, second)
    _check(first, second, before, after)
    saved = pl.min_horizontal("dram_write_bytes", "dram_read_bytes_after").fill_null(0.0)
    pairs = before.hstack(after.rename({name: f"{name}_after" for name in after.columns})).with_columns(saved=saved)
    read, written = "dram_read_bytes_after", "dram_write_bytes"
    parts = pl.concat(
        [
            pairs.select("id", *_without_saved_bytes(""), pl.col(written) - pl.col("saved")),
            pairs.select(
                pl.col("id_after").alias("id"),
                *_without_saved_bytes("_after"),
                (pl.col(read) - pl.col("saved")).alias("dram_read_bytes"),
            ),
        ],
        how="diagonal",
    )
    joined = dict(pairs.select("fused_id_after", "fused_id").iter_rows())
    return busy.update(parts, on="id").with_columns(pl.col("fused_id").replace(joined))


def against_order(busy: pl.DataFrame, first: str, second: str) -> list[str]:
    """Return a remark if launches of the writer come after the launches of the reader that they are fused with.

    Args:
        busy: BUSY_TIMES in the order of the run.
        first: short name of the kernel that writes the intermediate.
        second: short name of the kernel that reads it, launched equally often.
    """
    before, after = (rows["id"] for rows in _writers_and_readers(busy, first, second))
    n_late = int((before > after).sum())
    if not n_late:
        return []
    times = "" if len(before) == 1 else f"in {n_late} of {len(before)} pairs of launches, "
    said = f"{times}{first} runs after {second}, which cannot have read what it wrote"
    return [
        f"{said[0].upper() if times else said[0]}{said[1:]}: the estimate holds only if {second} reads what an earlier launch of "
        f"{first} wrote. --fuse takes WRITER,READER."
    ]


def launches(busy: pl.DataFrame) -> pl.DataFrame:
    """Return one row per launch. The parts of a fused launch are one row, with the verdict of the longest part.

    Args:
        busy: BUSY_TIMES after all changes and fusions.

    Returns:
        `id`, `name`, `short_name`, `verdict`, `limiter`, `duration_ns`, `n_represented`, `weight`, and `recorded_ridge_ratio`,
        which is null for a fused launch.
    """
    is_part = pl.col("fused_id").is_duplicated()
    at_longest = pl.col("duration_ns").fill_null(-1.0).arg_max()
    fused = (
        busy.filter(is_part)
        .group_by(pl.col("fused_id").alias("id"), maintain_order=True)
        .agg(
            *(pl.col(name).drop_nulls().str.join(_JOINER) for name in ("name", "short_name")),
            *(pl.col(name).get(at_longest) for name in ("verdict", "limiter")),
            pl.when(pl.col("duration_ns").null_count() == 0).then(pl.col("duration_ns").sum()),
            pl.col("n_represented").max(),
            _joint_weight("duration_ns").alias("weight"),
            pl.lit(None, pl.Float64).alias("recorded_ridge_ratio"),
        )
    )
    return pl.concat([busy.filter(~is_part).select(fused.columns), fused]).sort("id")


def with_parts_summed(projected: pl.DataFrame) -> pl.DataFrame:
    """Return one row per launch. The parts of a fused launch are expected to run one after the other, so their times add up.

    The least time assumes that the parts overlap fully: the time of the resource that both together need longest, over the share of
    their time for which their busiest resources were busy. A part that stands for more launches than the other part counts more.

    Args:
        projected: BUSY_TIMES on a target, with the columns of PROJECTION except `target`; `recorded_ns` is the recorded time, and
            `needed.*` and `at_least.*` are the expected and least times, in ns, for which each resource is needed on the target.

    Returns:
        The columns of PROJECTION except `target`.
    """
    columns = [name for name in PROJECTION if name != "target"]
    is_part = pl.col("fused_id").is_duplicated()
    parts = projected.filter(is_part)
    if parts.is_empty():
        return projected.select(columns)
    counts_for = pl.col("weight") / _joint_weight("recorded_ns").over("fused_id")
    times = pl.col("duration_ns", "least_ns", "most_ns", "recorded_ns", "reached_ns", r"^(needed|at_least)\..*$")
    needed = {kind: {name: pl.col(f"{kind}.{name}") for name in RESOURCES} for kind in ("needed", "at_least")}
    fused = (
        parts.with_columns((pl.col("recorded_ns") * pl.col("reached_frac")).alias("reached_ns"))
        .with_columns(times * counts_for)
        .group_by(pl.col("fused_id").alias("id"), maintain_order=True)
        .agg(
            times.sum(),
            pl.col("is_l2_assumed", "are_operands_assumed").any(),
            pl.col("reason").drop_nulls().first(),
        )
    )
    overlapped_ns = pl.max_horizontal(needed["at_least"].values()) * pl.col("recorded_ns") / pl.col("reached_ns")
    limiter = largest(needed["needed"])
    values = {
        "duration_ns": pl.col("duration_ns"),
        "least_ns": pl.min_horizontal("least_ns", overlapped_ns),
        "most_ns": pl.col("most_ns"),
        "limiter": limiter,
        "is_limit_assumed": pl.col("is_l2_assumed") & (limiter == "l2"),
        "are_operands_assumed": pl.col("are_operands_assumed"),
        "ridge_ratio": pl.lit(None, pl.Float64),
        "crosses_ridge": pl.lit(None, pl.Boolean),
    }
    known = [pl.when(pl.col("reason").is_null()).then(value).alias(name) for name, value in values.items()]
    return pl.concat([projected.filter(~is_part).select(columns), fused.with_columns(known).select(columns)]).sort("id")


def _joint_weight(recorded: str) -> pl.Expr:
    """Return the weight of a fused launch in sums, which gives the same sum as the weights of its parts."""
    weighted = (pl.col("weight") * pl.col(recorded)).sum() / pl.col(recorded).sum()
    return pl.when(pl.col(recorded).sum() > 0).then(weighted).otherwise(pl.col("weight").first())


def _without_saved_bytes(suffix: str) -> list[pl.Expr]:
    """Return the DRAM and L2 times of a part without the saved bytes, at its own time per byte."""
    moved = pl.col(f"dram_read_bytes{suffix}") + pl.col(f"dram_write_bytes{suffix}")
    of_l2 = moved * pl.col(f"busy.l2_as_dram{suffix}") / pl.col(f"busy.dram{suffix}")
    bytes_by_time = {"busy.dram": moved, **dict.fromkeys(("busy.l2", "busy.l2_whole", "busy.l2_as_dram"), of_l2)}
    return [
        pl.col(f"{name}{suffix}").alias(name)
        * (1 - pl.col("saved") / pl.when(total > 0).then(total)).clip(0, 1).fill_null(1.0)
        for name, total in bytes_by_time.items()
    ]


def _writers_and_readers(busy: pl.DataFrame, first: str, second: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the launches of the two kernels; for a kernel fused with itself, its odd and its even launches."""
    writers, readers = (busy.filter(pl.col("short_name") == name) for name in (first, second))
    return (writers.gather_every(2), writers.gather_every(2, offset=1)) if first == second else (writers, readers)


def _check(first: str, second: str, before: pl.DataFrame, after: pl.DataFrame) -> None:
    for name, rows in ((first, before), (second, after)):
        if rows.is_empty():
            raise WhatIfError(
                f"no kernel is called {name!r}", hint="use a name that ncuroof report shows, without arguments"
            )
    if before.height != after.height:
        if first == second:
            raise WhatIfError(
                f"{first} was launched an odd number of times, {before.height + after.height}: cannot tell which launches to fuse",
                hint="fuse a kernel with itself where it is launched an even number of times",
            )
        raise WhatIfError(
            f"{first} was launched {before.height} times and {second} {after.height} times: cannot tell which launches to fuse",
            hint="fuse kernels that are launched equally often",
        )
    if (before["fused_id"] == after["fused_id"]).any():
        raise WhatIfError(f"{first} and {second} are already fused", hint="name each pair of kernels once")
    if before["device"].to_list() != after["device"].to_list():
        raise WhatIfError(f"{first} and {second} ran on different GPUs", hint="fuse kernels of one GPU")
