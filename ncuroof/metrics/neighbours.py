"""What the launches around one another say of them.

Launches that were counted and not recorded stand at their places between the recorded ones. By names and work, launches are found
that are parts of an attention or a cross-entropy that no kernel fuses, with how little of their traffic a fused one would move, and
those that sort the indices of an embedding for its gradient, work that a kernel with atomics does not need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import polars as pl

from ncuroof.metrics.catalogue import Catalogue
from ncuroof.metrics.catalogue_types import CrossEntropy, EmbeddingGradient, Neighbours
from ncuroof.metrics.launch_order import QUEUE, SAME_LAUNCH, key_of, keys_of, nearest
from ncuroof.metrics.names import matches
from ncuroof.metrics.pointwise_chains import fusable_share, kept_share, optimizer_parts
from ncuroof.sidecars.counts import Counts

IS_RECORDED = "is_recorded"

_MOSTLY_FRAC = 0.5
"""A kernel is put beside a recorded one if it ran there in a larger share of that one's launches (a choice)."""

_PLACED = pl.Schema(
    {
        "source": pl.UInt32(),
        "key": pl.String(),  # key, grid and block: of the recorded one
        "grid": pl.String(),
        "block": pl.String(),
        "offset": pl.Int64(),  # -1 for right before it, 1 for right behind it, and so on
        "name": pl.String(),
        "its_grid": pl.List(pl.Int64),
        "its_block": pl.List(pl.Int64),
        "its_key": pl.String(),
        "duration_ns": pl.Float64(),
    }
)
"""One row per kernel and shape that was not recorded and one beside which it ran."""

_Key = tuple[str, ...]

_OTHER = -1.0
"""In place of a product's FLOPs, for a launch that is neither a product nor pointwise."""

_BETWEEN = "launch.is_between_products"


def add_neighbours(
    kernels: pl.DataFrame, work: pl.DataFrame, catalogue: Catalogue, with_gaps: Mapping[int, Counts | None]
) -> pl.DataFrame:
    """Return the table with the quantities that depend on other launches: of attention, optimizers, losses, embeddings, and chains.

    Args:
        kernels: KERNELS with quantities, in the order of the run.
        work: WORK.
        catalogue: how to recognise the kernels.
        with_gaps: by source, for reports that may lack launches between the profiled ones: the counts of the counting run or None.
    """
    known = catalogue.neighbours
    launches = with_unrecorded(kernels, with_gaps)
    by_names = launches.select(
        IS_RECORDED,
        *attention_parts(launches, work, known),
        *optimizer_parts(launches, known, catalogue.optimizer_step),
        loss_parts(launches, known, catalogue.cross_entropy),
        embedding_sort(launches, catalogue.embedding_gradient),
    )
    of_recorded = by_names.filter(IS_RECORDED).drop(IS_RECORDED)
    of_counts = fusable_share(kernels, known, with_gaps), kept_share(kernels, known, with_gaps)
    return kernels.with_columns(*of_recorded.get_columns(), *of_counts)


def with_unrecorded(kernels: pl.DataFrame, with_gaps: Mapping[int, Counts | None]) -> pl.DataFrame:
    """Return KERNELS with the launches that were counted and not recorded between those that they ran before or behind.

    A report of the kernels that take longest (`ncuroof profile --cover`), or of those with some name, lacks others that tell what
    the recorded ones are for. A kernel that was not recorded is put behind the launches of another one if it ran directly behind
    most of them, and before them if it ran before most; so on from there, up to the next recorded kernel.

    Args:
        kernels: KERNELS, in the order of the run.
        with_gaps: by source, for reports that may lack launches between the profiled ones: the counts of the counting run or None.

    Returns:
        The same columns and `is_recorded`. What is added has a name, a shape, its average duration, and the queue of the launch
        that it was put beside; all else, also its id, is null.
    """
    rows = kernels.with_row_index("row")
    keyed = rows.select("row", *QUEUE, *keys_of(rows), nth=pl.int_range(pl.len()).over(QUEUE))
    recorded = rows.with_columns(offset=pl.lit(0, pl.Int64), is_recorded=pl.lit(value=True))
    placed = [
        placing
        for source, counts in with_gaps.items()
        if counts is not None
        for placing in _placed(
            source, counts, set(keyed.filter(pl.col("source") == source).select(*SAME_LAUNCH[1:]).rows())
        )
    ]
    added = (
        keyed.join(pl.DataFrame(placed, _PLACED, orient="row"), on=SAME_LAUNCH)
        .sort("row", "offset")
        # A gap between two launches of a queue has what ran behind the first one and before the second one: often the same.
        .with_columns(gap=pl.col("nth") - (pl.col("offset") < 0).cast(pl.Int64))
        .unique([*QUEUE, "gap", "its_key"], keep="first", maintain_order=True)
        .select("row", *QUEUE, "offset", "name", "duration_ns", grid="its_grid", block="its_block", is_recorded=False)
    )
    together = pl.concat([recorded, added], how="diagonal") if added.height else recorded
    return together.sort("row", "offset").drop("row", "offset")


