"""Chains of pointwise kernels: what one writes to memory and the next one in its stream reads, judged by their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

from ncuroof.metrics.entries import Neighbours
from ncuroof.metrics.launch_order import launch_pairs
from ncuroof.metrics.names import matches
from ncuroof.sidecars.counts import Counts

_SECTOR_BYTES = 32
_ELEMENT_RATIOS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Ratios of the bytes of two tensors with the same number of elements, of types of 1 to 8 bytes."""

_SMALLEST_ELEMENT_RATIO = 0.25
"""Smallest operand over a tensor's bytes: one byte per element (a mask) beside floats. All bytes read are a multiple of it."""

_ROUNDING = 1e-9


def fusable_share(
    kernels: pl.DataFrame, known: Neighbours, with_gaps: Mapping[int, Counts | None] = MappingProxyType({})
) -> pl.Series:
    """Return the share of each kernel's bytes that it would save if fused with the pointwise kernels next to it in its stream.

    No counter says whether two launches use the same tensor, so sizes decide. Of two consecutive launches, the W bytes that the
    first writes count as handed on if the second reads a multiple of W / 4 that is at least W, and writes W times a power of 2 (as
    many elements, of 1 to 8 bytes each). A fused kernel would neither write nor read them. The share is (W handed on + W taken
    over) / bytes moved, of L2 or of DRAM (there at most the bytes that the launch wrote or read), whichever is smaller. Three or
    more consecutive launches of one name are a loop over tensors and do not count; neither do two of a foreach operation.

    Args:
        kernels: KERNELS with quantities, in the order of the run.
        known: how to recognise the kernels, from the catalogue.
        with_gaps: by source, for reports that may lack launches between the profiled ones: the counts of the counting run or None.

    Returns:
        From 0 to 1, averaged over the launches that each launch represents; 0 without such a neighbour; null for pointwise kernels
        whose bytes are unknown, and for those in reports with gaps whose order of launches was not counted.
    """
    moves = _moves(kernels, known)
    pairs = launch_pairs(kernels, with_gaps)
    beside = pairs.join(
        moves.select(pl.all().name.suffix("_before")), left_on="before", right_on="id_before", maintain_order="left"
    ).join(moves, left_on="behind", right_on="id", maintain_order="left")
    beside = _without_loops(beside.filter(_is_handed_on(known)))
    tensor, in_dram = pl.col("written_before"), pl.col("traffic_bytes.dram_write_before")
    given = _sums(beside, "before", "of_before", tensor, in_dram)
    taken = _sums(beside, "behind", "of_behind", tensor, pl.col("traffic_bytes.dram_read"))
    spared = pl.concat([given, taken]).group_by("id", maintain_order=True).agg(pl.col("spared", "spared_in_dram").sum())
    with_spared = moves.join(spared, on="id", how="left", maintain_order="left")
    with_spared = with_spared.with_columns(pl.col("spared", "spared_in_dram").fill_null(0.0))
    without_order = [source for source, counts in with_gaps.items() if not _tells_order(counts)]
    is_known = ~pl.col("source").is_in(without_order) & (pl.col("moved") > 0)
    share = pl.when(~pl.col("is_in_chain")).then(0.0).when(is_known).then(_share())
    return with_spared.select(share.alias("launch.fusable_frac")).to_series()


def _moves(kernels: pl.DataFrame, known: Neighbours) -> pl.DataFrame:
    """Return, per launch, what kind of kernel its name says, and the bytes that it reads, writes and moves in total."""
    name = pl.col("name")
    stores = _SECTOR_BYTES * pl.col("access.store_sectors")
    through_l1 = _SECTOR_BYTES * (pl.col("access.load_sectors") + pl.col("access.store_sectors"))
    # L1 hits do not reach L2
    moved = pl.when(through_l1.is_not_null()).then(pl.min_horizontal(through_l1, "traffic_bytes.l2"))
    is_foreach = matches(name, known.foreach)
    return kernels.select(
        "id",
        "source",
        "name",
        "traffic_bytes.dram_read",
        "traffic_bytes.dram_write",
        is_in_chain=(matches(name, known.in_chain) | is_foreach) & ~matches(name, known.copy),
        is_foreach=is_foreach,
        is_narrow=matches(name, known.narrow),
        written=stores,
        read=moved - stores,
        moved=moved,
    )


def _without_loops(beside: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs without loops over tensors: pairs of one name with a launch that is in more than one of them on average."""
    again = beside.filter(pl.col("name") == pl.col("name_before"))
    sides = [again.select(id=side, share=f"of_{side}") for side in ("before", "behind")]
    often = pl.concat(sides).group_by("id").agg(pl.col("share").sum()).filter(pl.col("share") > 1 + _ROUNDING)["id"]
    in_loop = pl.col("before").is_in(often.implode()) | pl.col("behind").is_in(often.implode())
    return beside.filter((pl.col("name") != pl.col("name_before")) | ~in_loop)


def _tells_order(counts: Counts | None) -> bool:
    return counts is not None and any(kernel.predecessors is not None for kernel in counts.kernels)


def _sums(beside: pl.DataFrame, which: str, share: str, tensor: pl.Expr, in_dram: pl.Expr) -> pl.DataFrame:
    """Return the bytes that fusion would save launches on one side (`which`): of L2, and of DRAM, which may move fewer of them."""
    return beside.group_by(pl.col(which).alias("id"), maintain_order=True).agg(
        spared=(pl.col(share) * tensor).sum(), spared_in_dram=(pl.col(share) * pl.min_horizontal(tensor, in_dram)).sum()
    )


def _share() -> pl.Expr:
    """Return the saved share of a launch's bytes, of L2 or of DRAM, whichever is smaller."""
    in_dram = pl.col("traffic_bytes.dram_read") + pl.col("traffic_bytes.dram_write")
    of_dram = (pl.col("spared_in_dram") / in_dram).fill_nan(None)
    return pl.min_horizontal(pl.col("spared") / pl.col("moved"), of_dram, 1.0)


def _is_handed_on(known: Neighbours) -> pl.Expr:
    """Return whether a launch can have read what the launch before it in its stream wrote."""

    def before(column: str) -> pl.Expr:
        return pl.col(f"{column}_before")

    tensor = before("written")
    read, written = pl.col("read") / tensor, pl.col("written") / tensor
    whole = (read / _SMALLEST_ELEMENT_RATIO).round() * _SMALLEST_ELEMENT_RATIO
    is_other_part = pl.col("is_foreach") & (pl.col("name") == before("name"))
    return (
        pl.col("is_in_chain")
        & before("is_in_chain")
        & (pl.col("is_foreach") == before("is_foreach"))
        & ~is_other_part
        & (pl.col("is_narrow") == before("is_narrow"))
        & (tensor > 0)
        & (read >= 1 - known.most_mismatch)
        & ((read - whole).abs() <= known.most_mismatch)
        & pl.any_horizontal((written / ratio - 1).abs() <= known.most_mismatch for ratio in _ELEMENT_RATIOS)
    ).fill_null(value=False)
