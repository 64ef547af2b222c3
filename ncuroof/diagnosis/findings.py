"""Findings: which rules fire for each kernel, how much time each fix could save, and in which order they are listed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import polars as pl

from ncuroof.demand import SAVINGS, gain, with_savings
from ncuroof.diagnosis.conditions import all_hold
from ncuroof.diagnosis.finding import Finding, Rank
from ncuroof.diagnosis.rules import LatencyCause, Rules
from ncuroof.enums import Verdict
from ncuroof.metrics.formula import Formula
from ncuroof.metrics.names import matches
from ncuroof.tables import FINDINGS, WASTE_LEVELS, conform

MEMORY_UNITS = ("dram", "l2", "l1")
COMPUTE_UNITS = ("fp64", "tensor", "fp32", "fp16", "xu", "alu", "lsu", "issue")
"""Units of each side: the busiest known one replaces the side's total where that is missing. Each name is also a limiter."""

_STALL = "stall"
_RANK, _OF_LIMITER, _TIED = "rank", "is_of_limiter", "is_tied"
_WORTH, _IS_LARGEST = "worth_ns", "is_largest"
_PLACES = {Rank.OVERRIDES: 0, Rank.FIRST: 1, Rank.CAUSE: 3, Rank.GENERAL: 4}
"""What orders the findings of a kernel, lowest first, by their rank."""

_BESIDE = "verdict_beside"
"""The verdict on the other side of a threshold that a kernel is near."""

_BUSY = (Verdict.MEMORY.value, Verdict.COMPUTE.value, Verdict.BALANCED.value)
"""The verdicts on kernels with a busy unit."""

_NAMES_LIMITER = 2
"""Place of the cause that names a latency-bound kernel's limiter, where it is not known what that saves: before the others."""

NAMED_GAIN = "limiter.latency_gain_frac"
"""Share of the duration that fixing the cause named by a latency-bound kernel's limiter saves at most; null where not known."""

_IS_ROOF, _SMALL, _BEHIND_ROOF, _AFTER = "is_roof", "small_ns", "is_behind_roof", "is_after_roof"
_RANKED = pl.Schema(
    {
        **FINDINGS,
        _RANK: pl.Int32(),
        _OF_LIMITER: pl.Boolean(),
        _IS_ROOF: pl.Boolean(),
        _SMALL: pl.Float64(),
    }
)
"""Columns of the table from which the order of the findings is made."""

_TIE = 0.9
"""Savings of at least this share of the largest one are no smaller: expectations err by more. Launches of one kernel, whose savings
differ by little, have the same first finding."""


def add_firing(quantities: pl.DataFrame, findings: Iterable[Finding]) -> pl.DataFrame:
    """Return the table with a column `fires.<finding>`: its conditions hold, and it applies to the verdict.

    A condition whose quantity is missing does not hold: no data, no claim. Where all findings that another replaces apply, that
    one fires and they do not.
    """
    findings = tuple(findings)
    if _BESIDE not in quantities.columns:
        quantities = quantities.with_columns(pl.lit(None, pl.String).alias(_BESIDE))
    # Columns of their own: findings share a few sets of verdicts.
    applies = {(finding.verdicts, finding.removes_launch): finding for finding in findings}
    places = {key: f"applies.{place}" for place, key in enumerate(applies)}
    masks = quantities.with_columns(_applies(applies[key]).alias(name) for key, name in places.items())
    fires = {each.id: _fires(each, pl.col(places[each.verdicts, each.removes_launch])) for each in findings}
    for finding in findings:
        if finding.instead_of and fires.keys() >= set(finding.instead_of):
            are_all = pl.all_horizontal(fires[name] for name in finding.instead_of)
            fires |= {name: fires[name] & ~are_all for name in finding.instead_of}
            fires[finding.id] |= are_all
    return quantities.hstack(masks.select(expression.alias(f"fires.{name}") for name, expression in fires.items()))