def _placed(source: int, counts: Counts, recorded: Collection[_Key]) -> Iterator[tuple[object, ...]]:
    """Yield rows of `_PLACED` for a report."""
    kernel_by_key = {key_of(kernel): kernel for kernel in counts.kernels}
    for direction, beside in zip((-1, 1), _mostly_beside(counts), strict=True):
        for key in recorded:
            for number, found in enumerate(_chain(key, beside, recorded), start=1):
                kernel = kernel_by_key[found]
                what = kernel.name, list(kernel.grid), list(kernel.block), " ".join(found)
                yield source, *key, direction * number, *what, kernel.duration_ns / kernel.n_launches


def _chain(key: _Key, beside: Mapping[_Key, _Key], recorded: Collection[_Key]) -> Iterator[_Key]:
    """Yield the unprofiled kernels on one side of a kernel, the nearest first; none twice."""
    seen: set[_Key] = set()
    while (found := beside.get(key)) is not None and found not in recorded and found not in seen:
        yield found
        seen.add(found)
        key = found


def _mostly_beside(counts: Counts) -> tuple[dict[_Key, _Key], dict[_Key, _Key]]:
    """Return the kernel that ran directly before, and the one that ran directly behind, most launches of each kernel."""
    n_launches: dict[_Key, int] = defaultdict(int)
    before: dict[tuple[_Key, _Key], int] = defaultdict(int)
    for kernel in counts.kernels:
        n_launches[key_of(kernel)] += kernel.n_launches
        for predecessor in kernel.predecessors or ():
            before[key_of(predecessor), key_of(kernel)] += predecessor.n_launches
    ahead = {second: first for (first, second), n in before.items() if n > _MOSTLY_FRAC * n_launches[second]}
    behind = {first: second for (first, second), n in before.items() if n > _MOSTLY_FRAC * n_launches[first]}
    return ahead, behind


def embedding_sort(kernels: pl.DataFrame, known: EmbeddingGradient) -> pl.Series:
    """Return `launch.is_of_embedding_sort`: 1 for launches that sort the indices of an embedding for its gradient, 0 for others.

    Those that count equal indices are PyTorch's alone. Those that sort are CUB's: they belong to an embedding if they run before
    these in the stream, with nothing but fills in between.

    Args:
        kernels: KERNELS, in the order of the run, with what was counted and not recorded (`with_unrecorded`).
        known: how to recognise them, from the catalogue.
    """
    name = pl.col("name")
    launches = kernels.select(
        *QUEUE,
        *(
            matches(name, pattern).fill_null(value=False).alias(kind)
            for kind, pattern in (("sorts", known.sort), ("counts", known.count), ("fills", known.fill))
        ),
    )
    marked = pl.when("counts").then(1).when(~pl.col("sorts") & ~pl.col("fills")).then(0)
    is_next = marked.backward_fill().over(QUEUE).fill_null(0) == 1
    is_part = pl.col("counts") | (pl.col("sorts") & is_next)
    return launches.select(is_part.cast(pl.Float64).alias("launch.is_of_embedding_sort")).to_series()


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


