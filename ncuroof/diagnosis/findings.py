"""Findings: which rules fire for each kernel, how much time each fix could save, and in which order they are listed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from ncuroof.diagnosis.conditions import all_hold
from ncuroof.diagnosis.finding import DEFAULT, Finding, Rank
from ncuroof.diagnosis.rules import LatencyCause, Rules
from ncuroof.enums import Verdict
from ncuroof.metrics.formula import Formula
from ncuroof.metrics.names import matches
from ncuroof.tables import FINDINGS, WASTE_LEVELS, conform

MEMORY_UNITS = ("dram", "l2", "l1")
COMPUTE_UNITS = ("fp64", "tensor", "fp32", "fp16", "xu", "alu", "lsu", "issue")
"""Units of each side: the busiest known one replaces the side's total where that is missing. Each name is also a limiter."""

_STALL = "stall"
_RANK, _OF_LIMITER = "rank", "is_of_limiter"
_WORTH, _IS_LARGEST = "worth_ns", "is_largest"
_PLACES = {Rank.OVERRIDES: 0, Rank.FIRST: 1, Rank.CAUSE: 3, Rank.GENERAL: 4}
"""What orders the findings of a kernel, lowest first, by their rank."""

_NAMES_LIMITER = 2
"""Place of the cause that names a latency-bound kernel's limiter: before the other causes."""

NAMED_GAIN = "limiter.latency_gain_frac"
"""Share of the duration that fixing the cause named by a latency-bound kernel's limiter saves at most; null where not known."""

_TIE = 0.99
"""Gains of at least this share of the largest one are no smaller (a choice): both are bounds, often of the same headroom."""

_MOST, _WORKING = "most.{}.{}", "scheduler.working_frac"
"""Upper bound of gains, a column per (relieves_both_sides, changes_arithmetic); and share of the time in which blocks can run."""


def add_firing(quantities: pl.DataFrame, findings: Iterable[Finding]) -> pl.DataFrame:
    """Return the table with a column `fires.<finding>`: its conditions hold, and it applies to the verdict.

    A condition whose quantity is missing does not hold: no data, no claim. Where all findings that another replaces apply, that
    one fires and they do not.
    """
    findings = tuple(findings)
    fires = {finding.id: _fires(finding) for finding in findings}
    for finding in findings:
        if finding.instead_of and fires.keys() >= set(finding.instead_of):
            are_all = pl.all_horizontal(fires[name] for name in finding.instead_of)
            fires |= {name: fires[name] & ~are_all for name in finding.instead_of}
            fires[finding.id] |= are_all
    return quantities.with_columns(expression.alias(f"fires.{name}") for name, expression in fires.items())


