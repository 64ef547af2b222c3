"""From demand to time: what each launch needs of every resource, and what is left of its time after a fix.

A launch of duration T has overhead o, in which no block can run, and a working time w = T - o. In w its busiest resource is needed
for b = max(d), over the demands d for the resources at their peaks; the rest, w - b, is waiting. After a fix that removes the share
f of the demand for some resources, and the share q of the working time at most,

    T' >= o + max(max(d * (1 - f)), w * (1 - q))

No resource works faster than its peak, and what the fix is not for stays. Where a fix removes demand, q = f * e / w, for the time e
for which warps use the resource or wait for it: all of w where the resource is the limit, else its demand and the waiting for it,
by stall reasons. The expected time has the same form: resources reach the share of their peaks that good kernels reach, and part
of what q bounds goes (`profiles/demand.toml`, `[expectation]`).

Source: Wang et al., arXiv 2009.04598 (time-based roofline) for the demands; the waiting after Zhou et al., GPA (CGO 2021), whose
estimates of stalls removed have the same two bounds.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce

import polars as pl

from ncuroof.demand.fix import Amount, Fix
from ncuroof.demand.resources import Resource, load_model
from ncuroof.metrics import largest
from ncuroof.metrics.formula import Formula, sum_of_known

_WORKING, _BUSIEST = "time.working", "time.busiest"
"""Shares of the duration: w and b."""
_NEED, _EVEN, _EXPECTED, _EXPOSED = "demand.{}", "demand_if_even.{}", "expected_demand.{}", "exposed.{}"
"""Per resource, as shares of the duration: the demand while SMs idle as they do; if they did not; at the share of the peak that
is reached; and the time e."""

_AWAITED, _NEARNESS = "awaited.{}", "nearness.{}"
"""Per resource: how far warps wait for it, and how near it is to being the limit; 0 to 1."""

_LEFT = "left.{}"
"""Per resource, and of the waiting: what is left after a fix. A column, since polars computes an expression wherever it stands."""

_FEW_WAITS = 0.1
"""Share of the warps' time below which they hardly wait for a resource (a choice): asynchronous copies on an A100 were waited for
in 0.0001 of it, and with half the lookups for them the kernel took as long."""

_NEAR = 0.8
"""From this share of the busiest resource's time on, a resource counts as a limit, the more the nearer it is (a choice)."""

_BUSY = 0.6
"""From this share of the working time on, the busiest resource is expected to be the limit; below, in proportion (as in the path of
decisions)."""

_FULL_SPREAD = 0.3
"""Saving from which on the interval is as wide as outcomes of large savings were (a choice)."""

_COUNTER_ERROR = 1.02
"""Passes differ by as much: a unit that is busier than its SMs are active by more was counted over another time."""

WAITING = "waiting"
"""What limits a launch that no resource limits."""

SAVINGS = ("gain_frac", "expected_frac", "expected_low_frac", "expected_high_frac")
"""What a fix saves, as shares of the duration: the most, what is expected, and between what eight of ten outcomes lie."""


def with_demand(quantities: pl.DataFrame) -> pl.DataFrame:
    """Return the table with the demand for every resource, as shares of the duration.

    Args:
        quantities: one row per launch, with the quantities of the catalogue.
    """
    model, known = load_model(), frozenset(quantities.columns)
    resources = {**model.resources, **model.sides}
    active = pl.min_horizontal("scheduler.own_sm_active_frac", _WORKING)
    table = quantities.with_columns(
        pl.col("scheduler.working_frac").fill_null(1.0).clip(0, 1).alias(_WORKING),
        *(_value(each.demand, known).clip(0, 1).alias(_EVEN.format(name)) for name, each in resources.items()),
    )
    table = table.with_columns(
        (_of_working_sms(pl.col(_EVEN.format(name)), active) if each.is_of_sms else pl.col(_EVEN.format(name)))
        .clip(upper_bound=pl.col(_WORKING))
        .alias(_NEED.format(name))
        for name, each in resources.items()
    )
    table = table.with_columns(
        pl.max_horizontal(_NEED.format(name) for name in resources).alias(_BUSIEST),
        *(_awaited(each, known).alias(_AWAITED.format(name)) for name, each in model.resources.items()),
    )
    table = table.with_columns(
        _nearness(name, each).alias(_NEARNESS.format(name)) for name, each in model.resources.items()
    )
    return table.with_columns(
        *(_exposed(name, each, known).alias(_EXPOSED.format(name)) for name, each in model.resources.items()),
        *(_expected(name, each).alias(_EXPECTED.format(name)) for name, each in resources.items()),
    )


