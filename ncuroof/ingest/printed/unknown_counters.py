"""Explain which requested counters ncu did not know, and which existing counters were probably meant.

For a counter that it does not know, or that a GPU lacks, ncu prints `(!) n/a` in place of a value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator

from ncuroof.ingest.printed.labels import COUNTER_MARK, PrintedLabels

UNAVAILABLE = "(!) n/a"
_ONE_MARK = re.compile(r"([a-z][a-z0-9]*)_+([a-z].*)")
"""A counter's name with too few or too many underscores after the unit."""

_NAME = re.compile(r"[a-z]\w*_\w[\w.]*")
_LIKE = 0.8
"""Least similarity (difflib's ratio) of a base name that is proposed for an unknown one."""
_MOST_NAMED = 4


def is_counter_name(label: str) -> bool:
    """Return whether a label is built as the name of a counter, though it may be misspelt."""
    return _NAME.fullmatch(label) is not None


def sentences(unavailable: Iterable[str], labels: PrintedLabels, names: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with each of the first counters without a value, and how many more there are.

    Args:
        unavailable: labels without a value for any launch.
        labels: known labels, with their counters.
        names: further existing counters.
    """
    known = frozenset(names).union(*(counters.values() for counters in labels.counter_by_label.values()))
    asked = [label for label in unavailable if is_counter_name(label)]
    yield from (_sentence(label, known) for label in asked[:_MOST_NAMED])
    if len(asked) > _MOST_NAMED:
        yield f"{len(asked) - _MOST_NAMED} more have no value either"


def _sentence(label: str, known: Collection[str]) -> str:
    """Return what is wrong with a name.

    Only wrong underscores prove that a counter does not exist: `known` has few of NVIDIA's counters.
    """
    bases = sorted({name.partition(".")[0] for name in known if COUNTER_MARK in name})
    base, point, suffix = label.partition(".")
    mended = _with_mark(base, {each.partition(COUNTER_MARK)[0] for each in bases})
    near = [mended] if mended in bases else difflib.get_close_matches(mended, bases, n=1, cutoff=_LIKE)
    like = _with_suffix(near[0], f"{point}{suffix}", known) if near else None
    if like == label:
        return f"{label} exists, but not on this GPU or in this version of ncu"
    if mended == base:
        return f"{label} is misspelt, or not on this GPU" + (f" (a similar one: {like})" if like else "")
    if like:
        return f"{label} does not exist: {like} does"
    return f"{label} does not exist: two underscores follow the unit, as in {mended}{point}{suffix}"


def _with_mark(base: str, units: Collection[str]) -> str:
    """Return a base name with exactly two underscores after its unit, if it begins with one of `units`."""
    parts = _ONE_MARK.fullmatch(base)
    return f"{parts[1]}{COUNTER_MARK}{parts[2]}" if parts and parts[1] in units else base


def _with_suffix(base: str, suffix: str, known: Collection[str]) -> str:
    """Return the counter of a base name, with the requested suffix if its parts are known, else with the most similar one."""
    suffixes = sorted({name[len(base) :] for name in known if name.partition(".")[0] == base})
    asked = suffix.lower()
    parts = {part for name in known for part in name.split(".")[1:]}
    if set(asked.split(".")[1:]) <= parts or not suffixes:
        return f"{base}{asked}"
    return base + (difflib.get_close_matches(asked, suffixes, n=1, cutoff=0) or suffixes)[0]
