"""Walks the decision tree with all kernels at once, records each kernel's path, and tells how far each verdict is from another.

The distance is the relative change of a single quantity that would flip the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ncuroof.diagnosis.rules import VERDICT_PREFIX, Node, Rules
from ncuroof.enums import Verdict
from ncuroof.errors import ProfileError
from ncuroof.tables import FLIPS, PATH, conform

_MEMORY, _COMPUTE, _RIDGE = "utilisation.memory_side", "utilisation.compute_side", "roofline.ridge_ratio"
_BUSIEST = "utilisation.busiest"

_FEW_WAVES = 0.2
"""A grid below this many waves leaves most SMs, or most of each, without work, so that no unit becomes busy (a choice)."""

_SAME = 0.005
"""Largest difference of utilisations that are the same: where memory and compute are both that of LSU, they fall together."""

_SAME_WORK = ("source", "device", "name", "workload", "grid", "block")

_TIME = "duration_ns"
_TIME_NOISE, _BUSY_NOISE = 0.05, 0.03
"""Largest differences of launches that are equal, of the median: in time relative to it, in utilisation absolute (choices: three
points are what counts as near the tree's 60 %)."""

_OWN = ("id", "duration_ns", "check.usual_ns", "check.failed", "failed", "nvtx", "nvtx_recorded")
_OWN_PREFIX = "launch."
"""Columns that a launch has of its own, whoever decides for it: its time, and what is known of the launches around it."""


def of_equal_launches(launches: pl.DataFrame) -> pl.DataFrame:
    """Return the table with the quantities of the launch that decides for each: of its equals the one with the median time.

    A kernel that runs ten times at 60 % of a unit's peak is measured at 59.8 % and at 60.2 %: one launch decides for all, so that
    they get one verdict. Launches are equal if kernel, grid and block are the same and neither their time nor their busiest unit
    differs by more than noise from that launch. Launches without either, and those that failed, decide for themselves.

    Args:
        launches: one row per launch with KERNELS and quantities.
    """
    names = [name for name in _SAME_WORK if name in launches.columns]
    keyed = launches.select(*names, "failed", pl.col(_TIME), pl.col(_BUSIEST)).with_row_index("row")
    is_known = ~pl.col("failed") & pl.col(_TIME).is_not_null() & pl.col(_BUSIEST).is_not_null()
    known = keyed.filter(is_known).sort(_TIME, "row")
    if known.height <= 1:
        return launches
    middle = (pl.len() - 1) // 2
    with_median = known.with_columns(
        pl.col(name).get(middle).over(names).alias(f"median.{name}") for name in ("row", _TIME, _BUSIEST)
    )
    is_equal = ((pl.col(_TIME) - pl.col(f"median.{_TIME}")).abs() <= _TIME_NOISE * pl.col(f"median.{_TIME}")) & (
        (pl.col(_BUSIEST) - pl.col(f"median.{_BUSIEST}")).abs() <= _BUSY_NOISE
    )
    decides = with_median.filter(is_equal).select("row", pl.col("median.row").alias("by"))
    by = keyed.select("row").join(decides, on="row", how="left", maintain_order="left")
    order = by.select(pl.coalesce("by", "row")).to_series()
    if (order == by["row"]).all():
        return launches
    own = [launches[name] for name in launches.columns if name in _OWN or name.startswith(_OWN_PREFIX)]
    return launches[order].with_columns(own)


def walk_tree(quantities: pl.DataFrame, nodes: Sequence[Node]) -> tuple[pl.Series, pl.DataFrame]:
    """Return each kernel's verdict and the path that led to it.

    The answer to a node is yes, no, or unknown where its quantity is missing; each leads to a later node or to a verdict.

    Args:
        quantities: one row per kernel with `id` and a column per quantity that the nodes ask for.
        nodes: parents before children, the first is the root.

    Returns:
        The verdicts, rows as in `quantities`, and PATH by kernel and step.

    Raises:
        ProfileError: an answer leads to an earlier node or to none, or a path ends without a verdict.
    """
    answers = quantities.select(node.condition.holds().alias(node.id) for node in nodes)
    reached, ends = _follow(nodes, answers)
    none = pl.lit(None, pl.String)
    verdicts = pl.coalesce(none, *(pl.when(is_end).then(pl.lit(verdict)) for verdict, is_end in ends))
    verdict = answers.select(verdicts.alias("verdict")).to_series()
    if verdict.null_count():
        raise ProfileError("rules.toml: a path of the tree ends without a verdict")
    return verdict, _path(quantities, nodes, answers, reached)


def _path(
    quantities: pl.DataFrame, nodes: Sequence[Node], answers: pl.DataFrame, reached: Mapping[str, pl.Series]
) -> pl.DataFrame:
    """Return PATH: a row per kernel and node that it reached, in the order of the nodes."""
    n_before = pl.zeros(quantities.height, pl.UInt32, eager=True)
    steps: dict[str, list[pl.Series]] = {"row": [], "step": [], "node": [], "value": [], "outcome": []}
    for number, node in enumerate(nodes):
        if (is_here := reached.get(node.id)) is None:
            continue
        rows = is_here.arg_true()
        steps["row"].append(rows)
        steps["step"].append(n_before.gather(rows))
        steps["node"].append(pl.repeat(number, len(rows), dtype=pl.UInt32, eager=True))
        steps["value"].append(quantities[node.condition.quantity].gather(rows).cast(pl.Float64))
        steps["outcome"].append(answers[node.id].gather(rows))
        n_before = n_before + is_here.cast(pl.UInt32)
    path = pl.DataFrame({name: pl.concat(parts) for name, parts in steps.items()}).sort("row", maintain_order=True)
    asked = pl.DataFrame([_asked(node) for node in nodes], orient="row", schema=_ASKED)[path["node"]]
    value, threshold = path["value"], asked["threshold"]
    margin = pl.when(threshold != 0).then((value - threshold).abs() / threshold.abs()).alias("margin_frac")
    whole = path.drop("node").hstack(asked).with_columns(margin, quantities["id"].gather(path["row"]))
    return conform(whole, PATH)


def _follow(nodes: Sequence[Node], answers: pl.DataFrame) -> tuple[dict[str, pl.Series], list[tuple[str, pl.Series]]]:
    """Return masks of the kernels that reach each node, and of those that an answer sends to a verdict, without empty masks."""
    reached = {nodes[0].id: pl.repeat(value=True, n=answers.height, eager=True)}
    ends: list[tuple[str, pl.Series]] = []
    ids = [node.id for node in nodes]
    for index, node in enumerate(nodes):
        answer = answers[node.id]
        for target, is_given in ((node.yes, answer), (node.no, ~answer), (node.unknown, answer.is_null())):
            is_verdict = target.startswith(VERDICT_PREFIX)
            if not is_verdict and target not in ids[index + 1 :]:
                why = "which is no node" if target not in ids else "which comes no later; parents must come first"
                raise ProfileError(f"rules.toml: node {node.id!r} leads to {target!r}, {why}")
            leads_there = reached[node.id] & is_given.fill_null(value=False) if node.id in reached else None
            if leads_there is None or not leads_there.any():
                continue
            if is_verdict:
                ends.append((target.removeprefix(VERDICT_PREFIX), leads_there))
            else:
                reached[target] = reached[target] | leads_there if target in reached else leads_there
    return reached, ends


_ASKED = {name: PATH[name] for name in ("node", "quantity", "op", "threshold")}


def _asked(node: Node) -> tuple[str, str, str | None, float | None]:
    """Return a row of _ASKED. "known >" stands there for a comparison whose answer is no where the quantity is missing."""
    asked = node.condition
    return node.id, asked.quantity, f"known {asked.op}" if asked.if_unknown is False else asked.op, asked.threshold


def limiter_by_verdict(memory: pl.Expr, compute: pl.Expr, *, lead: pl.Expr, latency: pl.Expr) -> pl.Expr:
    """Return the limiter that belongs to the column `verdict`.

    Args:
        memory: limiter of the memory side.
        compute: limiter of the compute side.
        lead: how far the memory side is ahead: the busier side limits a balanced kernel.
        latency: what a latency-bound kernel waits for.
    """
    verdict = pl.col("verdict")
    return (
        pl.when(verdict == Verdict.MEMORY.value)
        .then(memory)
        .when(verdict == Verdict.COMPUTE.value)
        .then(compute)
        .when(verdict == Verdict.BALANCED.value)
        .then(pl.when(lead >= 0).then(memory).otherwise(compute))
        .when(verdict == Verdict.LATENCY.value)
        .then(latency)
        .when(verdict == Verdict.OVERHEAD.value)
        .then(pl.lit("launch"))
    )


def nearest_flips(judged: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Return, per kernel, the nearest other verdict that it could have, and the relative change of one quantity that leads to it.

    - Memory-bound becomes balanced where the memory side's work falls, and the time with it, until the compute side is the tree's
      gap behind: by 1 - compute/(memory - gap). Compute-bound likewise.
    - Balanced becomes bound by its busier side where the other side's work falls until the two are the tree's gap apart.
    - Latency-bound becomes bound by its busier side, or balanced, where that side reaches the utilisation that the tree asks for,
      unless too few blocks or idle SMs rule that out.
    - Memory-bound, compute-bound and balanced become latency-bound where the busiest unit falls to the utilisation that the tree
      asks for, if that is nearer than what stands above.
    - A verdict by intensity becomes balanced where the intensity comes near the ridge.
    - A grid of less than a wave becomes overhead where its duration falls to what the tree asks for, if that is nearest.

    Args:
        judged: one row per kernel with `verdict`, `is_by_intensity` and the quantities of the tree.
        rules: for the thresholds of the tree.

    Returns:
        FLIPS. No row for kernels that are overhead or unknown, and for those with a quantity that is zero or unknown. Those whose
        two sides are the same pipe (LSU), and those that are or would be bound by one side by the nodes `memory_instructions` and
        `operands`, become latency-bound alone: their two sides are already equally busy.

    Raises:
        ProfileError: the tree has no node for one of the thresholds.
    """
    memory, compute, ridge = map(pl.col, (_MEMORY, _COMPUTE, _RIDGE))
    gap, busy = rules.threshold("one_side_leads"), rules.threshold("busy_enough")
    left, right = rules.threshold("left_of_ridge"), rules.threshold("right_of_ridge")
    operands, instructions = rules.threshold("operands"), rules.threshold("memory_instructions")
    verdict, by_intensity = pl.col("verdict"), pl.col("is_by_intensity").fill_null(value=False)
    is_memory_busier = memory >= compute
    # In a shorter time both utilisations grow by the same factor.
    speedup = busy / pl.max_horizontal(memory, compute)
    is_close = (memory - compute).abs() * speedup < gap
    is_by_operands = is_close & (pl.col("utilisation.beside_operands") * speedup >= operands)
    is_by_instructions = is_close & (pl.col("utilisation.beside_memory_instructions") * speedup >= instructions)
    # What the grid or idle SMs rule out is no flip: blocks on few SMs keep no unit busy.
    can_be_busy = (pl.col("utilisation.most_possible") >= busy).fill_null(value=True)
    can_be_busy = can_be_busy & (pl.col("occupancy.most_waves") >= _FEW_WAVES).fill_null(value=True)
    can_sms_be_busy = can_be_busy & (pl.col("scheduler.sm_active_frac") >= busy).fill_null(value=True)
    is_latency = (verdict == "latency") & can_be_busy & ~(is_by_operands | is_by_instructions).fill_null(value=False)
    lsu = pl.col("utilisation.lsu")
    is_one_pipe = pl.max_horizontal((memory - lsu).abs(), (compute - lsu).abs()) < _SAME
    is_balanced = (verdict == "balanced") & ~is_one_pipe.fill_null(value=False)
    cases = [
        (by_intensity & (verdict == "memory"), "balanced", _RIDGE, left / ridge),
        (by_intensity & (verdict == "compute"), "balanced", _RIDGE, right / ridge),
        (
            ~by_intensity & (verdict == "memory") & (memory - compute >= gap),
            "balanced",
            _MEMORY,
            compute / (memory - gap),
        ),
        (
            ~by_intensity & (verdict == "compute") & (compute - memory >= gap),
            "balanced",
            _COMPUTE,
            memory / (compute - gap),
        ),
        (~by_intensity & is_balanced & is_memory_busier, "memory", _COMPUTE, (memory - gap) / compute),
        (~by_intensity & is_balanced & ~is_memory_busier, "compute", _MEMORY, (compute - gap) / memory),
        ((verdict == "latency") & can_be_busy & is_by_instructions, "memory", _MEMORY, busy / memory),
        (is_latency & is_memory_busier & is_close, "balanced", _MEMORY, busy / memory),
        (is_latency & can_sms_be_busy & ~is_memory_busier & is_close, "balanced", _COMPUTE, busy / compute),
        (is_latency & is_memory_busier, "memory", _MEMORY, busy / memory),
        (is_latency & can_sms_be_busy & ~is_memory_busier, "compute", _COMPUTE, busy / compute),
    ]
    fills_a_wave = (pl.col("occupancy.most_waves") >= rules.threshold("fills_a_wave")).fill_null(value=True)
    is_busy = ~by_intensity & verdict.is_in(["memory", "compute", "balanced"])
    found = judged.select(
        "id",
        by_side=pl.coalesce(_flip(*case) for case in cases),
        to_latency=_flip(is_busy, "latency", _BUSIEST, busy / pl.col(_BUSIEST)),
        to_overhead=_flip(
            verdict.is_in(["memory", "compute", "balanced", "latency"]) & ~fills_a_wave,
            "overhead",
            "duration_ns",
            rules.threshold("long_enough") / pl.col("check.usual_ns"),
        ),
    )
    names = ("by_side", "to_latency", "to_overhead")
    changes = [pl.col(name).struct.field("change_frac").abs() for name in names]
    least = pl.min_horizontal(changes)
    nearest = pl.coalesce(pl.when(change == least).then(name) for name, change in zip(names, changes, strict=True))
    flips = found.select("id", nearest.alias("flip"))
    return flips.filter(pl.col("flip").is_not_null()).unnest("flip").pipe(conform, FLIPS)


def _flip(condition: pl.Expr, becomes: str, quantity: str, ratio: pl.Expr) -> pl.Expr:
    """Return the verdict that a kernel becomes where `quantity` is `ratio` times as large; null unless the condition holds."""
    return pl.when(condition & ratio.is_finite()).then(
        pl.struct(
            pl.lit(becomes).alias("becomes"), pl.lit(quantity).alias("quantity"), (ratio - 1).alias("change_frac")
        )
    )