def attention_parts(kernels: pl.DataFrame, work: pl.DataFrame, known: Neighbours) -> list[pl.Series]:
    """Return what each launch is of an attention in parts: three series of 1 or 0.

    `launch.is_between_products` is 1 for a launch between two matrix products of about as much work in its stream. Attention's two
    products, forward or backward, have the same FLOPs except for partly filled tiles; the last product of a classifier and the
    first one of its next call do not. A few pointwise kernels (masks, scales, dropout) may run in between. If a report contains
    each kernel and shape only once, the neighbours are those of the profiled launches.

    `launch.is_product_of_attention` is 1 for these two products where a softmax runs between them and, around a softmax's backward
    pass, for one more product of about as much work on either side: the gradient of each product takes two.
    `launch.is_pointwise_of_attention` is 1 for the pointwise kernels between the softmax and its products.

    Args:
        kernels: KERNELS, in the order of the run, with what was counted and not recorded (`with_unrecorded`).
        work: WORK.
        known: how to recognise the kernels, from the catalogue.
    """
    launches = _with_kinds(kernels, work, known).with_columns(_is_between(known).alias(_BETWEEN))
    of_attention = pl.col("is_softmax") & pl.col(_BETWEEN)
    launches = launches.with_columns(
        is_beside=_is_beside(of_attention, known),
        is_beside_backward=_is_beside(of_attention & pl.col("is_backward"), known),
    )
    is_one_gradient = pl.col("is_product") & pl.col("is_beside_backward")
    launches = launches.with_columns(flop_of_gradient=pl.when(is_one_gradient).then("flop"))
    is_other_gradient = pl.any_horizontal(
        _is_alike(pl.col("flop"), pl.col("flop_of_gradient").shift(places).over(QUEUE), known) for places in (1, -1)
    )
    parts = launches.select(
        pl.col(_BETWEEN),
        (pl.col("is_product") & (pl.col("is_beside") | is_other_gradient)).alias("launch.is_product_of_attention"),
        (pl.col("is_pointwise") & pl.col("is_beside")).alias("launch.is_pointwise_of_attention"),
    )
    return parts.select(pl.all().fill_null(value=False).cast(pl.Float64)).get_columns()


def _with_kinds(kernels: pl.DataFrame, work: pl.DataFrame, known: Neighbours) -> pl.DataFrame:
    """Return, per launch, the FLOPs that were counted and what kind of kernel its name says."""
    flop = work.group_by("id").agg(pl.col("flop").sum())
    name = pl.col("name")
    is_product = matches(name, known.product)
    is_softmax = matches(name, known.softmax) & ~matches(name, known.not_softmax)
    kinds = {
        "is_product": is_product,
        "is_pointwise": matches(name, known.pointwise) & ~is_product,
        "is_softmax": is_softmax,
        "is_backward": is_softmax & matches(name, known.softmax_backward),
    }
    launches = kernels.select(
        "id", *QUEUE, *(is_it.fill_null(value=False).alias(kind) for kind, is_it in kinds.items())
    )
    return launches.join(flop, on="id", how="left", maintain_order="left")


def _is_between(known: Neighbours) -> pl.Expr:
    """Return whether the products on both sides of a launch do about as much work."""
    around = (
        pl.when("is_product").then(pl.col("flop").fill_null(_OTHER)).when(~pl.col("is_pointwise")).then(pl.lit(_OTHER))
    )
    before, behind = (nearest(around, direction, known.most_pointwise) for direction in (-1, 1))
    return _is_alike(before, behind, known).fill_null(value=False)


def _is_alike(one: pl.Expr, other: pl.Expr, known: Neighbours) -> pl.Expr:
    most_ratio = known.most_work_ratio
    return (one > 0) & (other > 0) & (one <= most_ratio * other) & (other <= most_ratio * one)


def _is_beside(is_meant: pl.Expr, known: Neighbours) -> pl.Expr:
    """Return whether only pointwise kernels run between a launch and one that is meant, before or behind it."""
    marked = pl.when(is_meant).then(1.0).when(~pl.col("is_pointwise")).then(0.0)
    sides = (nearest(marked, direction, known.most_pointwise) for direction in (-1, 1))
    return pl.max_horizontal(*sides).fill_null(0.0) > 0