def _of_working_sms(demand: pl.Expr, active: pl.Expr) -> pl.Expr:
    """Return for how long the SMs that have work need a resource of theirs, if all SMs that have work are equally busy."""
    is_of_them = demand <= _COUNTER_ERROR * active
    return pl.when(is_of_them & (active > 0)).then(demand / active * pl.col(_WORKING)).otherwise(demand)


def _expected(name: str, resource: Resource) -> pl.Expr:
    """Return for how long a resource is needed that goes on as it is, or as good kernels use it if that is better."""
    return (pl.col(_NEED.format(name)) / resource.reach).clip(upper_bound=pl.col(_WORKING))


def _exposed(name: str, resource: Resource, known: frozenset[str]) -> pl.Expr:
    """Return for how long warps use a resource or wait for it at most; all of the working time where that is not known."""
    need, working = pl.col(_NEED.format(name)), pl.col(_WORKING)
    waits, nearness = _waits(resource, known).fill_null(1.0), pl.col(_NEARNESS.format(name)).fill_null(1.0)
    share = pl.max_horizontal(waits, nearness)
    return (need + (working - need) * share).fill_null(working)


def _waits(resource: Resource, known: frozenset[str]) -> pl.Expr:
    """Return the share of the warps' time for which they wait for a resource; null where that is not known."""
    reasons = [f"stalls.{reason}" for reason in resource.stalls if f"stalls.{reason}" in known]
    return sum_of_known([pl.col(reason) for reason in reasons]).clip(0, 1) if reasons else pl.lit(None, pl.Float64)


def _awaited(resource: Resource, known: frozenset[str]) -> pl.Expr:
    """Return how far warps wait for a resource: 0 where none does, 1 where many do, and for pipes, which need no waiting."""
    if set(resource.sides) != {"memory"}:
        return pl.lit(1.0)
    return (_waits(resource, known) / _FEW_WAITS).fill_null(1.0).clip(0, 1)


def _nearness(name: str, resource: Resource) -> pl.Expr:
    """Return how near a resource, or what passes its work on, is to being the limit: 0 up to _NEAR, 1 where it is.

    Where hardly any warps wait for it, it has to be busy for nearly all of the working time: that it is the busiest of idle
    resources does not make it the limit.
    """
    need = pl.max_horizontal(_NEED.format(each) for each in (name, *resource.fed_by))
    whole = pl.when(pl.col(_AWAITED.format(name)) < 1).then(pl.col(_WORKING)).otherwise(pl.col(_BUSIEST))
    return ((need / whole - _NEAR) / (1 - _NEAR)).fill_nan(0.0).clip(0, 1)


def gain(fix: Fix, known: frozenset[str]) -> pl.Expr:
    """Return the most that a fix saves of each launch of a table that `with_demand` returned; null where that is not known.

    Args:
        fix: what it removes.
        known: the columns of the table.
    """
    if fix.launch is not None:
        return _value(fix.launch.most, known).clip(0, 1)
    return _Left(fix, known).gain()


def with_savings(
    launches: pl.LazyFrame, fix: Fix, known: frozenset[str], expectation: Mapping[str, float] | None = None
) -> pl.LazyFrame:
    """Return a table that `with_demand` returned with SAVINGS, and with `limit`: the resource that then limits, or WAITING.

    Args:
        launches: the table.
        fix: what is removed.
        known: the columns of the table.
        expectation: what of a bound is expected, in place of what `profiles/demand.toml` says.
    """
    expectation = expectation or load_model().expectation
    if fix.launch is not None or fix.is_open:
        kind = "open" if fix.launch is None else "launch"
        shares = zip(SAVINGS[1:], (kind, f"{kind}_low", f"{kind}_high"), strict=True)
        bounded = launches.with_columns(gain(fix, known).alias("gain_frac"), pl.lit(None, pl.String).alias("limit"))
        return bounded.with_columns((pl.col("gain_frac") * expectation[share]).alias(name) for name, share in shares)
    launches, bound = _stored(launches, fix, known, "most")
    launches, likely = _stored(launches, fix, known, "likely", expectation)
    left = likely.columns()
    time, limit = _outcome([_LEFT.format(name) for name in left], likely.working)
    if "tensor" in fix.adds:  # a kernel that does its work on tensor cores begins and ends, too
        time = time + expectation["moved_ns"] / pl.col("duration_ns")
    most, expected = pl.col("gain_frac"), pl.col("expected_frac")
    # Of a small saving little is uncertain: the spread of what is left grows with the saving up to _FULL_SPREAD.
    spread = 1 + (expectation[f"spread_{_kind(fix)}"] - 1) * (expected / _FULL_SPREAD).clip(upper_bound=1)
    return (
        launches.with_columns(each.alias(_LEFT.format(name)) for name, each in left.items())
        .with_columns(
            bound.gain().alias("gain_frac"),
            pl.when(likely.is_known()).then(likely.working - time).alias("expected_frac"),
            limit,
        )
        .with_columns(expected.fill_null(most * expectation["open"]))  # a move to tensor cores, without a duration
        .with_columns(pl.when(most.is_not_null()).then(expected.clip(lower_bound=0, upper_bound=most)))
        .with_columns(
            (1 - (1 - expected) * spread).clip(lower_bound=0).alias("expected_low_frac"),
            pl.min_horizontal(
                pl.max_horizontal(1 - (1 - expected) / spread, expected + (most - expected) * expectation["beyond"]),
                most,
            ).alias("expected_high_frac"),
        )
        .drop(pl.selectors.starts_with(_LEFT.format("")))
    )


