"""What to do about a finding, in the words of whoever calls or wrote the kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ncuroof.metrics.families import LIBRARY, USER, lineage

_pattern = cache(re.compile)


@dataclass(frozen=True, slots=True)
class Variant:
    """Advice for those kernels of a family whose name tells more.

    Attributes:
        family: whose kernels they are.
        name: regular expression that the demangled name matches.
        advice: what to do, in place of the family's.
    """

    family: str
    name: str
    advice: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a finding, by family and name.

    Attributes:
        by_family: what to do, by whose code it is; "user" is for code of one's own.
        variants: what to do in place of that where the name tells more, the first that matches.
        asks_to_collect: it is what to record before anything is changed, the same for all libraries.
    """

    by_family: Mapping[str, str]
    variants: Sequence[Variant] = ()
    asks_to_collect: bool = False

    def text(self, family: str, name: str = "") -> str:
        """Return the advice for a kernel.

        The finding's own for the family or its parent, else what their callers can change whatever the finding; then the same
        for libraries of any name, and at last what the author of a kernel can do.

        Args:
            family: whose code the kernel is.
            name: its demangled name; without it, what is told whatever the name.
        """
        kin = lineage(family)
        named = kin if self.asks_to_collect else tuple(each for each in kin if each.name != LIBRARY)
        for families in (named, kin):
            own = (self._own(each.name, name) for each in families)
            texts = (*own, *(each.advice for each in families))
            if (advice := next(filter(None, texts), None)) is not None:
                return advice
        return self.by_family[USER]

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield whom each text is for, and the text."""
        yield from self.by_family.items()
        yield from ((f"{variant.family} with {variant.name} in its name", variant.advice) for variant in self.variants)

    def _own(self, family: str, name: str) -> str | None:
        told = (each.advice for each in self.variants if each.family == family and _pattern(each.name).search(name))
        return next(told, self.by_family.get(family))
