"""Maps printed names (terminal, page, tables) to the names that `ncuroof explain` knows."""

from __future__ import annotations

import re
from functools import cache

from ncuroof.diagnosis import load_parts, load_rules
from ncuroof.metrics import load_catalogue
from ncuroof.metrics.families import USER, load_families, title
from ncuroof.present.explanations.columns import columns_by_name, load_columns, load_page_columns
from ncuroof.present.explanations.groups import every_quantity
from ncuroof.present.explanations.limiters import load_limiters
from ncuroof.present.explanations.quantity_label import quantity_label
from ncuroof.present.explanations.terms import load_terms
from ncuroof.wording import label

_CUT = "…"
_BETWEEN_WORDS = re.compile(r"[\s_.·-]+")
_ENDINGS = re.compile(r"(?<=\w{4})(ing|ed|es|s)$")
"""Endings that are cut off before a search: "spills" and "coalescing" are searched as "spill" and "coalesc"."""
_LITTLE_WORDS = (
    "a", "an", "and", "are", "at", "by", "for", "in", "is", "it", "not", "of", "on", "or", "that", "the", "to", "with",
)  # fmt: skip
"""Too common to search for."""


def meant(name: str) -> str:
    """Return the known name for a printed one ("long scoreboard", "LSU", "above roof"), or the name itself where there is none."""
    if name.endswith(_CUT):
        found = begun(name)
        return found[0] if len(found) == 1 else name
    return _names_by_key().get(_key(name), name)


def begun(name: str) -> list[str]:
    """Return the names whose printed text starts like a truncated one ("The grid does not…"); none if it is not truncated."""
    if not name.endswith(_CUT):
        return []
    key = _key(name.removesuffix(_CUT))
    return list(dict.fromkeys(known for printed, known in _names_by_key().items() if key and printed.startswith(key)))


def similar(name: str) -> list[str]:
    """Return the names that match the most words of `name`, by name or printed text; none where fewer than half match."""
    words = [_ENDINGS.sub("", word) for word in _key(name).split() if word not in _LITTLE_WORDS]
    names: dict[int, dict[str, None]] = {}
    for printed, known in _names_by_key().items():
        names.setdefault(sum(word in printed for word in words), {})[known] = None
    most = max(names)
    return list(names[most]) if most and 2 * most >= len(words) else []


@cache
def _names_by_key() -> dict[str, str]:
    """Return the known names by normalised printed text.

    Of names with the same text, terms win over column titles, and both over what is added after them.
    """
    rules, catalogue = load_rules(), load_catalogue()
    titles = {verdict.title: name for name, verdict in rules.verdicts.items()}
    titles |= {finding.title: name for name, finding in rules.findings.items()}
    titles |= {part.title: f"wall_time.{name}" for name, part in load_parts().items()}
    families = (*load_families(), USER)
    titles |= {title(family): family for family in families}
    columns = load_columns()
    whole = [*rules.verdicts, *rules.findings, *rules.caveats, *load_limiters(), *catalogue.stalls.reasons, *families]
    titled = {**load_page_columns(), **columns_by_name()}.items()
    found = {_key(printed): name for name, column in titled for printed in column.printed}
    for name, term in load_terms().items():
        found |= dict.fromkeys(map(_key, (name, *term.printed)), name)
    nodes = [node.id for node in rules.nodes]
    for name in (*whole, *columns, *every_quantity(), *nodes):
        found.setdefault(_key(name), name)
    for name in whole:
        found.setdefault(_key(label(name)), name)
    for printed, name in titles.items():
        found.setdefault(_key(printed), name)
    for name in every_quantity():
        found.setdefault(_key(quantity_label(name)), name)
    return found


def _key(name: str) -> str:
    return _BETWEEN_WORDS.sub(" ", name.casefold()).strip()
