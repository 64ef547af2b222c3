"""Which launches are parts of an optimizer's step, and how little of what they move a fused step would."""

from __future__ import annotations

import polars as pl

from ncuroof.metrics.entries import Neighbours, OptimizerStep
from ncuroof.metrics.launch_order import QUEUE
from ncuroof.metrics.names import ascii_classes, matches

N_TENSORS = r"[Aa]rray<char *\*, *(?:\([a-z ]+\))?(\d+)"
"""How many tensors a pointwise kernel of PyTorch reads and writes: the size of its array of pointers (CUDALoops.cuh)."""


def optimizer_parts(kernels: pl.DataFrame, known: Neighbours, step: OptimizerStep) -> list[pl.Series]:
    """Return what each launch is of an optimizer's step in several kernels of PyTorch: two series.

    `launch.fused_step_frac`: of the tensors that the kernels of one parameter's step read and write, the share that a fused kernel
    would, `n_fused` over the sum of theirs. The kernels are consecutive in their stream with the same grid and block, the last one
    is the step's last, the others contain all that it needs, and they are few. In foreach passes, `n_fused` over `n_foreach`: in
    the range of a known step, or where consecutive passes contain all that a step needs, in the range of no other optimizer. Null
    for other launches, and where a kernel's name does not say how many tensors it has.

    `launch.is_of_optimizer` is 1 for these, and for pointwise kernels in an NVTX range of an optimizer's step, 0 for others.

    Args:
        kernels: KERNELS, in the order of the run, with what was counted and not recorded (`with_unrecorded`).
        known: how to recognise pointwise kernels, from the catalogue.
        step: how to recognise an optimizer's step, from the catalogue.
    """
    name = pl.col("name")
    is_pointwise = (matches(name, known.in_chain) & ~matches(name, known.copy)).fill_null(value=False)
    launches = kernels.select(
        *QUEUE,
        "name",
        shape=pl.concat_list("grid", "block"),
        is_pointwise=is_pointwise,
        is_last=is_pointwise & matches(name, step.last),
        n_tensors=name.str.extract(ascii_classes(N_TENSORS)).cast(pl.Float64),
        is_in_range=_is_in(step.range),
        is_foreach=(matches(name, known.foreach) & _is_in(step.foreach_range)).fill_null(value=False),
        is_of_other=_is_in(step.torch_range) & ~_is_in(step.foreach_range),
    )
    follows = pl.all_horizontal(
        pl.col("is_pointwise"),
        pl.col("is_pointwise").shift(1).over(QUEUE),
        ~pl.col("is_last").shift(1).over(QUEUE),
        pl.col("shape") == pl.col("shape").shift(1).over(QUEUE),
    )
    # Each window over a queue is a step of its own: polars 1.30 cannot nest them.
    launches = launches.with_columns(begins=~follows.fill_null(value=False))
    launches = launches.with_columns(run=pl.col("begins").cum_sum().over(QUEUE))
    run = (*QUEUE, "run")
    is_step = pl.all_horizontal(
        pl.col("is_last").any().over(run),
        pl.len().over(run) <= step.most_kernels,
        pl.col("n_tensors").is_not_null().all().over(run),
        *(matches(pl.col("name"), part).any().over(run) for part in step.parts),
    ).fill_null(value=False)
    of_step = (step.n_fused / pl.col("n_tensors").sum().over(run)).clip(upper_bound=1)
    is_pass = pl.col("is_foreach") | (_are_passes_of_a_step(kernels, step) & ~pl.col("is_of_other"))
    share = pl.when(is_pass).then(step.n_fused / step.n_foreach).when(is_step).then(of_step)
    is_of_optimizer = is_step | (pl.col("is_pointwise") & pl.col("is_in_range"))
    parts = launches.select(
        share.alias("launch.fused_step_frac"), is_of_optimizer.cast(pl.Float64).alias("launch.is_of_optimizer")
    )
    return parts.get_columns()


def _are_passes_of_a_step(kernels: pl.DataFrame, step: OptimizerStep) -> pl.Series:
    """Return whether each launch is among consecutive foreach passes that together are an optimizer's step, by their operations.

    Each pass may take several launches on different grids. One that follows the last pass of a step begins another step.

    Args:
        kernels: KERNELS, in the order of the run.
        step: how to recognise the passes.
    """
    name = pl.col("name")
    passes = kernels.select(
        *QUEUE,
        "name",
        is_pass=matches(name, step.foreach_pass).fill_null(value=False),
        is_last=matches(name, step.foreach_last).fill_null(value=False),
    )
    is_next_step = ~pl.col("is_last") & pl.col("is_last").shift(1).over(QUEUE)
    follows = pl.col("is_pass") & pl.col("is_pass").shift(1).over(QUEUE) & ~is_next_step
    passes = passes.with_columns(begins=~follows.fill_null(value=False))
    passes = passes.with_columns(run=pl.col("begins").cum_sum().over(QUEUE))
    run = (*QUEUE, "run")
    needed = (matches(name, part).any().over(run) for part in step.foreach_parts)
    are_all = pl.all_horizontal(pl.col("is_last").any().over(run), *needed).fill_null(value=False)
    return passes.select(is_step=are_all).to_series()


def _is_in(pattern: str) -> pl.Expr:
    """Return whether a launch is in an NVTX range whose name matches a regular expression."""
    return pl.col("nvtx").list.eval(pl.element().str.contains(pattern)).list.any().fill_null(value=False)