def add_latency_limiter(judged: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Return the table with `limiter.latency`, what a latency-bound kernel waits for, and NAMED_GAIN, what fixing that saves.

    It is the first cause, in the order of the rules, that fires and that no other outweighs (`Rules.outweighs_earlier`); null if
    there is none. Where stall reasons are missing, it has to save `Rules.least_without_stalls`, if its gain is known.

    Args:
        judged: one row per kernel: quantities, `verdict`, and the columns of `add_firing`.
        rules: the rules to apply.
    """
    known = frozenset(judged.columns)
    places = range(len(rules.latency_causes))
    causes = judged.select(
        *(_gain_of(cause, rules, known).alias(f"gain.{place}") for place, cause in enumerate(rules.latency_causes)),
        *(_weight_of(cause, rules, known).alias(f"weight.{place}") for place, cause in enumerate(rules.latency_causes)),
        *(_limiter_of(cause, rules).alias(f"limiter.{place}") for place, cause in enumerate(rules.latency_causes)),
        least=pl.when(pl.col("limiter.stall").is_null()).then(rules.least_without_stalls).otherwise(0),
    ).with_columns(pl.max_horizontal(f"weight.{place}" for place in places).alias("weight.most"))
    named = pl.coalesce(_named(place, rules.outweighs_earlier) for place in places)
    return judged.hstack(causes.select(named.alias("named")).unnest("named"))


def _named(place: int, outweighs_earlier: float) -> pl.Expr:
    """Return limiter and gain of the cause at a place in the order, if it fires and is not too small to name it; else null."""
    limiter, gain, weight = (pl.col(f"{name}.{place}") for name in ("limiter", "gain", "weight"))
    is_large = (weight * outweighs_earlier >= pl.col("weight.most")) & (weight >= pl.col("least"))
    return pl.when(limiter.is_not_null() & (gain.is_null() | is_large)).then(
        pl.struct(limiter.alias("limiter.latency"), gain.alias(NAMED_GAIN))
    )


def collect_findings(diagnosed: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Return FINDINGS, kernel by kernel, by rank and then by gain.

    Ranks: findings that override the rest, those that stand first, the one that names a latency-bound kernel's limiter, other
    causes, general findings. Of equal gains, and of findings without one, those about the kernel's limiter come first. Where a
    finding overrides the rest, no finding of the kernel has a gain, but they stay in this order.

    Args:
        diagnosed: one row per kernel: quantities, `verdict`, `limiter`, and the columns of `add_firing`.
        rules: the rules to apply.
    """
    fired = diagnosed.select(pl.col(f"fires.{name}").any() for name in rules.findings).row(0)
    findings = [finding for finding, is_any in zip(rules.findings.values(), fired, strict=True) if is_any]
    kinds = {(finding.relieves_both_sides, finding.changes_arithmetic) for finding in findings}
    mosts = [_most(*kind).alias(_MOST.format(*kind)) for kind in kinds]
    rows = diagnosed.with_columns(mosts).lazy()
    parts = [_rows(rows, finding, rules, frozenset(diagnosed.columns)) for finding in findings]
    table = pl.concat(parts) if parts else pl.LazyFrame(schema={**FINDINGS, _RANK: pl.Int32, _OF_LIMITER: pl.Boolean})
    ranked = table.with_columns(_outweighing(rules).alias(_RANK))
    order = {"id": False, _RANK: False, "gain_ns": True, _OF_LIMITER: True}
    ordered = ranked.sort(*order, descending=list(order.values()), nulls_last=True, maintain_order=True)
    is_overridden = (pl.col(_RANK) == _PLACES[Rank.OVERRIDES]).any().over("id")
    with_valid_gains = ordered.with_columns(pl.when(~is_overridden).then("gain_ns"))
    return _tell_most_worth(with_valid_gains).pipe(conform, FINDINGS).collect()


def _outweighing(rules: Rules) -> pl.Expr:
    """Return the ranks by what findings save.

    A general finding that saves far more (`Rules.outweighs`) than any cause of the kernel ranks as a cause; a cause that is not the
    best one, and saves far less than a general finding, ranks as general.
    """
    cause, general = _PLACES[Rank.CAUSE], _PLACES[Rank.GENERAL]
    is_general, gain = pl.col(_RANK) == general, pl.col("gain_ns")
    best_cause_ns, best_general_ns = (gain.filter(which).max().over("id") for which in (~is_general, is_general))
    outweighs = is_general & (gain > rules.outweighs * best_cause_ns)
    is_outweighed = (pl.col(_RANK) == cause) & (gain < best_cause_ns) & (rules.outweighs * gain < best_general_ns)
    return pl.when(outweighs).then(cause).when(is_outweighed).then(general).otherwise(_RANK)


def _tell_most_worth(findings: pl.LazyFrame) -> pl.LazyFrame:
    """Add `is_most_worth`: the cause with the kernel's largest gain, or the general finding where no cause has a gain.

    Of gains that are about the same (`_TIE`), that of the finding listed first counts, which names the limiter if one does.

    General findings (relieve a busy unit, whatever the cause) have the larger upper bound in most kernels, yet are the second thing
    to do. A kernel with a finding that stands first and has no gain has none that is most worth: its results, or the input it was
    profiled with, are in doubt, and what is computed has to be right before it is made faster. Each window over a kernel is a step
    of its own: polars 1.30 cannot nest them.
    """
    is_in_doubt = ((pl.col(_RANK) == _PLACES[Rank.FIRST]) & pl.col("gain_ns").is_null()).any().over("id")
    is_cause = pl.col(_RANK) != _PLACES[Rank.GENERAL]
    has_cause = (is_cause & pl.col("gain_ns").is_not_null()).any().over("id")
    is_largest = (pl.col(_WORTH) >= _TIE * pl.col(_WORTH).max().over("id")).fill_null(value=False)
    is_first = pl.col(_IS_LARGEST).cum_sum().over("id") == 1
    return (
        findings.with_columns(pl.when((is_cause | ~has_cause) & ~is_in_doubt).then("gain_ns").alias(_WORTH))
        .with_columns(is_largest.alias(_IS_LARGEST))
        .with_columns((pl.col(_IS_LARGEST) & is_first).alias("is_most_worth"))
    )


def _fires(finding: Finding) -> pl.Expr:
    conditions = [_applies(finding), all_hold(finding.all_of, finding.any_of)]
    if finding.name_pattern is not None:
        conditions.append(matches(pl.col("name"), finding.name_pattern))
    if finding.excluded_name_pattern is not None:
        conditions.append(~matches(pl.col("name"), finding.excluded_name_pattern))
    return pl.all_horizontal(*conditions).fill_null(value=False)


def _applies(finding: Finding) -> pl.Expr:
    """Return whether a finding is for the verdict; one that saves the whole launch needs a duration, which a failed one lacks."""
    applies = pl.col("verdict").is_in(finding.verdicts)
    is_timed = (pl.col("duration_ns") > 0).fill_null(value=False)
    return applies & is_timed if finding.removes_launch else applies


def _limiter_of(cause: LatencyCause, rules: Rules) -> pl.Expr:
    fires = pl.any_horizontal(pl.col(f"fires.{member.id}") for member in rules.members(cause))
    name = pl.col("limiter.stall") if cause.limiter == _STALL else pl.lit(cause.limiter)
    return pl.when(fires).then(name)


def _gain_of(cause: LatencyCause, rules: Rules, known: frozenset[str]) -> pl.Expr:
    """Return the share of the duration that fixing a cause saves at most; null where it does not fire, or its gain is unknown."""
    gains = [
        pl.when(pl.col(f"fires.{member.id}") & _names(member, cause)).then(
            _at_most(_value(member.gain_by_limiter.get(DEFAULT), known), _of_launch(member))
        )
        for member in rules.members(cause)
    ]
    return _at_most(pl.max_horizontal(gains), [1 - pl.col("roofline.min_time_frac")])


def _weight_of(cause: LatencyCause, rules: Rules, known: frozenset[str]) -> pl.Expr:
    """Return the share of the duration by which a cause is compared with others: its gain, or its first step where that is less."""
    return _at_most(_gain_of(cause, rules, known), [_value(cause.first_step, known)])


def _of_launch(finding: Finding) -> list[pl.Expr]:
    """Return the share of the time in which blocks can run, which bounds a gain: launch overhead stays as it is.

    More work per launch spreads that overhead over more work, so that it does not bound a gain per unit of work.
    """
    return [] if finding.needs_more_work else [pl.col(_WORKING)]


def _at_most(gain: pl.Expr, bounds: Sequence[pl.Expr]) -> pl.Expr:
    """Return a gain limited to the bounds that are known; null where the gain is unknown."""
    return pl.when(gain.is_not_null()).then(pl.min_horizontal(gain, *bounds))


def _names(finding: Finding, cause: LatencyCause) -> pl.Expr:
    """Return whether a finding of a cause's group applies: of the stalls, only the one for the kernel's main stall reason."""
    return pl.col("limiter.stall").is_in(_reasons(finding)) if cause.limiter == _STALL else pl.lit(value=True)


def _reasons(finding: Finding) -> list[str]:
    """Return the stall reasons that a finding asks about in its conditions."""
    conditions = (*finding.all_of, *finding.any_of)
    return sorted({condition.quantity.removeprefix("stalls.") for condition in conditions})


def _rows(diagnosed: pl.LazyFrame, finding: Finding, rules: Rules, known: frozenset[str]) -> pl.LazyFrame:
    is_found = pl.all_horizontal(
        f"fires.{finding.id}", *(~pl.col(f"fires.{name}") for name in _covering(finding, rules))
    )
    if finding.limiters:
        is_found = is_found & (pl.col("limiter").is_in(finding.limiters) | _any_cause(finding, rules))
    found = diagnosed.filter(is_found).with_columns(_gain_frac(finding, known).alias("gain_frac"))
    is_worth_telling = pl.col("gain_frac").is_null() | (pl.col("gain_frac") >= rules.severity["least"])
    return found.filter(is_worth_telling).select(
        "id",
        pl.lit(finding.id).alias("finding"),
        _severity(finding, rules).alias("severity"),
        (pl.col("gain_frac") * pl.col("duration_ns")).alias("gain_ns"),
        pl.struct(_value(finding.waste_by_level.get(level), known).alias(level) for level in WASTE_LEVELS).alias(
            "waste_bytes"
        ),
        _rank(finding, rules).alias(_RANK),
        pl.col("limiter").is_in(finding.limiters).alias(_OF_LIMITER),
    )


def _rank(finding: Finding, rules: Rules) -> pl.Expr:
    """Return the rank: overrides the rest, stands first, names a latency-bound kernel's limiter, another cause, or general."""
    rank = Rank.FIRST if finding.removes_launch and finding.rank is not Rank.OVERRIDES else finding.rank
    if rank in {Rank.OVERRIDES, Rank.FIRST}:
        return pl.lit(_PLACES[rank], pl.Int32)
    groups = {finding.group, *(rules.findings[name].group for name in finding.covers)}
    names = {cause.limiter for cause in rules.latency_causes if cause.finding in groups}
    limiters = _reasons(finding) if _STALL in names else sorted(names)
    names_limiter = (pl.col("verdict") == Verdict.LATENCY.value) & pl.col("limiter").is_in(limiters)
    return pl.when(names_limiter).then(_NAMES_LIMITER).otherwise(_PLACES[rank]).cast(pl.Int32)


def _covering(finding: Finding, rules: Rules) -> list[str]:
    """Return the findings in whose place this one is not listed."""
    return [other.id for other in rules.findings.values() if finding.id in other.covers]


def _any_cause(finding: Finding, rules: Rules) -> pl.Expr:
    """Return whether the kernel is latency-bound, for findings that list a limiter of a latency cause; else false."""
    causes = {cause.limiter for cause in rules.latency_causes}
    is_for_latency = bool(causes & set(finding.limiters))
    return (pl.col("verdict") == Verdict.LATENCY.value) & pl.lit(is_for_latency)


def _gain_frac(finding: Finding, known: frozenset[str]) -> pl.Expr:
    """Return the share of the duration that fixing the cause saves: its formula, capped at what can be saved at all."""
    by_limiter = dict(finding.gain_by_limiter)
    gain = _value(by_limiter.pop(DEFAULT, None), known)
    for limiter, formula in by_limiter.items():
        gain = pl.when(pl.col("limiter") == limiter).then(_value(formula, known)).otherwise(gain)
    if finding.removes_launch:
        return gain
    if any(variant.without_gain for variant in finding.advice.variants):
        gain = pl.when(~finding.advice.is_without_gain()).then(gain)
    kind = finding.relieves_both_sides, finding.changes_arithmetic
    wasted = finding.waste_by_level.get("dram")
    saved = _value(wasted, known) / pl.col("traffic_bytes.dram")
    most = pl.col(_MOST.format(*kind)) if wasted is None else _most(*kind, saved)
    bounds = _of_launch(finding) if finding.removes_work else [*_of_launch(finding), most]
    return _at_most(gain.clip(lower_bound=0), bounds)


def _most(relieves_both_sides: bool, changes_arithmetic: bool, saved: pl.Expr | None = None) -> pl.Expr:
    """Return the largest share of the duration that fixing a cause of some kind can save.

    The time cannot fall below what keeps the other side busy, which then becomes the limit, unless the cause counts on both sides.
    For a balanced kernel that is the less busy side. Nor can it fall below the roofline time, unless the fix moves the roofline:
    fewer bytes where DRAM is the limiter, or other arithmetic.

    Args:
        relieves_both_sides: the cause counts on both sides.
        changes_arithmetic: the fix moves the work under another arithmetic roof.
        saved: share of the DRAM bytes that the fix saves; it lowers the roofline time until the SMs are the limit.
    """
    memory, compute = (_busy(side, units) for side, units in (("memory", MEMORY_UNITS), ("compute", COMPUTE_UNITS)))
    other_side = pl.when(pl.lit(not relieves_both_sides)).then(
        pl.when(pl.col("verdict") == Verdict.MEMORY.value)
        .then(compute)
        .when(pl.col("verdict") == Verdict.COMPUTE.value)
        .then(memory)
        .when(pl.col("verdict") == Verdict.BALANCED.value)
        .then(pl.min_horizontal(memory, compute))
    )
    least = pl.col("roofline.min_time_frac")
    if saved is not None:
        of_sms = pl.min_horizontal(least, pl.col("utilisation.compute").fill_null(1))
        least = pl.max_horizontal(of_sms, least * (1 - saved.fill_null(0)))
    roofline = pl.when(pl.lit(not changes_arithmetic) & pl.col("limiter").ne_missing("dram")).then(least)
    return (1 - pl.max_horizontal(other_side, roofline)).clip(lower_bound=0)


def _busy(side: str, units: Sequence[str]) -> pl.Expr:
    """Return the utilisation of a side: its total, or that of its busiest known unit in reports without the total."""
    total = "utilisation.memory_side" if side == "memory" else f"utilisation.{side}"
    return pl.coalesce(total, pl.max_horizontal(f"utilisation.{unit}" for unit in units))


def _value(formula: Formula | None, known: frozenset[str]) -> pl.Expr:
    expression = formula.expression(lambda _: None, known) if formula is not None else None
    return pl.lit(None, pl.Float64) if expression is None else expression


def _severity(finding: Finding, rules: Rules) -> pl.Expr:
    gain = pl.col("gain_frac")
    return (
        pl.when(gain.is_null())
        .then(pl.lit(finding.severity))
        .when(gain >= rules.severity["high"])
        .then(pl.lit("high"))
        .when(gain >= rules.severity["medium"])
        .then(pl.lit("medium"))
        .otherwise(pl.lit("low"))
    )
