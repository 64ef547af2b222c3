"""A finding: a cause of a kernel's time, with what to do about it and how much that saves.

Advice is addressed to the author of the kernel or to the caller of its library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import polars as pl

from ncuroof.demand import Fix, read_fix
from ncuroof.diagnosis.conditions import Condition, read_conditions
from ncuroof.errors import ProfileError
from ncuroof.metrics.families import LIBRARY, USER, lineage
from ncuroof.metrics.formula import Formula, parse
from ncuroof.metrics.names import matches

_pattern = cache(re.compile)


class Rank(Enum):
    """Where a finding stands among the findings of a kernel, before any comparison of what they save; first to last."""

    OVERRIDES = "overrides"
    """Before all others, and no gain of the kernel is reported."""
    FIRST = "first"
    """Before all others that have a gain."""
    CAUSE = "cause"
    GENERAL = "general"
    """Advice about a busy unit whatever the cause: after the causes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: when it fires, for which verdicts, how much fixing it saves, and what to do.

    Attributes:
        id: its name in the document.
        title: one line.
        group: the name by which a latency cause refers to it; its id unless several findings share a group.
        verdicts: reported only for kernels with one of these verdicts.
        limiters: reported only for kernels with one of these limiters; empty for any.
        all_of: conditions that must all hold.
        any_of: conditions of which at least one must hold; empty for no such requirement.
        name_pattern: regular expression that the kernel's name must match, or None.
        excluded_name_pattern: regular expression that the kernel's name must not match, or None.
        fix: what fixing it removes, from which follows what it saves; None where the counters do not show that.
        instead_of: findings that it replaces where all of them fire, whatever its own conditions; empty for none.
        covers: findings that say the same in general: not listed beside it, which names the limiter where they would.
        waste_by_level: unused bytes that each memory level moved.
        lowers_precision: the fix is another type, which computes fewer digits.
        needs_more_work: the gain is per unit of work: it takes more work per launch, or the same work in smaller blocks. Launch
            overhead, which more work per launch outweighs, does not bound it.
        is_roof: it says that a unit is at its roof: before findings that save next to nothing.
        rank: where it stands among the findings of a kernel; one that removes the whole launch stands first unless it overrides.
        severity: used where the gain is unknown.
        advice: what to do, by the kernel's family and what else is known of the kernel.
        lines: `by_line` measures that locate it in the source; the first one that is known is used.
        evidence: quantities to show with it.
    """

    id: str
    title: str
    group: str
    verdicts: tuple[str, ...]
    limiters: tuple[str, ...]
    all_of: tuple[Condition, ...]
    any_of: tuple[Condition, ...]
    name_pattern: str | None
    excluded_name_pattern: str | None
    fix: Fix | None
    instead_of: tuple[str, ...]
    covers: tuple[str, ...]
    waste_by_level: Mapping[str, Formula]
    lowers_precision: bool
    needs_more_work: bool
    is_roof: bool
    rank: Rank
    severity: str
    advice: Advice
    lines: tuple[str, ...]
    evidence: tuple[str, ...]

    @property
    def removes_launch(self) -> bool:
        """Whether the fix removes the whole launch."""
        return self.fix is not None and self.fix.launch is not None


def read_finding(name: str, entry: Mapping[str, Any]) -> Finding:
    """Return a finding as written in `profiles/rules/*.toml`, complete (`complete_findings`).

    Raises:
        KeyError: the entry lacks its title, verdicts, advice or evidence.
        ProfileError: a formula, a condition or the rank is malformed.
    """
    by_family = {USER: entry["advice"]} | {
        key.removeprefix("advice_"): text for key, text in entry.items() if key.startswith("advice_")
    }
    variants = tuple(map(_variant, entry.get("variant", ())))
    return Finding(
        id=name,
        title=entry["title"],
        group=entry.get("group", name),
        verdicts=tuple(entry["verdicts"]),
        limiters=tuple(entry.get("limiters", ())),
        all_of=read_conditions(entry.get("when", ())),
        any_of=read_conditions(entry.get("when_any", ())),
        name_pattern=entry.get("name"),
        excluded_name_pattern=entry.get("not_name"),
        fix=read_fix(entry),
        instead_of=tuple(entry.get("instead_of", ())),
        covers=tuple(entry.get("covers", ())),
        waste_by_level={level: parse(text) for level, text in entry.get("waste_bytes", {}).items()},
        lowers_precision=entry.get("lowers_precision", False),
        needs_more_work=entry.get("needs_more_work", False),
        is_roof=entry.get("is_roof", False),
        rank=_rank(entry.get("rank", Rank.CAUSE.value)),
        severity=entry.get("severity", "medium"),
        advice=Advice(by_family, variants, asks_to_collect=entry.get("asks_to_collect", False)),
        lines=tuple(entry.get("lines", ())),
        evidence=tuple(entry["evidence"]),
    )


def _rank(name: str) -> Rank:
    try:
        return Rank(name)
    except ValueError:
        wanted = ", ".join(rank.value for rank in Rank)
        raise ProfileError(f"rank: expected one of {wanted}, found {name!r}") from None


def _variant(entry: Mapping[str, Any]) -> Variant:
    fields = {name: value for name, value in entry.items() if name != "when"}
    return Variant(**fields, all_of=read_conditions(entry.get("when", ())))


@dataclass(frozen=True, slots=True)
class Variant:
    """Advice for some kernels of a family, selected by name, NVTX ranges, caller or quantities; all criteria given must hold.

    Attributes:
        family: the family that the kernels belong to.
        advice: what to do; it replaces the family's advice.
        name: regular expression to find in the demangled name.
        ranges: regular expression to find in the open NVTX ranges, outermost first, one per line.
        is_from_pytorch: only kernels that PyTorch launches.
        all_of: conditions that their quantities must meet.
        without_gain: it asks for another change than the one that the finding's gain bounds, so that no gain is stated.
    """

    family: str
    advice: str
    name: str = ""
    ranges: str = ""
    is_from_pytorch: bool = False
    all_of: tuple[Condition, ...] = ()
    without_gain: bool = False

    def holds(self, name: str, ranges: str, *, is_from_pytorch: bool, quantities: Mapping[str, Any]) -> bool:
        """Return whether the variant applies to a kernel of its family with this name, these ranges, caller and quantities."""
        texts = ((self.name, name), (self.ranges, ranges))
        is_match = self.is_from_pytorch <= is_from_pytorch and all(_pattern(each).search(text) for each, text in texts)
        return is_match and all(condition.holds_for(quantities) for condition in self.all_of)

    def applies(self) -> pl.Expr:
        """Return whether the variant applies to each kernel of a table with `family`, `name` and quantities, in any ranges."""
        named = [matches(pl.col("name"), self.name)] if self.name else []
        conditions = (condition.holds() for condition in self.all_of)
        return pl.all_horizontal(pl.col("family") == self.family, *named, *conditions).fill_null(value=False)

    def described(self) -> str:
        """Return in words which kernels it is for, and whether a gain is stated beside it."""
        where = f", where {self._where()}" if self._where() else ""
        return f"{self.family}{where}{' (no gain is stated)' if self.without_gain else ''}"

    def _where(self) -> str:
        name = f"{self.name} is in the name" if self.name else None
        ranges = f"{self.ranges} is in the NVTX ranges" if self.ranges else None
        caller = "PyTorch launches it" if self.is_from_pytorch else None
        return " and ".join(filter(None, (name, ranges, caller, *map(str, self.all_of))))


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a finding, by family, name, NVTX ranges, caller and quantities.

    Attributes:
        by_family: advice by family name; "user" is for the author of the kernel.
        variants: advice that replaces a family's where its criteria hold; the first that holds is used.
        asks_to_collect: the advice is what to record before changing anything, so it is the same for all libraries.
    """

    by_family: Mapping[str, str]
    variants: Sequence[Variant] = ()
    asks_to_collect: bool = False

    def text(
        self,
        family: str,
        name: str = "",
        ranges: Sequence[str | None] = (),
        *,
        is_from_pytorch: bool = False,
        quantities: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the advice for a kernel.

        The first that exists of: the finding's advice for the family or its parents, what their callers can change whatever
        the finding, the same two for libraries in general, and the finding's advice for the author of the kernel. With
        `asks_to_collect`, the finding's advice for libraries in general comes before what callers can change.

        Args:
            family: family of the kernel.
            name: its demangled name; without it, variants that ask for a name do not apply.
            ranges: its open NVTX ranges, outermost first.
            is_from_pytorch: PyTorch launches it.
            quantities: its quantities by name; without them, variants with conditions on known quantities do not apply.
        """
        path, known = "\n".join(filter(None, ranges)), quantities or {}
        applicable = [
            each for each in self.variants if each.holds(name, path, is_from_pytorch=is_from_pytorch, quantities=known)
        ]
        kin = lineage(family)
        named = kin if self.asks_to_collect else tuple(each for each in kin if each.name != LIBRARY)
        for families in (named, kin):
            own = (self._own(each.name, applicable) for each in families)
            texts = (*own, *(each.advice_of(is_from_pytorch=is_from_pytorch) for each in families))
            if (advice := next(filter(None, texts), None)) is not None:
                return advice
        return self._own(USER, applicable) or self.by_family[USER]

    def is_without_gain(self) -> pl.Expr:
        """Return whether a kernel gets advice without a gain: that of the first variant that applies, if it is one."""
        decided = [pl.when(variant.applies()).then(pl.lit(variant.without_gain)) for variant in self.variants]
        return pl.coalesce(*decided, pl.lit(value=False))

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield pairs: which kernels a text is for, and the text."""
        yield from self.by_family.items()
        yield from ((variant.described(), variant.advice) for variant in self.variants)

    def _own(self, family: str, variants: Sequence[Variant]) -> str | None:
        return next((each.advice for each in variants if each.family == family), self.by_family.get(family))
