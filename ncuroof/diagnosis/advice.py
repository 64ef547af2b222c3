"""What to do about a finding, in the words of whoever calls or wrote the kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ncuroof.diagnosis.conditions import Condition
from ncuroof.metrics.families import LIBRARY, USER, lineage

_pattern = cache(re.compile)


@dataclass(frozen=True, slots=True)
class Variant:
    """Advice for those kernels of a family of which name, NVTX ranges, caller or quantities tell more; each where it is given.

    Attributes:
        family: whose kernels they are.
        advice: what to do, in place of the family's.
        name: regular expression that the demangled name matches.
        ranges: regular expression that its open NVTX ranges match, outermost first and a line each.
        is_from_pytorch: PyTorch launches them.
        all_of: conditions that their quantities meet.
    """

    family: str
    advice: str
    name: str = ""
    ranges: str = ""
    is_from_pytorch: bool = False
    all_of: tuple[Condition, ...] = ()

    def holds(self, name: str, ranges: str, *, is_from_pytorch: bool, quantities: Mapping[str, Any]) -> bool:
        """Return whether it is for a kernel of its family of this name, in these ranges, with these quantities."""
        texts = ((self.name, name), (self.ranges, ranges))
        is_told = self.is_from_pytorch <= is_from_pytorch and all(_pattern(each).search(text) for each, text in texts)
        return is_told and all(condition.holds_for(quantities) for condition in self.all_of)

    def where(self) -> str:
        """Return what tells its kernels from others of the family, in words."""
        name = f"{self.name} is in the name" if self.name else None
        ranges = f"{self.ranges} is in the NVTX ranges" if self.ranges else None
        caller = "PyTorch launches it" if self.is_from_pytorch else None
        return " and ".join(filter(None, (name, ranges, caller, *map(str, self.all_of))))


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a finding, by family, name, NVTX ranges, caller and quantities.

    Attributes:
        by_family: what to do, by whose code it is; "user" is for code of one's own.
        variants: what to do in place of that where more is told, the first that holds.
        asks_to_collect: it is what to record before anything is changed, the same for all libraries.
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

        The finding's own for the family or its parent, else what their callers can change whatever the finding; then the same
        for libraries of any name, and at last what the author of a kernel can do.

        Args:
            family: whose code the kernel is.
            name: its demangled name; without it, what is told whatever the name.
            ranges: its open NVTX ranges, outermost first.
            is_from_pytorch: PyTorch launches it.
            quantities: its quantities by name; without them, what is told whatever they are.
        """
        path, known = "\n".join(filter(None, ranges)), quantities or {}
        told = [
            each for each in self.variants if each.holds(name, path, is_from_pytorch=is_from_pytorch, quantities=known)
        ]
        kin = lineage(family)
        named = kin if self.asks_to_collect else tuple(each for each in kin if each.name != LIBRARY)
        for families in (named, kin):
            own = (self._own(each.name, told) for each in families)
            texts = (*own, *(each.advice_of(is_from_pytorch=is_from_pytorch) for each in families))
            if (advice := next(filter(None, texts), None)) is not None:
                return advice
        return self._own(USER, told) or self.by_family[USER]

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield whom each text is for, and the text."""
        yield from self.by_family.items()
        yield from ((f"{variant.family}, where {variant.where()}", variant.advice) for variant in self.variants)

    def _own(self, family: str, told: Sequence[Variant]) -> str | None:
        return next((each.advice for each in told if each.family == family), self.by_family.get(family))
