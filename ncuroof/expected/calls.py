"""Find the calls of PyTorch's operators: the launches of each call, what the call needed, and what the launches did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ncuroof.diagnosis import UNEVEN
from ncuroof.enums import SPARSE_SUFFIX, TENSOR_PREFIX, CeilingSource
from ncuroof.expected.element_types import element_type
from ncuroof.expected.ranges import LaunchSite, place
from ncuroof.expected.schemas import CALLS
from ncuroof.metrics.torch_ranges import torch_range
from ncuroof.model import Operation, recorded_operator
from ncuroof.tables import CEILINGS, KERNELS, WORK, check, conform

_DRAM = "dram"
_ATTENTION = "_attention"
_OF_ANY_TYPE = "fp32"
"""Placeholder for the element type if only work is wanted, which depends only on shapes."""

_Peaks = Mapping[tuple[int, str], float]
_Modules = Mapping[tuple[Any, Any, int], str]


def expected_calls(kernels: pl.DataFrame, work: pl.DataFrame, ceilings: pl.DataFrame) -> pl.DataFrame:
    """Return the operator calls found in NVTX ranges of `emit_nvtx(record_shapes=True)`: what each needed, what its kernels did.

    A launch belongs to the innermost range that names an operator of known work. Consecutive launches under the same ranges are one
    call. If PyTorch put no call number into the range, a call ends when its first kernel is launched again.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
        work: WORK.
        ceilings: CEILINGS.

    Returns:
        CALLS; empty if no range names an operator with shapes.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    for table, schema, name in ((kernels, KERNELS, "KERNELS"), (work, WORK, "WORK"), (ceilings, CEILINGS, "CEILINGS")):
        check(table, schema, table=name)
    whole = kernels.filter(~pl.col("failed"))
    recorded = dict.fromkeys(
        map(tuple, whole["nvtx_recorded"].drop_nulls().to_list())
    )  # older versions of polars have no unique() for lists of strings
    places = {path: place(path) for path in recorded if path}
    named = {path: text for path, found in places.items() if (text := _operator_range(found))}
    if not named:
        return pl.DataFrame(schema=CALLS)
    modules, peaks = _modules_by_sequence(whole, places), peaks_by_device(ceilings)
    sheet = peaks_by_device(ceilings.filter(pl.col("source") == CeilingSource.DATASHEET.value))
    rows = [
        _with_work_weight(_call(number, group, named, places, modules, peaks), sheet)
        for number, group in enumerate(_groups(whole, work, named))
    ]
    return pl.DataFrame(rows, schema=CALLS).pipe(conform, CALLS)


def _operator_range(found: LaunchSite) -> str | None:
    """Return the innermost operator range with known work and some traffic; None if there is none."""
    for text in found.operators:
        operation = recorded_operator(text, dtype=_OF_ANY_TYPE)
        if operation is not None and operation.is_known and operation.traffic:
            return text
    return None


def _modules_by_sequence(whole: pl.DataFrame, places: Mapping[tuple[str, ...], LaunchSite]) -> _Modules:
    """Return the modules of forward operators by report, process and sequence number.

    Gradients run outside of any module and refer to their forward operator by this number. If several operators have the same
    number, the last one created the gradient's node, and the earlier ones needed no gradient.
    """
    rows = whole.select("source", "process_id", "nvtx_recorded").iter_rows()
    recorded = dict.fromkeys((source, process, tuple(path)) for source, process, path in rows if path)
    found = [(source, process, places[path]) for source, process, path in recorded]
    return {
        (source, process, each.sequence): each.module
        for source, process, each in found
        if each.sequence is not None and each.module is not None
    }


