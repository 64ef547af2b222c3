"""Compare expected with measured: what PyTorch's operators needed and what their kernels did, from NVTX ranges with shapes."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ncuroof.enums import CeilingSource
from ncuroof.expected.calls import expected_calls, peaks_by_device
from ncuroof.expected.ranges import expected_modules
from ncuroof.expected.utilisation import ModelUtilisation, expected_operators, model_utilisation

__all__ = ["Expected", "ModelUtilisation", "expect", "of_part"]


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What operators needed, compared with what their kernels did.

    Attributes:
        calls: CALLS, one row per operator call, in the order of the run.
        operators: OPERATORS, the most time above the roofline first.
        modules: MODULES, the longest first.
        utilisation: model FLOP utilisation of a run whose calls are all on one GPU; None for several GPUs, or if unknown.
    """

    calls: pl.DataFrame
    operators: pl.DataFrame
    modules: pl.DataFrame
    utilisation: ModelUtilisation | None


def expect(kernels: pl.DataFrame, work: pl.DataFrame, ceilings: pl.DataFrame, wall_ns: float | None = None) -> Expected:
    """Compare what operators needed with what their kernels did.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
        work: WORK.
        ceilings: CEILINGS.
        wall_ns: wall time of the run; None if unknown.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    calls = expected_calls(kernels, work, ceilings)
    devices = calls["device"].drop_nulls().unique().to_list()
    peaks = peaks_by_device(
        ceilings, CeilingSource.DATASHEET
    )  # a share of the peak is one of the data sheet's, by custom
    of_device = {name: peak for (device, name), peak in peaks.items() if device in devices}
    on_device = kernels.filter(pl.col("device").is_in(devices))
    utilisation = model_utilisation(calls, on_device, of_device, wall_ns) if len(devices) == 1 else None
    return Expected(calls, expected_operators(calls), expected_modules(calls), utilisation)


def of_part(expected: Expected, ids: pl.Series) -> Expected:
    """Return the comparison for a part of a run: the calls whose launches all belong to it. Utilisation is only for whole runs.

    Args:
        expected: the comparison for the whole run.
        ids: ids of the launches.
    """
    calls = expected.calls.filter(pl.col("ids").list.eval(pl.element().is_in(ids.implode())).list.all())
    return Expected(calls, expected_operators(calls), expected_modules(calls), None)
