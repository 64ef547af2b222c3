"""What tells names apart that look alike: template arguments of kernels, folders of reports."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

_WORD = re.compile(r"-?\w+(?:::\w+)*\**")
"""A name with its namespaces, a pointer to it, or a number."""


def differences(names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the words by which each of several demangled names differs from the others; none for one that is alone.

    The first word that differs divides the names; those that still have it in common go on to the next. Namespaces are left out
    where the names differ without.
    """
    found: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    groups = [list(found)]
    while groups:
        divided = _divided(groups.pop())
        last = {word: word.rsplit("::", maxsplit=1)[-1] for word in divided}
        for word, group in divided.items():
            shown = last[word] if len(set(last.values())) == len(last) else word
            for name in group:
                found[name] += (shown,) if word else ()
            groups.append(group)
    return found


def _divided(names: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the names by the first word in which not all are alike; nothing where there is none."""
    for words in zip_longest(*map(_WORD.findall, names), fillvalue=""):
        if len(set(words)) > 1:
            groups: dict[str, list[str]] = defaultdict(list)
            for word, name in zip(words, names, strict=True):
                groups[word].append(name)
            return groups
    return {}


def with_folders(files: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names of files, each with its folder before it where several have the name.

    Args:
        files: folder and name of each.
    """
    n_by_name = Counter(name for _, name in files)
    return [f"{folder}/{name}" if folder and n_by_name[name] > 1 else name for folder, name in files]
