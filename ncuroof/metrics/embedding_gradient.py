"""Which launches sort the indices of an embedding for its gradient, work that a kernel with atomics does not need."""

from __future__ import annotations

import polars as pl

from ncuroof.metrics.entries import EmbeddingGradient
from ncuroof.metrics.launch_order import QUEUE
from ncuroof.metrics.names import matches


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
