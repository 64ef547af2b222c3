"""Every kernel of a CUDA run on a hierarchical roofline, what bounds it and why.

    >>> import ncuroof
    >>> analysis = ncuroof.read("run.ncu-rep").analyse()
    >>> analysis.kernels                    # a polars table, one row per kernel
    >>> analysis.roofline()                 # a plotly figure, one dot per group of similar launches
    >>> analysis.to_html("run.html")        # one page that works offline
    >>> analysis.write("run.parquet")       # or .json, .md, .csv, .txt
    >>> ncuroof.profile(rmsnorm, x, weight) # the same of one call of a function, recorded on this machine
    >>> ncuroof.compare(before, after)      # what changed between two analyses or reports, and why
    >>> ncuroof.model.gemm(4096, 4096, 4096).intensity_flop_per_byte    # of an operation, before there is code
    >>> with ncuroof.torch.expect() as expected: network(x)             # of a network, before it runs on a GPU

Importing the package loads nothing heavy: each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module

from ncuroof._version import __version__

TYPE_CHECKING = False  # typing takes longer to import than all of this, and an interrupt meanwhile is a traceback
if TYPE_CHECKING:
    from typing import Any

    from ncuroof import model, torch
    from ncuroof.analysis import Analysis
    from ncuroof.profiling import Profiler, profile, sweep
    from ncuroof.reading import Reports, compare, read

__all__ = ["Analysis", "Profiler", "Reports", "__version__", "compare", "model", "profile", "read", "sweep", "torch"]

_MODULES = frozenset({"model", "torch"})
_OF_PROFILING = frozenset({"Profiler", "profile", "sweep"})


def __getattr__(name: str) -> Any:
    if name == "load_ipython_extension":  # of %load_ext ncuroof
        from ncuroof.cli import notebook  # noqa: PLC0415

        return notebook.load_ipython_extension
    if name in _MODULES:
        return import_module(f"ncuroof.{name}")
    if name in _OF_PROFILING:
        return getattr(import_module("ncuroof.profiling"), name)
    if name in __all__:
        from ncuroof import reading  # noqa: PLC0415  loads polars

        return getattr(reading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
