"""A fix: what a change of a kernel removes, as data of a finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ncuroof.demand.resources import group
from ncuroof.errors import ProfileError
from ncuroof.metrics.formula import Formula, parse

_ALL = "all"


@dataclass(frozen=True, slots=True)
class Amount:
    """How much a change removes: what is likely, and the most that it can be.

    Attributes:
        likely: formula of the likely share.
        most: formula of the largest possible share.
    """

    likely: Formula
    most: Formula

    def __str__(self) -> str:
        if self.likely == self.most:
            return self.likely.text
        return f"{self.likely.text}, at most {self.most.text}"


@dataclass(frozen=True, slots=True)
class Fix:
    """What a change removes. Shares of the demand for a resource, of the working time or, for `launch`, of the duration.

    Attributes:
        removes: share of the demand for each resource that goes, and with it the time that warps wait for that.
        frees: share of the demand for each resource that can go as well, but saves no time by itself.
        adds: demand for each resource that comes instead, as a share of the duration.
        waits: share of the warps' time that they spend in the waits that go.
        fills: share of the time that fuller SMs save at most.
        idle: share of the duration in which SMs idle that goes.
        work: share of all work that goes.
        launch: share of the whole launch that goes, with its overhead.
        removed: what `removes` names: words, the quantities of its share, and its resources.
        is_open: how much of the unit's work can go is not known: `removes` is what certainly does not stay for other reasons.
        is_per_work: what is saved is per unit of work: more work per launch, so that launch overhead is spread over more.
    """

    removes: Mapping[str, Amount]
    frees: Mapping[str, Amount]
    adds: Mapping[str, Formula]
    waits: Amount | None = None
    fills: Amount | None = None
    idle: Amount | None = None
    work: Amount | None = None
    launch: Amount | None = None
    removed: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    is_open: bool = False
    is_per_work: bool = False

    def formulas(self) -> Iterator[Formula]:
        """Yield all formulas that bound what is saved."""
        for amount in (*self.removes.values(), *self.frees.values(), *filter(None, self.effects().values())):
            yield from (amount.likely, amount.most)
        yield from self.adds.values()

    def effects(self) -> Mapping[str, Amount | None]:
        """Return the amounts that are shares of time, by the name of the effect."""
        return {name: getattr(self, name) for name in EFFECTS}


EFFECTS = ("waits", "fills", "idle", "work", "launch")
"""What shortens the time whatever the resource, as written in a finding."""


def read_fix(entry: Mapping[str, Any]) -> Fix | None:
    """Return the fix that a finding's entry states with its keys `removes`, `frees`, `adds` and EFFECTS; None if it states none.

    An amount is a formula, or a pair: the likely share and the largest. "all" stands for 1.

    Raises:
        ProfileError: a formula is malformed, no resource has a name, or nothing in the entry saves time.
    """
    if not {"removes", *EFFECTS} & entry.keys():
        if beside := {"frees", "adds"} & entry.keys():
            wanted = ", ".join(("removes", *EFFECTS))
            raise ProfileError(
                f"{' and '.join(sorted(beside))}: expected one of {wanted} as well, which saves the time"
            )
        return None
    return Fix(
        removes=_by_resource(entry.get("removes", {})),
        frees=_by_resource(entry.get("frees", {})),
        adds={
            resource: parse(text) for name, text in entry.get("adds", {}).items() for resource in group(name).resources
        },
        **{name: _amount(entry[name]) for name in EFFECTS if name in entry},
        removed=tuple(
            (group(name).label, tuple(sorted(_amount(amount).most.quantities)), tuple(group(name).resources))
            for name, amount in entry.get("removes", {}).items()
        ),
        is_open=entry.get("is_open", False),
        is_per_work=entry.get("needs_more_work", False),
    )


def _by_resource(amounts: Mapping[str, Any]) -> dict[str, Amount]:
    """Return amounts by resource; what is said of a single resource comes before what is said of its group."""
    groups_first = sorted(amounts.items(), key=lambda each: -len(group(each[0]).resources))
    return {resource: _amount(written) for name, written in groups_first for resource in group(name).resources}


def _amount(written: str | list[str]) -> Amount:
    likely, most = (written, written) if isinstance(written, str) else written
    return Amount(_share(likely), _share(most))


def _share(text: str) -> Formula:
    return parse("1" if text == _ALL else text)
