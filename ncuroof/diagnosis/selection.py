"""Part of a run: the launches whose kernel, or whose NVTX range, has a certain name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import polars as pl

from ncuroof.errors import SelectionError
from ncuroof.formatting import first_of, printable, shortened
from ncuroof.ncu.kernel_names import function_name

Tables = TypeVar("Tables")

_MOST_NAME, _N_NAMED = 60, 3
"""Most characters of a name in a message, and most names."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which launches of a run were selected.

    Attributes:
        kernel: regular expression found in the kernel's name; None for any name.
        nvtx: regular expression found in the names of the NVTX ranges around the launch; None for any launch.
        skip: matching launches left out at the beginning.
        count: most launches selected after those; None for all.
        of_n_kernels: launches in the run.
        duration_frac: the selected launches' share of the run's GPU time; None if unknown.
    """

    kernel: str | None
    nvtx: str | None
    skip: int
    count: int | None
    of_n_kernels: int
    duration_frac: float | None


def select(
    kernels: pl.DataFrame,
    *,
    kernel: str | None = None,
    nvtx: str | None = None,
    skip: int = 0,
    count: int | None = None,
) -> pl.Series:
    """Return the `id` of the launches that pass all filters, in their order.

    Args:
        kernels: KERNELS.
        kernel: regular expression to find in the demangled name, or in the function's name without namespaces and arguments.
        nvtx: regular expression to find in the names of the NVTX ranges around a launch, joined by `/` from the outermost.
        skip: number of matching launches to leave out first.
        count: most launches to return; None for all.

    Raises:
        SelectionError: an expression is malformed, a number is negative (or 0 for `count`), or no launch passes.
    """
    if skip < 0 or (count is not None and count < 1):
        raise SelectionError(
            f"expected to skip 0 launches or more and to keep 1 or more, found {skip} and {count}",
            hint="leave the numbers out to select all launches that match",
        )
    found = kernels
    if kernel is not None:
        found = _matching(found, "name", kernel, what="kernel")
    if nvtx is not None:
        paths = pl.col("nvtx").list.eval(pl.element().fill_null("")).list.join("/")
        found = _matching(found.with_columns(paths.alias("path")), "path", nvtx, what="NVTX range")
    chosen = found["id"].slice(skip, count)
    if chosen.is_empty():
        raise SelectionError(
            f"expected launches after the first {skip} that match, found {found.height} in all", hint="skip fewer"
        )
    return chosen


def restricted(tables: Tables, ids: pl.Series) -> Tables:
    """Return a dataclass of tables in which those with an `id` have only the rows of some launches."""
    found: dict[str, Any] = {field.name: getattr(tables, field.name) for field in fields(tables)}  # type: ignore[arg-type]
    of_launches = {
        name: table.filter(pl.col("id").is_in(ids.implode()))
        for name, table in found.items()
        if isinstance(table, pl.DataFrame) and "id" in table.columns
    }
    return replace(tables, **of_launches)  # type: ignore[type-var]


def matching_names(names: Iterable[str | None], pattern: str, *, what: str) -> list[str]:
    """Return the names in which an expression is found, each once; of kernels also those in whose function's name it is.

    Args:
        names: to search; what is None or empty has no name.
        pattern: regular expression.
        what: "kernel" or "NVTX range".

    Raises:
        SelectionError: the expression is malformed, or found in no name.
    """
    known = [name for name in dict.fromkeys(names) if name]
    searched = pl.DataFrame(
        {"name": known, "function": [function_name(name) if what == "kernel" else name for name in known]},
        schema={"name": pl.String, "function": pl.String},
    )
    try:  # Polars' engine takes linear time, whatever the expression; Python's may take forever
        matching = searched.filter(pl.any_horizontal(pl.all().str.contains(pattern)))["name"].to_list()
    except pl.exceptions.ComputeError as error:
        said = str(error).strip().splitlines()
        reason = next((line.removeprefix("error: ") for line in said if line.startswith("error: ")), said[0])
        raise SelectionError(
            f"expected a regular expression for the {what}, found {pattern!r}: {reason}",
            hint="quote it for the shell; look-around and back-references are not supported",
        ) from error
    if not matching:
        raise SelectionError(f"no {what} matches {pattern!r}", hint=_what_there_is(known, what))
    return matching


def _matching(launches: pl.DataFrame, column: str, pattern: str, *, what: str) -> pl.DataFrame:
    """Return the launches in whose name an expression is found, in the order given."""
    return launches.filter(pl.col(column).is_in(matching_names(launches[column].to_list(), pattern, what=what)))


def _what_there_is(names: list[str], what: str) -> str:
    """Return the first functions, or outermost ranges, among the names that were searched."""
    short = dict.fromkeys(function_name(name) if what == "kernel" else name.partition("/")[0] for name in names)
    if not short:
        return "the report has none: profile with --nvtx" if what != "kernel" else "the report names no kernel"
    return f"there are {first_of([shortened(printable(name), _MOST_NAME) for name in short], _N_NAMED)}"
