"""Distinguish kernels that share a short name by the words in which their full names differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ncuroof.comparison.run import Run
from ncuroof.comparison.signatures import texts_without_versions, without_parameters, without_versions
from ncuroof.formatting import shortened
from ncuroof.metrics.names import differences
from ncuroof.ncu.kernel_names import function_name

_NAMES = ("name", "short_name")
_MOST_CHARACTERS = 60
_MOST_OF_A_WORD = 40
_LEAST_OF_A_NAME = 16

_CAST = r"\([0-9A-Za-z_: ]+\)(-?[0-9])"
"""A constant as NVIDIA's demangler writes it: `(int)64`."""


def with_distinct_names(*runs: Run) -> tuple[Run, ...]:
    """Return runs in which kernels of the same short name have distinct short names: "launch_global · advance".

    Without this, all instantiations of a template share a short name, and so do all kernels of a program that uses Kokkos.
    """
    words = _words_by_short(name for run in runs for name in _names(run.groups).iter_rows())
    return tuple(_named(run, words) for run in runs)


def with_distinct_labels(runs: Sequence[tuple[Run, Path | None]]) -> list[Run]:
    """Return runs such that runs of different files have different labels.

    Runs that share a label are labelled with the shortest end of their path that is unique: "old/run.ncu-rep". A baseline keeps the
    label of the report that it was made from, followed by its own name.

    Args:
        runs: each with the path of its report or baseline; None if it has no file.
    """
    paths = {path.absolute(): run.label for run, path in runs if path is not None}
    shared = {label for label in paths.values() if list(paths.values()).count(label) > 1}
    found = []
    for run, path in runs:
        if path is None or run.label not in shared:
            found.append(run)
            continue
        others = [each for each, label in paths.items() if label == run.label and each != path.absolute()]
        name = _shortest_end(path.absolute(), others)
        found.append(replace(run, label=name if name.endswith(run.label) else f"{run.label} ({name})"))
    return found


def _shortest_end(path: Path, others: Sequence[Path]) -> str:
    """Return the fewest last parts of a path that no other path ends with."""
    n_parts = 1
    while n_parts < len(path.parts) and any(other.parts[-n_parts:] == path.parts[-n_parts:] for other in others):
        n_parts += 1
    return Path(*path.parts[-n_parts:]).as_posix()


def names_of_failed(*runs: Run) -> Mapping[str, str]:
    """Return short names, distinct over all of the runs, for the launches that failed to profile.

    Keys are the recorded names, and the recorded names without versions of libraries.
    """
    recorded = {name for run in runs for name in run.failed}
    failed = {*recorded, *texts_without_versions([*recorded])}
    if not failed:
        return {}
    names = pl.concat(run.groups.select("name") for run in runs)["name"].fill_null("").to_list()
    shorts = {name: function_name(name) for name in (*failed, *names)}
    table = pl.DataFrame(
        {"name": shorts.keys(), "short_name": shorts.values()}, schema=dict.fromkeys(_NAMES, pl.String)
    )
    words = _words_by_short(_names(table).iter_rows())
    plain = dict(zip(failed, texts_without_versions([*failed]), strict=True))
    return {name: _with_last_words(shorts[name], words.get(shorts[name], {}).get(plain[name], ())) for name in failed}


def _words_by_short(names: Iterable[tuple[str, str, str]]) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return for each shared short name the words in which its full names differ, from rows of `_names`."""
    full: dict[str, dict[str, str]] = defaultdict(dict)
    for short, name, plain in names:
        full[short][name] = plain
    return {short: _words(plain_by_name) for short, plain_by_name in full.items() if len(plain_by_name) > 1}


def _names(groups: pl.DataFrame) -> pl.DataFrame:
    """Return the short name, the name, and the name without parameters of each group."""
    name = without_versions(pl.col("name").fill_null(""))
    return groups.select(
        "short_name", name.alias("name"), without_parameters(name).str.replace_all(_CAST, "$1").alias("plain")
    )


def _words(plain_by_name: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """Return the words in which names differ: template arguments, or parameters if the template arguments agree."""
    if len(set(plain_by_name.values())) < len(plain_by_name):
        return differences(plain_by_name)
    by_plain = differences(plain_by_name.values())
    return {name: by_plain[plain] for name, plain in plain_by_name.items()}


def _named(run: Run, words: Mapping[str, Mapping[str, Sequence[str]]]) -> Run:
    shown = [
        _with_last_words(short, words.get(short, {}).get(name, ())) for short, name, _ in _names(run.groups).iter_rows()
    ]
    return replace(run, groups=run.groups.with_columns(pl.Series("short_name", shown, pl.String)))


def _with_last_words(short: str, words: Sequence[str]) -> str:
    """Return a short name and as many of the last words as fit: names tend to differ in their last words."""
    if not words:
        return short
    cut = [_cut_within(word) for word in words]
    while len(cut) > 1 and len(", ".join(cut)) > _MOST_CHARACTERS - _LEAST_OF_A_NAME - len(" · "):
        del cut[0]
    tail = f" · {', '.join(cut)}"
    return shortened(short, _MOST_CHARACTERS - len(tail)) + tail


def _cut_within(word: str) -> str:
    """Return a long word without its middle: similar names mostly share either their beginning or their end."""
    half = _MOST_OF_A_WORD // 2
    return word if len(word) <= _MOST_OF_A_WORD else f"{word[:half]}…{word[1 - half :]}"
