"""Every report of the corpus is analysed; its numbers equal those of the charts that it carries, its verdicts most of NVIDIA's."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.comparison import compare, judge, parse_gate
from ncuroof.ingest import open_report
from ncuroof.metrics import load_catalogue, measure, selection
from ncuroof.metrics.measurements import scale
from ncuroof.present.schemas.analysis import AnalysisDocument
from ncuroof.whatif import Target, busy_times, project
from tests.support.document_types import wrong
from tests.support.embedded_charts import ChartValue, chart_values

pytestmark = [pytest.mark.corpus, pytest.mark.xdist_group("corpus")]  # one process reads it

_LEVEL_OF = {
    "dram__bytes": "dram",
    "lts__": "l2",
    "derived__lts__": "l2",
    "l1tex__m_xbar": "l2",
    "l1tex__": "l1",
    "derived__l1tex__": "l1",
}
_PRECISION_OF = {"_op_d": "fp64", "_op_f": "fp32", "_op_h": "fp16"}
_HALVED_MARK, _HALVED = "hfma_pred_on_x2", 2
"""Until 2024.3 the chart of half precision counted packed instructions once: half of what they do, roof and point alike."""
_TOLERANCE = 1e-6
_CYCLES = ("device__attribute_multiprocessor_count", "smsp__cycles_elapsed.avg.per_second", "gpu__time_duration.sum")
_COUNTERS = {
    *_CYCLES,
    "device__attribute_compute_capability_major",
    "inst_executed",
    "smsp__inst_executed.sum",
    "sm__inst_executed.avg.per_cycle_elapsed",
    "sm__inst_executed.avg.pct_of_peak_sustained_elapsed",
}


@pytest.fixture(scope="module")
def analyses(corpus: list[Path]) -> dict[Path, Analysis]:
    return {path: ncuroof.read(path).analyse() for path in corpus}


def test_every_report_gives_a_verdict_for_every_kernel(analyses: dict[Path, Analysis]) -> None:
    for path, analysis in analyses.items():
        document = analysis.to_dict()
        assert list(wrong(document, AnalysisDocument, "")) == [], path
        assert len(document["kernels"]) == analysis.summary.n_kernels > 0, path
        for kernel in document["kernels"]:
            assert kernel["verdict"] in ("memory", "compute", "balanced", "latency", "overhead", "unknown"), path
            assert kernel["path"], path


def test_unknown_verdicts_say_what_to_collect(analyses: dict[Path, Analysis]) -> None:
    for path, analysis in analyses.items():
        for kernel in analysis.to_dict()["kernels"]:
            if kernel["verdict"] == "unknown" and not kernel["failed"]:
                collect = [entry["collect"] for entry in kernel["missing"]]
                assert "--section SpeedOfLight" in collect, (path, kernel["name"])


def test_failed_launches_are_reported_and_kept_out_of_sums(analyses: dict[Path, Analysis]) -> None:
    failed = {path.name: analysis.summary.n_failed for path, analysis in analyses.items() if analysis.summary.n_failed}
    # The four launches of the corpus whose collected counters are all NaN, found with NVIDIA's module alone.
    assert sum(failed.values()) == 4
    for analysis in analyses.values():
        for kernel in analysis.to_dict()["kernels"]:
            if kernel["failed"]:
                assert kernel["verdict"] == "unknown"
                assert kernel["caveats"][0] == "failed"


def test_no_number_is_nan_or_infinite(analyses: dict[Path, Analysis]) -> None:
    for path, analysis in analyses.items():
        for frame in (analysis.kernels, analysis.points, analysis.findings, analysis.measurements.work):
            floats = frame.select([name for name, dtype in frame.schema.items() if str(dtype) == "Float64"])
            assert all(math.isfinite(value) for column in floats for value in column.drop_nulls()), path


def test_work_and_traffic_equal_the_embedded_charts(analyses: dict[Path, Analysis]) -> None:
    compared: Counter[tuple[str, str]] = Counter()
    for path, analysis in analyses.items():
        raw = open_report(path)  # every counter, as NVIDIA's module gives it
        rows = raw.counters.to_dicts() or [{} for _ in range(raw.workloads.height)]
        work = {(row["id"], row["precision"]): row for row in analysis.measurements.work.to_dicts()}
        bandwidth = {(row["id"], row["level"]): row for row in analysis.measurements.bandwidth.to_dicts()}
        for row, value in chart_values(path, rows):
            ours = _ours(value, row, work, bandwidth)
            if ours is not None:
                name, number = ours
                if (
                    number is None and name == "fp16"
                ):  # 2025.1 stores no additions and multiplications on compute capability 9.0
                    continue
                assert number is not None, (path, row, value)
                theirs = value.value * (_HALVED if any(_HALVED_MARK in each for each in value.counters) else 1)
                assert math.isclose(number, theirs, rel_tol=_TOLERANCE), (path, row, value, number)
                compared[name, value.kind] += 1
    print(f"values compared with embedded charts: {dict(compared)}")
    for name in ("fp64", "fp32", "fp16", "dram", "l2", "l1"):
        for kind in ("peak", "achieved"):
            assert compared[name, kind] > 0, (name, kind)


def test_no_kernel_lies_above_its_instruction_roof(analyses: dict[Path, Analysis]) -> None:
    n_points = 0
    for path, analysis in analyses.items():
        points = analysis.instruction_points
        n_points += points.height
        # Passes of one kernel differ by up to two percent; no report of the corpus needs an exception.
        assert points.filter(points["roof_frac"] > 1.02).height == 0, path
        shares = analysis.kernels["instructions.frac"].drop_nulls()
        assert shares.filter(shares > 1).is_empty(), path
    print(f"points on the instruction roofline: {n_points}")
    assert n_points > 0


def test_verdicts_agree_with_nvidias_speed_of_light_rule(analyses: dict[Path, Analysis]) -> None:
    n_judged, disagreements = 0, []
    for path, analysis in analyses.items():
        for kernel in analysis.to_dict()["kernels"]:
            theirs = kernel["vendor"]["verdict"]
            if theirs is None:
                continue
            n_judged += 1
            if not _agrees(kernel, theirs):
                disagreements.append((path.name, kernel["name"], theirs, kernel["verdict"]))
    assert n_judged > 500
    assert len(disagreements) <= 0.03 * n_judged, disagreements


def _agrees(kernel: dict[str, Any], theirs: str) -> bool:
    """Return whether the verdicts agree, or differ where ours knows more.

    A grid too small for NVIDIA is overhead where launching it takes longer. Two sides that are equally busy with the same memory
    instructions, or operands, are one.
    """
    if theirs == "balanced":
        same = {step["node"] for step in kernel["path"] if step["outcome"]} & {"memory_instructions", "operands"}
        return kernel["verdict"] == "balanced" or bool(same)
    return kernel["verdict"] == theirs or (theirs == "latency" and kernel["verdict"] == "overhead")


def test_every_kernel_takes_its_own_time_on_its_own_gpu(analyses: dict[Path, Analysis]) -> None:
    for path, analysis in analyses.items():
        busy = busy_times(analysis.kernels, analysis.roofline_tables.work)
        profiles = analysis.roofline_tables.profiles
        for device, profile in profiles.items():
            here = busy.filter(pl.col("device") == device)
            for target in (Target(), *([Target(profile)] if profile else [])):
                found = project(here, profiles, [target]).with_columns(here["duration_ns"].alias("recorded_ns"))
                known = found.filter(pl.col("reason").is_null())
                for key in ("duration_ns", "least_ns", "most_ns"):
                    assert ((known[key] / known["recorded_ns"] - 1).abs() < 1e-9).all(), (path, key)


def test_every_report_compared_with_itself_is_empty(analyses: dict[Path, Analysis]) -> None:
    for path, analysis in analyses.items():
        side = analysis.run()
        found = compare(side, side)
        assert found.is_empty, path
        if any(side.groups["duration_ns"].is_not_null()):
            assert all(result.has_passed for result in judge([parse_gate("time:+0%")], found)), path


def test_every_way_to_count_instructions_gives_the_same_number(corpus: list[Path]) -> None:
    compared: Counter[tuple[str, int]] = Counter()
    for path in corpus:
        for row in _in_base_units(path):
            capability = int(row.get("device__attribute_compute_capability_major") or 0)
            counted = row.get("smsp__inst_executed.sum")
            for name, number, tolerance in _other_counts(row):
                if counted and number is not None:
                    assert math.isclose(number, counted, rel_tol=tolerance), (path, name, number, counted)
                    compared[name, capability] += 1
    print(f"counts of instructions compared, by major compute capability: {dict(compared)}")
    assert {name for name, _ in compared} == {"source counters", "per cycle", "share of peak"}
    assert {capability for name, capability in compared if name == "share of peak"} == {7, 8, 9}


def _in_base_units(path: Path) -> list[dict[str, float | None]]:
    """Return the counters of a report's kernels in base units, without those that are not finite."""
    raw = open_report(path)
    found = [name for name in raw.counters.columns if name in _COUNTERS]
    scaled = {name: scale(raw.units.get(name, ""), metric=name) for name in found}
    rows = raw.counters.select(found).to_dicts()
    return [
        {name: value * scaled[name] for name, value in row.items() if value is not None and math.isfinite(value)}
        for row in rows
    ]