def _stored(
    launches: pl.LazyFrame, fix: Fix, known: frozenset[str], name: str, expectation: Mapping[str, float] | None = None
) -> tuple[pl.LazyFrame, _Left]:
    """Return the table with columns for the parts that many expressions repeat, and what is left after a fix, in these columns."""
    shares = _Left(fix, known, expectation).shares()
    columns = {amount: _LEFT.format(f"{name}.{place}") for place, amount in enumerate(shares)}
    launches = launches.with_columns(share.alias(columns[amount]) for amount, share in shares.items())
    by_column = _Left(fix, known, expectation, {amount: pl.col(column) for amount, column in columns.items()})
    saved = _LEFT.format(f"{name}.saved")
    return launches.with_columns(by_column.saved.alias(saved)), by_column.with_saved(pl.col(saved))


def _outcome(left: Sequence[str], working: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return what is left of the working time, and as `limit` what takes that long: a resource, or WAITING.

    Args:
        left: the columns of what is left, of the waiting first.
        working: the working time before.
    """
    waiting, *needs = left
    longest = pl.max_horizontal(left).clip(upper_bound=working)
    limit = pl.when(pl.col(waiting) >= pl.max_horizontal(needs)).then(pl.lit(WAITING))
    by_resource = {name.removeprefix(_LEFT.format("")): pl.col(name) for name in needs}
    return longest, limit.otherwise(largest(by_resource)).alias("limit")


def _kind(fix: Fix) -> str:
    """Return what decides how far outcomes lie around the expected one."""
    if fix.adds:
        return "moves"
    return next((name for name in ("idle", "fills", "waits", "work") if getattr(fix, name) is not None), "removes")


class _Left:
    """What is left of the working time after a fix: at least, or with `expectation` what is expected.

    Attributes:
        working: the working time before.
    """

    def __init__(
        self,
        fix: Fix,
        known: frozenset[str],
        expectation: Mapping[str, float] | None = None,
        shares: Mapping[Amount, pl.Expr] | None = None,
        saved: pl.Expr | None = None,
    ) -> None:
        self._fix, self._known, self._given = fix, known, expectation
        self._expectation, self._is_likely = expectation or {}, expectation is not None
        self._shares = shares or {}
        self.working = pl.lit(1.0) if fix.is_per_work else pl.col(_WORKING)
        self._saved = saved

    @cached_property
    def saved(self) -> pl.Expr:
        """The share of the working time that goes unless a resource is needed for longer; null if unknown."""
        return self._saved_by() if self._saved is None else self._saved

    @cached_property
    def _waiting(self) -> pl.Expr:
        return self.working * (1 - self.saved.fill_null(0.0))

    @cached_property
    def _needs(self) -> dict[str, pl.Expr]:
        return self._of_resources()

    def with_saved(self, saved: pl.Expr) -> _Left:
        """Return a copy that takes what the fix saves from a column."""
        return _Left(self._fix, self._known, self._given, self._shares, saved)

    def shares(self) -> dict[Amount, pl.Expr]:
        """Return the share of each amount that the fix names."""
        fix = self._fix
        named = (*fix.removes.values(), *fix.frees.values(), *filter(None, fix.effects().values()))
        return {amount: self._share(amount) for amount in named}

    def gain(self) -> pl.Expr:
        """Return the share of the duration that goes; null where no fix says how much."""
        left = pl.max_horizontal(self._waiting, *self._needs.values())
        return pl.when(self.is_known()).then((self.working - left).clip(lower_bound=0))

    def is_known(self) -> pl.Expr:
        """Return whether the fix says how much goes and, unless it is open, how much comes instead."""
        added = [] if self._fix.is_open else [_value(amount, self._known) for amount in self._fix.adds.values()]
        return pl.all_horizontal(each.is_not_null() for each in (self.saved, *added))

    def columns(self) -> dict[str, pl.Expr]:
        """Return what is left of the waiting, as WAITING, and of what each resource is needed for."""
        return {WAITING: self._waiting, **self._needs}

    def _of_resources(self) -> dict[str, pl.Expr]:
        """Return for how long each resource is needed after the fix."""
        model, fix = load_model(), self._fix
        touched = {*fix.removes, *fix.frees, *fix.adds}
        sides = {side for name in (*fix.removes, *fix.frees) for side in model.resources[name].sides}
        found = {
            name: self._of_touched(name, each) if name in touched else self._of_other(name, each)
            for name, each in model.resources.items()
            if each.is_certain or self._is_likely or not sides & set(each.sides)
        }
        found |= {name: self._of_other(name, side) for name, side in model.sides.items() if name not in sides}
        if fix.work is None:
            return found
        left = 1 - self._share(fix.work).fill_null(0.0)
        return {name: need * left for name, need in found.items()}

    def _of_other(self, name: str, resource: Resource) -> pl.Expr:
        """Return for how long a resource is needed that the fix does not touch."""
        if self._fix.idle is not None:
            even = pl.col(_EVEN.format(name))
            return (even / resource.reach).clip(upper_bound=self.working) if self._is_likely else even
        return pl.col((_EXPECTED if self._is_likely else _NEED).format(name))

    def _of_touched(self, name: str, resource: Resource) -> pl.Expr:
        """Return for how long a resource is needed whose demand the fix changes."""
        amounts = [amounts[name] for amounts in (self._fix.removes, self._fix.frees) if name in amounts]
        left = pl.col((_EVEN if self._fix.idle is not None else _NEED).format(name)) * self._left_of(amounts)
        if name in self._fix.adds:
            left = sum_of_known([left, _value(self._fix.adds[name], self._known)])
        if not self._is_likely:
            return left
        reached = pl.max_horizontal(pl.lit(resource.reach), pl.col(_NEED.format(name)) / pl.col(_WORKING))
        return left / reached.fill_nan(resource.reach).clip(upper_bound=1)

    def _left_of(self, amounts: Iterable[Amount]) -> pl.Expr:
        shares = (self._share(amount).fill_null(0.0) for amount in amounts)
        return reduce(operator.mul, (1 - share for share in shares), pl.lit(1.0))

    def _saved_by(self) -> pl.Expr:
        """Return the share of the working time that goes unless a resource is needed for longer; null where nothing is known."""
        shares = []
        for name, amount in self._fix.effects().items():
            if amount is not None:
                share = self._share(amount) * self._expectation.get(name, 1.0)
                shares.append(share / self.working if name == "idle" else share)
        shares += [
            self._exposed(name) / self.working * self._share(amount) for name, amount in self._fix.removes.items()
        ]
        return pl.max_horizontal(shares).fill_nan(0.0).clip(0, 1)

    def _exposed(self, name: str) -> pl.Expr:
        exposed, need = pl.col(_EXPOSED.format(name)), pl.col(_NEED.format(name)).fill_null(0.0)
        if not self._is_likely:
            return exposed
        is_limit = (pl.col(_BUSIEST) / (_BUSY * pl.col(_WORKING))).fill_nan(0.0).clip(0, 1)
        nearness = (pl.col(_NEARNESS.format(name)) * is_limit).fill_null(0.0)
        share = self._expectation["waiting"]
        # A resource that no warp waits for works while other resources work, so removing its demand saves no time.
        used = pl.max_horizontal(_AWAITED.format(name), nearness)
        return (need + (exposed - need) * (share + (1 - share) * nearness)) * used

    def _share(self, amount: Amount) -> pl.Expr:
        if amount in self._shares:
            return self._shares[amount]
        most = _value(amount.most, self._known).clip(0, 1)
        if not self._is_likely or amount.likely == amount.most:
            return most
        # Where only the largest share is known, as much of it is expected as of other bounds that say no more.
        return _value(amount.likely, self._known).clip(0, 1).fill_null(most * self._expectation["open"])


def _value(formula: Formula, known: frozenset[str]) -> pl.Expr:
    expression = formula.expression(lambda _: None, known)
    return pl.lit(None, pl.Float64) if expression is None else expression