def add_latency_limiter(judged: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Return the table with `limiter.latency`, what a latency-bound kernel waits for, and NAMED_GAIN, what fixing that saves.

    It is the first cause, in the order of the rules, that fires and that no other outweighs (`Rules.outweighs_earlier`); null if
    there is none. Where stall reasons are missing, it has to save `Rules.least_without_stalls`, if its gain is known.

    Args:
        judged: one row per kernel: quantities, `verdict`, and the columns of `add_firing`.
        rules: the rules to apply.
    """
    known, fired = frozenset(judged.columns), _fired(judged, rules)
    places = range(len(rules.latency_causes))
    gains = [_gain_of(cause, rules, known, fired) for cause in rules.latency_causes]
    causes = judged.select(
        *(gain.alias(f"gain.{place}") for place, gain in enumerate(gains)),
        *(
            _at_most(gain, [_value(cause.first_step, known)]).alias(f"weight.{place}")
            for place, (gain, cause) in enumerate(zip(gains, rules.latency_causes, strict=True))
        ),
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
    """Return FINDINGS, kernel by kernel, by rank and then by what is expected to be saved.

    Ranks: findings that override the rest, those that stand first, causes, general findings. What saves most heads the causes;
    the one that names a latency-bound kernel's limiter does where what it saves is not known. Of savings that are about the
    same as the largest (`_TIE`), and of findings without one, those about the limiter come first. Where a unit is at its roof,
    that comes before findings that save next to nothing. Where a finding overrides the rest, no finding of the kernel has a
    gain, but they stay in this order.

    Args:
        diagnosed: one row per kernel: quantities, `verdict`, `limiter`, and the columns of `add_firing`.
        rules: the rules to apply.
    """
    rows, known = diagnosed.lazy(), frozenset(diagnosed.columns)
    parts = [_rows(rows, rules.findings[name], rules, known) for name in _fired(diagnosed, rules)]
    table = pl.concat(parts) if parts else pl.LazyFrame(schema=_RANKED)
    ranked = table.with_columns(_outweighing(rules).alias(_RANK))
    has_roof = pl.col(_IS_ROOF).any().over("id")
    is_small = ~(pl.col("expected_ns") >= pl.col(_SMALL)).fill_null(value=False)
    is_ranked = pl.col(_RANK).is_in([_PLACES[Rank.OVERRIDES], _PLACES[Rank.FIRST]])
    ranked = ranked.with_columns((has_roof & is_small & ~is_ranked).alias(_BEHIND_ROOF))
    most_ns = pl.col("expected_ns").max().over("id", _RANK)
    is_tied = (pl.col(_OF_LIMITER) & (pl.col("expected_ns") >= _TIE * most_ns)).fill_null(value=False)
    ranked = ranked.with_columns(is_tied.alias(_TIED))
    # At a roof: what saves much, then the roof itself, then the rest in its own order.
    order = {"id": False, _BEHIND_ROOF: False, _AFTER: False, _RANK: False}
    order |= {_TIED: True, "expected_ns": True, _OF_LIMITER: True}
    order_at_roof = (pl.when(_BEHIND_ROOF).then(~pl.col(_IS_ROOF))).fill_null(value=False).alias(_AFTER)
    ordered = ranked.with_columns(order_at_roof).sort(
        *order, descending=list(order.values()), nulls_last=True, maintain_order=True
    )
    is_overridden = (pl.col(_RANK) == _PLACES[Rank.OVERRIDES]).any().over("id")
    said = [*map(_in_ns, SAVINGS), "limit"]
    with_valid_savings = ordered.with_columns(pl.when(~is_overridden).then(pl.col(name)) for name in said)
    return _tell_most_worth(with_valid_savings).pipe(conform, FINDINGS).collect()


def _in_ns(share: str) -> str:
    """Return the name of a share of the duration as a time."""
    return share.removesuffix("_frac") + "_ns"


def _fired(judged: pl.DataFrame, rules: Rules) -> list[str]:
    """Return the findings that fire for any kernel."""
    fired = judged.select(pl.col(f"fires.{name}").any() for name in rules.findings).row(0)
    return [name for name, is_any in zip(rules.findings, fired, strict=True) if is_any]


def _outweighing(rules: Rules) -> pl.Expr:
    """Return the ranks by what findings are expected to save.

    A general finding that saves far more (`Rules.outweighs`) than any cause of the kernel ranks as a cause; a cause that is not the
    best one, and saves far less than a general finding, ranks as general.
    """
    cause, general = _PLACES[Rank.CAUSE], _PLACES[Rank.GENERAL]
    is_general, expected = pl.col(_RANK) == general, pl.col("expected_ns")
    best_cause_ns, best_general_ns = (expected.filter(which).max().over("id") for which in (~is_general, is_general))
    outweighs = is_general & (expected > rules.outweighs * best_cause_ns)
    is_outweighed = (
        (pl.col(_RANK) == cause) & (expected < best_cause_ns) & (rules.outweighs * expected < best_general_ns)
    )
    return pl.when(outweighs).then(cause).when(is_outweighed).then(general).otherwise(_RANK)


def _tell_most_worth(findings: pl.LazyFrame) -> pl.LazyFrame:
    """Add `is_most_worth`: the cause that is expected to save most, or the general finding where no cause saves anything.

    Of savings that are about the same (`_TIE`), that of the finding listed first counts, which names the limiter if one does.

    General findings (relieve a busy unit, whatever the cause) are the second thing to do. A kernel with a finding that stands first
    and has no gain has none that is most worth: its results, or the input it was profiled with, are in doubt, and what is computed
    has to be right before it is made faster. Each window over a kernel is a step of its own: polars 1.30 cannot nest them.
    """
    is_in_doubt = ((pl.col(_RANK) == _PLACES[Rank.FIRST]) & pl.col("expected_ns").is_null()).any().over("id")
    is_cause = pl.col(_RANK) != _PLACES[Rank.GENERAL]
    has_cause = (is_cause & pl.col("expected_ns").is_not_null()).any().over("id")
    is_largest = (pl.col(_WORTH) >= _TIE * pl.col(_WORTH).max().over("id")).fill_null(value=False)
    is_first = pl.col(_IS_LARGEST).cum_sum().over("id") == 1
    is_counted = (is_cause | ~has_cause) & ~is_in_doubt & ~pl.col(_BEHIND_ROOF)
    return (
        findings.with_columns(pl.when(is_counted).then("expected_ns").alias(_WORTH))
        .with_columns(is_largest.alias(_IS_LARGEST))
        .with_columns((pl.col(_IS_LARGEST) & is_first).alias("is_most_worth"))
    )


def _fires(finding: Finding, applies: pl.Expr) -> pl.Expr:
    conditions = [applies, all_hold(finding.all_of, finding.any_of)]
    if finding.name_pattern is not None:
        conditions.append(matches(pl.col("name"), finding.name_pattern))
    if finding.excluded_name_pattern is not None:
        conditions.append(~matches(pl.col("name"), finding.excluded_name_pattern))
    return pl.all_horizontal(*conditions).fill_null(value=False)


def _applies(finding: Finding) -> pl.Expr:
    """Return whether a finding is for the verdict; one that saves the whole launch needs a duration, which a failed one lacks."""
    applies = pl.any_horizontal(
        pl.col(name).is_in(finding.verdicts).fill_null(value=False) for name in ("verdict", _BESIDE)
    )
    is_timed = (pl.col("duration_ns") > 0).fill_null(value=False)
    return applies & is_timed if finding.removes_launch else applies


def _limiter_of(cause: LatencyCause, rules: Rules) -> pl.Expr:
    fires = pl.any_horizontal(pl.col(f"fires.{member.id}") for member in rules.members(cause))
    name = pl.col("limiter.stall") if cause.limiter == _STALL else pl.lit(cause.limiter)
    return pl.when(fires).then(name)


def _gain_of(cause: LatencyCause, rules: Rules, known: frozenset[str], fired: Collection[str]) -> pl.Expr:
    """Return the share of the duration that fixing a cause saves at most; null where it does not fire, or its gain is unknown."""
    gains = [
        pl.when(pl.col(f"fires.{member.id}") & _names(member, cause)).then(gain(member.fix, known))
        for member in rules.members(cause)
        if member.fix is not None and member.id in fired
    ]
    return pl.max_horizontal(gains) if gains else pl.lit(None, pl.Float64)


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
        applies = pl.col("limiter").is_in(finding.limiters) | _any_cause(finding, rules) | _is_undecided()
        is_found = is_found & applies
    found = _with_savings(diagnosed.filter(is_found), finding, known)
    is_worth_telling = pl.col("gain_frac").is_null() | (pl.col("gain_frac") >= rules.severity["least"])
    return found.filter(is_worth_telling).select(
        "id",
        pl.lit(finding.id).alias("finding"),
        _severity(finding, rules).alias("severity"),
        *((pl.col(name) * pl.col("duration_ns")).alias(_in_ns(name)) for name in SAVINGS),
        "limit",
        pl.struct(_value(finding.waste_by_level.get(level), known).alias(level) for level in WASTE_LEVELS).alias(
            "waste_bytes"
        ),
        _rank(finding, rules).alias(_RANK),
        pl.lit(finding.is_roof).alias(_IS_ROOF),
        (rules.severity["medium"] * pl.col("duration_ns")).alias(_SMALL),
        _is_about_limiter(finding, rules).alias(_OF_LIMITER),
    )


def _is_about_limiter(finding: Finding, rules: Rules) -> pl.Expr:
    """Return whether a finding is for the limiter: it lists it, or belongs to the latency cause that names it."""
    limiter = pl.col("limiter")
    named = [
        (limiter == (pl.col("limiter.stall") if cause.limiter == _STALL else pl.lit(cause.limiter)))
        & _names(finding, cause)
        for cause in rules.latency_causes
        if finding in rules.members(cause)
    ]
    return pl.any_horizontal(limiter.is_in(finding.limiters), *named)


def _with_savings(found: pl.LazyFrame, finding: Finding, known: frozenset[str]) -> pl.LazyFrame:
    """Add what fixing a finding saves, as shares of the duration, and what limits the kernel then; null where not stated."""
    if finding.fix is None:
        unknown = (pl.lit(None, pl.Float64).alias(name) for name in SAVINGS)
        return found.with_columns(*unknown, pl.lit(None, pl.String).alias("limit"))
    # What a launch takes is known whatever bounds it; how much of it the rest costs is not, where nothing bounds it.
    is_undecided = pl.lit(value=False) if finding.removes_launch else _is_undecided()
    is_stated = ~(finding.advice.is_without_gain() | is_undecided)
    return with_savings(found, finding.fix, known).with_columns(
        pl.when(is_stated).then(pl.col(name)) for name in (*SAVINGS, "limit")
    )


def _rank(finding: Finding, rules: Rules) -> pl.Expr:
    """Return the rank: overrides the rest, stands first, names a latency-bound kernel's limiter, another cause, or general.

    What gives idle SMs work is no cause of a busy unit: there it is general.
    """
    rank = Rank.FIRST if finding.removes_launch and finding.rank is not Rank.OVERRIDES else finding.rank
    if rank in {Rank.OVERRIDES, Rank.FIRST}:
        return pl.lit(_PLACES[rank], pl.Int32)
    groups = {finding.group, *(rules.findings[name].group for name in finding.covers)}
    names = {cause.limiter for cause in rules.latency_causes if cause.finding in groups}
    limiters = _reasons(finding) if _STALL in names else sorted(names)
    is_unknown = pl.col("expected_frac").is_null()
    names_limiter = (pl.col("verdict") == Verdict.LATENCY.value) & pl.col("limiter").is_in(limiters) & is_unknown
    fills_idle_sms = finding.fix is not None and finding.fix.idle is not None
    is_beside = pl.col("verdict").is_in(_BUSY) & pl.lit(fills_idle_sms)
    place = pl.when(is_beside).then(_PLACES[Rank.GENERAL]).otherwise(_PLACES[rank])
    return pl.when(names_limiter).then(_NAMES_LIMITER).otherwise(place).cast(pl.Int32)


def _is_undecided() -> pl.Expr:
    """Return whether a kernel has no verdict: what was counted is stated all the same, and not what it costs."""
    return pl.col("verdict") == Verdict.UNKNOWN.value


def _covering(finding: Finding, rules: Rules) -> list[str]:
    """Return the findings in whose place this one is not listed."""
    return [other.id for other in rules.findings.values() if finding.id in other.covers]


def _any_cause(finding: Finding, rules: Rules) -> pl.Expr:
    """Return whether the kernel is latency-bound, for findings that list a limiter of a latency cause; else false."""
    causes = {cause.limiter for cause in rules.latency_causes}
    is_for_latency = bool(causes & set(finding.limiters))
    return (pl.col("verdict") == Verdict.LATENCY.value) & pl.lit(is_for_latency)


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