def _other_counts(row: dict[str, float | None]) -> list[tuple[str, float | None, float]]:
    """Return executed warp instructions by name of the counter, with the tolerance that two passes of one kernel need."""

    def product(*names: str) -> float | None:
        values = [row.get(name) for name in names]
        return None if None in values else math.prod(values)

    per_cycle = product("sm__inst_executed.avg.per_cycle_elapsed", *_CYCLES)
    share = product("sm__inst_executed.avg.pct_of_peak_sustained_elapsed", *_CYCLES)
    return [
        ("source counters", row.get("inst_executed"), 0.02),
        ("per cycle", None if per_cycle is None else per_cycle / 1e9, 1e-3),
        ("share of peak", None if share is None else 4 * share / 1e9, 1e-3),
    ]


def test_charts_evaluated_generically_say_what_the_catalogue_says(corpus: list[Path]) -> None:
    """On a chip that the catalogue does not list the charts alone count: on those that it does, they must agree with it."""
    catalogue = load_catalogue()
    no_chip = replace(catalogue, capabilities=(999,))
    compared: Counter[str] = Counter()
    for path in corpus[::3]:
        report = open_report(path, selection=selection())
        ours, charts = measure([report], catalogue), measure([report], no_chip)
        for table, key, *values in (
            ("work", "precision", "flop_per_s", "peak_flop_per_s"),
            ("bandwidth", "level", "bytes_per_s", "peak_bytes_per_s"),
        ):
            rows = {(row["id"], row[key]): row for row in getattr(ours, table).to_dicts()}
            for drawn in getattr(charts, table).filter("is_from_chart").to_dicts():
                row = rows[drawn["id"], drawn[key]]
                factor = _HALVED if _HALVED_MARK in drawn["definition"] else 1
                for value in values:
                    assert math.isclose(row[value], factor * drawn[value], rel_tol=_TOLERANCE), (path, row, drawn)
                    compared[drawn[key]] += 1
    print(f"values of the charts compared with the catalogue: {sum(compared.values())}, {dict(compared)}")
    assert set(compared) >= {"fp64", "fp32", "fp16", "tensor_bf16", "tensor_fp8_sparse", "dram", "l2", "l1"}


def _ours(
    value: ChartValue, row: int, work: dict[tuple[int, str], dict], bandwidth: dict[tuple[int, str], dict]
) -> tuple[str, float | None] | None:
    """Return our name and number for a chart's value; None for tensor charts, whose paths ours adds up: see the next test."""
    first = value.counters[0]
    for mark, precision in _PRECISION_OF.items():
        if f"thread_inst_executed{mark}" in first:
            entry = work.get((row, precision), {})
            return precision, entry.get("peak_flop_per_s" if value.kind == "peak" else "flop_per_s")
    for prefix, level in _LEVEL_OF.items():
        if first.startswith(prefix):
            entry = bandwidth.get((row, level), {})
            return level, entry.get("peak_bytes_per_s" if value.kind == "peak" else "bytes_per_s")
    return None
