"""Whose code a kernel is: its family, recognised from its name by the patterns of `profiles/families.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import polars as pl

from ncuroof.errors import ProfileError
from ncuroof.metrics.names import matches
from ncuroof.resources import profile_file

USER = "user"
"""The family of kernels that no pattern matches, and the last ancestor of every other family."""

LIBRARY = "library"
"""The family of other libraries, and the parent of the library families; its advice therefore names no library."""

_IDENTIFIER = r"^\w+(?:\(\))?$"
_NOT_TRITON = r"^(?:kernel_)?cutlass|_cuda_kernel_(?:forward|backward)(?:\(\))?$"
"""Kernel names of other Python compilers: CuTe's begin with a prefix, those of NVIDIA Warp end in a suffix."""

_CALLS_OPERATORS = "^aten::"
_PYTORCH, _COMPILED_BY_PYTORCH = "pytorch", "inductor"


@dataclass(frozen=True, slots=True)
class Family:
    """Kernels of one origin.

    Attributes:
        name: as in KERNELS, and in the `advice_<name>` of a finding.
        title: the name for people.
        parent: the family whose advice applies if there is none for this one.
        pattern: regular expression that the demangled name must match.
        remark: why the pattern means this family.
        unless: regular expression that the demangled name must not match, or None.
        advice: what a caller can change whatever the finding, or None.
        advice_from_pytorch: the same if PyTorch is the caller, or None if it does not differ.
        file: regular expression for the source files of kernels whose name is a plain identifier and says nothing, or None.
    """

    name: str
    title: str
    parent: str
    pattern: str
    remark: str
    unless: str | None = None
    advice: str | None = None
    advice_from_pytorch: str | None = None
    file: str | None = None

    def holds(self, demangled: pl.Expr) -> pl.Expr:
        """Return whether a demangled name belongs to this family."""
        fits = matches(demangled, self.pattern)
        return fits if self.unless is None else fits & ~matches(demangled, self.unless)

    def advice_of(self, *, is_from_pytorch: bool) -> str | None:
        """Return what a caller can change whatever the finding, in PyTorch's terms if PyTorch is the caller."""
        return (self.advice_from_pytorch if is_from_pytorch else None) or self.advice


@cache
def load_families() -> Mapping[str, Family]:
    """Return the families that ship with ncuroof by name, in the order in which their patterns are tried.

    Raises:
        ProfileError: `profiles/families.toml` is malformed, or a parent is not a later family.
    """
    with profile_file("families.toml") as raw:
        families = {entry["name"]: Family(**entry) for entry in raw["family"]}
    later = {USER}
    for family in reversed(tuple(families.values())):
        if family.parent not in later:
            raise ProfileError(f"families.toml: parent {family.parent!r} of {family.name!r} is no later family")
        later.add(family.name)
    return families


def lineage(name: str) -> tuple[Family, ...]:
    """Return a family and its ancestors, without the last one, "user"; nothing for a name that is not a family's."""
    families = load_families()
    found = []
    while (family := families.get(name)) is not None:
        found.append(family)
        name = family.parent
    return tuple(found)


def title(name: str) -> str:
    """Return a family's title; "own code" for "user", or for a name that is not a family's."""
    family = load_families().get(name)
    return "own code" if family is None else family.title


def families_of(demangled: pl.Series) -> pl.Series:
    """Return the family of each kernel: the first one that its demangled name belongs to, else "user"."""
    expression = pl.lit(USER)
    for family in reversed(tuple(load_families().values())):
        expression = pl.when(family.holds(pl.col("name"))).then(pl.lit(family.name)).otherwise(expression)
    names = demangled.fill_null("").alias("name").to_frame()
    family_by_name = names.unique().with_columns(expression.alias("family"))  # few names, many launches
    return names.join(family_by_name, on="name", how="left", maintain_order="left")["family"]


def families_by_lines(kernels: pl.DataFrame, lines: pl.DataFrame) -> pl.Series:
    """Return the family of each kernel; if its name is a plain identifier without one, the family of its source files.

    All launches of one name get the same family.

    Args:
        kernels: with id, name and family.
        lines: LINES.
    """
    plain = kernels.filter(
        pl.col("family") == USER, matches(pl.col("name"), _IDENTIFIER), ~matches(pl.col("name"), _NOT_TRITON)
    )
    files = lines.select("id", "file").unique().join(plain.select("id", "name"), on="id")
    family = kernels["family"]
    for each in load_families().values():
        if each.file is not None and files.height:
            names = files.filter(matches(pl.col("file"), each.file))["name"].unique()
            is_one = pl.lit(family == USER) & pl.col("name").is_in(names.implode())
            family = kernels.select(pl.when(is_one).then(pl.lit(each.name)).otherwise(family).alias("family"))["family"]
    return family


def launched_by_pytorch(kernels: pl.DataFrame) -> pl.Series:
    """Return whether PyTorch launched each kernel, its own or a library's.

    If a process has NVTX ranges of PyTorch's operators (`aten::`), one of them must be open; otherwise it is enough that the
    process also runs kernels of PyTorch.

    Args:
        kernels: with source, process_id, family and nvtx.
    """
    process = ["source", "process_id"]
    parts = [name for name in load_families() if _PYTORCH in {family.name for family in lineage(name)}]
    is_operator = pl.col("nvtx").list.eval(matches(pl.element(), _CALLS_OPERATORS)).list.any().fill_null(value=False)
    runs_its_own = pl.col("family").is_in([*parts, _COMPILED_BY_PYTORCH]).any().over(process)
    is_launched = pl.when(is_operator.any().over(process)).then(is_operator).otherwise(runs_its_own)
    return kernels.select(is_launched.alias("is_from_pytorch")).to_series()