def _groups(whole: pl.DataFrame, work: pl.DataFrame, named: Mapping[tuple[str, ...], str]) -> list[dict[str, Any]]:
    """Return, per call in order, its launches and their totals."""
    done = work.filter(pl.col("reliable") & (pl.col("flop") > 0)).with_columns(
        pl.col("precision").str.replace(f"{SPARSE_SUFFIX}$", "")
    )
    by_launch = done.group_by("id").agg(
        pl.struct("precision", "flop").sort_by("flop", descending=True).alias("did"),
        pl.lit(value=True).alias("has_work"),
    )
    counted = work.filter(pl.col("reliable")).select("id").unique().with_columns(pl.lit(value=True).alias("is_counted"))
    keys = [tuple(path) if path else () for path in whole["nvtx_recorded"].to_list()]
    launches = whole.with_columns(
        pl.Series("path", ["\x1f".join(key) if key in named else None for key in keys], dtype=pl.String),
        pl.Series("text", [named.get(key) for key in keys], dtype=pl.String),
        pl.Series("is_numbered", [torch_range(named.get(key, "")).op_id is not None for key in keys], dtype=pl.Boolean),
    )
    run = pl.struct("source", "process_id", "path").rle_id()
    again = (pl.col("name") == pl.col("name").first()) & (pl.col("grid") == pl.col("grid").first())
    restarts = pl.when("is_numbered").then(0).otherwise(again.cum_sum().over("run"))
    is_timed = pl.col("duration_ns").is_not_null().all()
    return list(
        launches.with_columns(run.alias("run"))
        .filter(pl.col("path").is_not_null())
        .with_columns(restarts.alias("restart"))
        .join(by_launch, on="id", how="left", maintain_order="left")
        .join(counted, on="id", how="left", maintain_order="left")
        .group_by("run", "restart", maintain_order=True)
        .agg(
            pl.col("id"),
            pl.col("name", "nvtx_recorded", "did"),
            pl.col("source", "process_id", "device", "text").first(),
            pl.when(is_timed).then(pl.col("duration_ns").sum()).alias("duration_ns"),
            pl.when(is_timed).then((pl.col("duration_ns") * pl.col("weight")).sum()).alias("represented_ns"),
            pl.col("verdict", "n_represented").sort_by("duration_ns", descending=True, nulls_last=True).first(),
            pl.col("is_counted").fill_null(value=False).all(),
            pl.col("caveats").list.contains(UNEVEN).fill_null(value=False).any().alias("is_uneven"),
            pl.when(pl.col("traffic_bytes.dram").is_not_null().all())
            .then(pl.col("traffic_bytes.dram").sum())
            .alias("dram_bytes"),
        )
        .iter_rows(named=True)
    )


def _call(
    number: int,
    group: Mapping[str, Any],
    named: Mapping[tuple[str, ...], str],
    places: Mapping[tuple[str, ...], LaunchSite],
    modules: _Modules,
    peaks: _Peaks,
) -> dict[str, Any]:
    path = tuple(group["nvtx_recorded"][0])
    found, text = places[path], named[path]
    named_operator = torch_range(text)
    flop_by_precision = _flop_by_precision(group["did"])
    dtype = element_type([name for name in flop_by_precision if name.startswith(TENSOR_PREFIX)], group["name"])
    operation = recorded_operator(text, dtype=dtype or _OF_ANY_TYPE)
    assert operation is not None  # noqa: S101 (named so)
    has_products = operation.matrix_flop > 0
    products = _of_products(flop_by_precision) if has_products else {}
    asked = _preferred_precision(operation, group["device"], peaks)
    module = found.module
    if not found.is_recomputed and found.gradient_of is not None:
        module = modules.get((group["source"], group["process_id"], found.gradient_of), module)
    counted = sum(products.values()) if has_products and group["is_counted"] else None
    call = {
        "call": number,
        "ids": group["id"],
        "device": group["device"],
        "operator": named_operator.name,
        "range": text,
        "shapes": named_operator.shapes,
        "module": module,
        "is_backward": found.is_backward,
        "is_recomputed": found.is_recomputed,
        "dtype": dtype,
        **{name: group[name] for name in ("duration_ns", "n_represented", "represented_ns", "is_uneven")},
        "verdict": group["verdict"],
        "asked_precision": asked,
        "ran_precision": max(products, key=products.__getitem__, default=None),
        "needed_flop": _needed(operation, counted, is_attention=_ATTENTION in named_operator.name),
        "counted_flop": counted,
        "compulsory_bytes": float(operation.bytes) if dtype is not None else None,
        "dram_bytes": group["dram_bytes"],
    }
    return call | {"roofline_ns": _roofline_ns(call, peaks)}


