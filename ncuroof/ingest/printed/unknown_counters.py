"""Says which requested counters ncu did not know, and which existing ones were probably meant.

For a counter that it does not know, or that a GPU lacks, ncu prints `(!) n/a` in place of a value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator

from ncuroof.ingest.printed.labels import COUNTER_MARK, PrintedLabels

UNAVAILABLE = "(!) n/a"
_ONE_MARK = re.compile(r"([a-z][a-z0-9]*)_+([a-z].*)")
"""A counter's name with too few or too many underscores behind the unit."""

_NAME = re.compile(r"[a-z]\w*_\w[\w.]*")
_LIKE = 0.8
"""Least similarity (difflib's ratio) of a counter's base name that is proposed in place of an unknown one."""
_MOST_NAMED = 4


def is_counter_name(label: str) -> bool:
    """Return whether a label is built as the name of a counter, though it may be misspelt."""
    return _NAME.fullmatch(label) is not None


def sentences(unavailable: Iterable[str], labels: PrintedLabels, names: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with each of the first counters without a value, and how many others there are.

    Args:
        unavailable: labels of which ncu had no value for any launch.
        labels: known labels, with their counters.
        names: further existing counters.
    """
    known = frozenset(names).union(*(counters.values() for counters in labels.counter_by_label.values()))
    asked = [label for label in unavailable if is_counter_name(label)]
    for label in asked[:_MOST_NAMED]:
        meant = _meant(label, known)
        if meant == label:
            yield f"{label} exists, but not on this GPU or in this version of ncu"
        elif meant is not None:
            yield f"{label} does not exist: {meant} does"
        else:
            yield f"{label} is misspelt, or not on this GPU"
    if len(asked) > _MOST_NAMED:
        yield f"{len(asked) - _MOST_NAMED} more have no value either"


def _meant(label: str, known: Collection[str]) -> str | None:
    """Return the existing counter that a name probably means: itself, with two underscores, or the most similar one."""
    if label in known:
        return label
    bases = sorted({name.partition(".")[0] for name in known if COUNTER_MARK in name})
    units = {base.partition(COUNTER_MARK)[0] for base in bases}
    base, point, suffix = label.partition(".")
    parts = _ONE_MARK.fullmatch(base)
    mended = f"{parts[1]}{COUNTER_MARK}{parts[2]}" if parts and parts[1] in units else base
    near = [mended] if mended in bases else difflib.get_close_matches(mended, bases, n=1, cutoff=_LIKE)
    if near:
        return _with_suffix(near[0], f"{point}{suffix}", known)
    return f"{mended}{point}{suffix}" if mended != base else None


def _with_suffix(base: str, suffix: str, known: Collection[str]) -> str:
    """Return the counter of a base name: with the suffix as asked, or, if none like it is known, as the most similar one has it."""
    suffixes = sorted({name[len(base) :] for name in known if name.partition(".")[0] == base})
    asked = suffix.lower()
    parts = {part for name in known for part in name.split(".")[1:]}
    if set(asked.split(".")[1:]) <= parts or not suffixes:
        return f"{base}{asked}"
    return base + (difflib.get_close_matches(asked, suffixes, n=1, cutoff=0) or suffixes)[0]
