"""Chains of pointwise kernels: what one writes to memory and the next one in its stream reads, judged by their bytes.

What remains of a pointwise kernel is what no neighbour could do with its own work. Parts of an optimizer's step are such kernels,
too; a fused step would move little of what they move.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

from ncuroof.metrics.catalogue_types import Neighbours, OptimizerStep
from ncuroof.metrics.launch_order import QUEUE, launch_pairs
from ncuroof.metrics.names import ascii_classes, matches
from ncuroof.sidecars.counts import Counts

_SECTOR_BYTES = 32
_ELEMENT_RATIOS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Ratios of the bytes of two tensors with the same number of elements, of types of 1 to 8 bytes."""

_SMALLEST_ELEMENT_RATIO = 0.25
"""Smallest operand over a tensor's bytes: one byte per element (a mask) beside floats. All bytes read are a multiple of it."""

_ROUNDING = 1e-9

_MOST_LAUNCHES = 0.5
"""Share of the launches that one represents for which a kind of neighbour has to be there (a choice: half of them)."""

N_TENSORS = r"[Aa]rray<char *\*, *(?:\([a-z ]+\))?(\d+)"
"""How many tensors a pointwise kernel of PyTorch reads and writes: the size of its array of pointers (CUDALoops.cuh)."""


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


def kept_share(
    kernels: pl.DataFrame, known: Neighbours, with_gaps: Mapping[int, Counts | None] = MappingProxyType({})
) -> pl.Series:
    """Return the share of a pointwise kernel's bytes that a kernel next to it would still move if it did its work as well.

    The other kernel holds one input in registers, and writes what this one writes in place of its own result, or reads what this
    one reads in place of its result. All other inputs are still read: of R bytes read and W written, R - W, if the input that is
    spared is as large as the result; or N - 2 of the N tensors in the kernel's name, whichever share is smaller. A bias or another
    small operand counts as nothing.

    Args:
        kernels: KERNELS with quantities, in the order of the run.
        known: how to recognise the kernels, from the catalogue.
        with_gaps: by source, for reports that may lack launches between the profiled ones: the counts of the counting run or None.

    Returns:
        From 0 to 1. Null for other kernels, copies and fills; for those of whose tensors nothing is known; and for those that most
        of the time have no launch of another kernel next to them in their stream, or one of the same kernel (a loop over tensors).
    """
    name = pl.col("name")
    through_l1 = _SECTOR_BYTES * (pl.col("access.load_sectors") + pl.col("access.store_sectors"))
    moved = pl.when(through_l1.is_not_null()).then(pl.min_horizontal(through_l1, "traffic_bytes.l2"))
    written = _SECTOR_BYTES * pl.col("access.store_sectors")
    n_tensors = name.str.extract(ascii_classes(N_TENSORS)).cast(pl.Float64)
    launches = kernels.join(_beside(kernels, with_gaps), on="id", how="left", maintain_order="left").select(
        is_alone=pl.col("of_same").fill_null(0.0) >= _MOST_LAUNCHES,
        is_beside=pl.col("of_other").fill_null(0.0) >= _MOST_LAUNCHES,
        is_pointwise=(matches(name, known.in_chain) & ~matches(name, known.copy)).fill_null(value=False),
        by_bytes=pl.when(moved > 0).then((1 - 2 * written / moved).clip(lower_bound=0)),
        by_name=pl.when(n_tensors > 0).then((1 - 2 / n_tensors).clip(lower_bound=0)),
    )
    counts = pl.col("is_pointwise") & pl.col("is_beside") & ~pl.col("is_alone")
    share = pl.when(counts).then(pl.min_horizontal("by_bytes", "by_name"))
    return launches.select(share.alias("launch.kept_if_fused_frac")).to_series()


def _beside(kernels: pl.DataFrame, with_gaps: Mapping[int, Counts | None]) -> pl.DataFrame:
    """Return, per launch with neighbours in its stream, the share of launches next to another kernel, and to the same one.

    Columns `id`, `of_other` and `of_same`: from 0 to 2, since a launch has a neighbour on each side.
    """
    names = kernels.select("id", "name")
    pairs = (
        launch_pairs(kernels, with_gaps)
        .join(names, left_on="before", right_on="id", maintain_order="left")
        .join(names, left_on="behind", right_on="id", suffix="_behind", maintain_order="left")
        .with_columns(is_same=pl.col("name") == pl.col("name_behind"))
    )
    sides = [pairs.select("is_same", id=side, share=f"of_{side}") for side in ("before", "behind")]
    return (
        pl.concat(sides)
        .group_by("id")
        .agg(
            of_other=pl.col("share").filter(~pl.col("is_same")).sum(),
            of_same=pl.col("share").filter("is_same").sum(),
        )
    )


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
