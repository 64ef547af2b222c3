"""Which launches are parts of a cross-entropy that no kernel fuses, and how little of what they move a fused one would."""

from __future__ import annotations

import polars as pl

from ncuroof.metrics.entries import CrossEntropy, Neighbours
from ncuroof.metrics.launch_order import QUEUE, nearest
from ncuroof.metrics.names import matches


def loss_parts(kernels: pl.DataFrame, known: Neighbours, loss: CrossEntropy) -> pl.Series:
    """Return `launch.fused_loss_frac`: of what a launch of a cross-entropy reads and writes, the share that a fused kernel would.

    A cross-entropy is a log-softmax and the loss right behind it in the stream; its gradient is the gradients of both, with the
    fill of zeros that the loss's gradient needs. Casts of the logits before the log-softmax, and of their gradient behind its
    gradient, belong to it. Other copies may run in between. Of all these a fused kernel keeps only the reading of the logits and
    the writing of their gradient, which are counted where they happen now, at the log-softmax and its gradient: 0 for the other
    parts, null for launches that are no part. If a report contains each kernel and shape only once, the neighbours are those of
    the profiled launches.

    Args:
        kernels: KERNELS, in the order of the run, with what was counted and not recorded (`with_unrecorded`).
        known: how to recognise copies, from the catalogue.
        loss: how to recognise the others, from the catalogue.
    """
    name = pl.col("name")
    kinds = {
        "is_copy": matches(name, known.copy),
        "is_fill": matches(name, loss.fill),
        "is_forward": matches(name, loss.log_softmax),
        "is_backward": matches(name, loss.log_softmax_backward),
        "reads_once": matches(name, loss.reads_once),
        "is_loss": matches(name, loss.loss),
        "is_loss_backward": matches(name, loss.loss_backward),
    }
    launches = kernels.select(
        *QUEUE, "duration_ns", *(is_it.fill_null(value=False).alias(kind) for kind, is_it in kinds.items())
    )
    # Each window over a queue is a step of its own: polars 1.30 cannot nest them.
    launches = launches.with_columns(
        is_forward=pl.col("is_forward") & _is_next("is_loss", 1, loss),
        is_backward=pl.col("is_backward") & _is_next("is_loss_backward", -1, loss),
    )
    launches = launches.with_columns(
        is_loss=pl.col("is_loss") & _is_next("is_forward", -1, loss),
        is_loss_backward=pl.col("is_loss_backward") & _is_next("is_backward", 1, loss),
        is_cast=_is_cast("is_forward", 1, loss),
        is_cast_back=_is_cast("is_backward", -1, loss),
    )
    is_zeros = pl.col("is_fill") & pl.col("is_loss_backward").shift(-1).over(QUEUE)
    launches = launches.with_columns(
        is_zeros=is_zeros, has_cast=_is_next("is_cast", -1, loss), has_cast_back=_is_next("is_cast_back", 1, loss)
    )
    share = (
        pl.when("is_forward")
        .then(_kept("has_cast", loss.n_forward, loss.n_forward_again, loss))
        .when("is_backward")
        .then(_kept("has_cast_back", loss.n_backward, loss.n_backward_again, loss))
        .when(pl.any_horizontal("is_loss", "is_loss_backward", "is_cast", "is_cast_back", "is_zeros"))
        .then(0.0)
    )
    return launches.select(share.alias("launch.fused_loss_frac")).to_series()


def _kept(has_cast: str, n_once: int, n_again: int, loss: CrossEntropy) -> pl.Expr:
    """Return the one tensor that a fused kernel moves, half as large if it is cast now, over those that a log-softmax moves."""
    size = pl.when(has_cast).then(loss.cast_size).otherwise(1.0)
    return size / pl.when("reads_once").then(n_once).otherwise(n_again)


def _is_next(kind: str, direction: int, loss: CrossEntropy) -> pl.Expr:
    """Return whether a launch of this kind runs right behind (1) or before (-1) a launch, other copies left out."""
    marked = pl.when(kind).then(1).when(~pl.col("is_copy")).then(0)
    return nearest(marked, direction, loss.most_copies).fill_null(0) == 1


def _is_cast(kind: str, direction: int, loss: CrossEntropy) -> pl.Expr:
    """Return whether a launch casts what the launch of this kind, behind (1) or before (-1) it, reads or writes."""
    marked = pl.when(kind).then("duration_ns").when(~pl.col("is_copy")).then(0.0)
    duration = nearest(marked, direction, loss.most_copies)
    is_large = pl.col("duration_ns") >= loss.least_cast * duration
    return (pl.col("is_copy") & ~pl.col("is_fill") & (duration > 0) & is_large).fill_null(value=False)