def _with_work_weight(call: dict[str, Any], sheet: _Peaks) -> dict[str, Any]:
    """Return a call with `work_weight`: the factor from its work and bytes to those of all calls that it represents.

    It is their number, unless launches of the same kernel and grid differ in time. These are products of different sizes, and only
    their times are known. They are assumed to run at the rate of the profiled call, so the factor is the ratio of times. The same
    holds if that many calls of this size would exceed the data sheet's peak, which no clock allows.
    """
    number, time_ns, whole_ns = call["n_represented"], call["duration_ns"], call["represented_ns"]
    if number is None or not time_ns or whole_ns is None:
        return call | {"work_weight": number}
    peak = sheet.get((call["device"], call["asked_precision"]))
    is_uneven = call["is_uneven"] or (peak is not None and number * call["needed_flop"] > peak * 1e-9 * whole_ns)
    is_uneven = is_uneven and number != 1
    return call | {"is_uneven": is_uneven, "work_weight": whole_ns / time_ns if is_uneven else number}


def _needed(operation: Operation, counted: float | None, *, is_attention: bool) -> float:
    """Return the FLOPs of an operator's products, without those that its gradient recomputes (flash attention's Q·Kᵀ).

    For attention, at most what was counted: ranges do not show what a mask leaves out.

    Source: Chowdhery et al., "PaLM", arXiv 2204.02311, appendix B: recomputation counts in hardware, not in model utilisation.
    """
    needed = float(operation.needed_matrix_flop)
    if is_attention and counted:
        return min(needed, counted * needed / operation.matrix_flop)
    return needed


def _flop_by_precision(done: list[list[Mapping[str, Any]] | None]) -> dict[str, float]:
    flop: dict[str, float] = {}
    for of_launch in done:
        for each in of_launch or ():
            flop[each["precision"]] = flop.get(each["precision"], 0.0) + each["flop"]
    return flop


def _of_products(flop_by_precision: Mapping[str, float]) -> dict[str, float]:
    """Return the counted work of matrix products: the tensor cores' work, or all work if they did none."""
    tensor = {name: flop for name, flop in flop_by_precision.items() if name.startswith(TENSOR_PREFIX)}
    return tensor or dict(flop_by_precision)


def peaks_by_device(
    ceilings: pl.DataFrame, first: CeilingSource = CeilingSource.COUNTERS
) -> dict[tuple[int, str], float]:
    """Return peaks per second by device and name: from the source `first`, or from the other source if `first` lacks them."""
    peaks: dict[tuple[int, str], float] = {}
    for source in sorted((CeilingSource.DATASHEET, CeilingSource.COUNTERS), key=lambda each: each is first):
        rows = ceilings.filter(pl.col("source") == source.value).select("device", "name", "per_s")
        peaks |= {(device, name): per_s for device, name, per_s in rows.iter_rows()}
    return peaks


def _preferred_precision(operation: Operation, device: int | None, peaks: _Peaks) -> str | None:
    """Return the preferred roof of the operator's products among those that the device has; None if there is none."""
    products = [each for each in operation.work if each.is_product]
    if not products or device is None:
        return None
    return next((name for name in products[0].precisions if (device, name) in peaks), None)


def _roofline_ns(call: Mapping[str, Any], peaks: _Peaks) -> float | None:
    """Return max(needed work / peak, compulsory bytes / DRAM bandwidth) in ns; None if one of the two is unknown."""
    bandwidth = peaks.get((call["device"], _DRAM))
    if call["compulsory_bytes"] is None or not bandwidth:
        return None
    times = [float(call["compulsory_bytes"]) / bandwidth]
    if call["needed_flop"]:
        peak = peaks.get((call["device"], call["asked_precision"]))
        if not peak:
            return None
        times.append(call["needed_flop"] / peak)
    return 1e9 * max(times)
