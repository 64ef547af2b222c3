"""What the launches around one another say of them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ncuroof.metrics.attention_parts import attention_parts
from ncuroof.metrics.catalogue import Catalogue
from ncuroof.metrics.embedding_gradient import embedding_sort
from ncuroof.metrics.loss_parts import loss_parts
from ncuroof.metrics.optimizer_steps import optimizer_parts
from ncuroof.metrics.pointwise_chains import fusable_share
from ncuroof.metrics.pointwise_launches import kept_share
from ncuroof.metrics.unrecorded_launches import IS_RECORDED, with_unrecorded
from ncuroof.sidecars.counts import Counts


def add_surroundings(
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
