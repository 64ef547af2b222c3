"""Every report of the corpus is analysed, and its numbers equal those of the charts that it carries."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

import ncuroof
from ncuroof.analysis import Analysis
from tests.support.embedded_charts import ChartValue, chart_values

pytestmark = pytest.mark.corpus

_LEVEL_OF = {
    "dram__bytes": "dram",
    "lts__": "l2",
    "derived__lts__": "l2",
    "l1tex__m_xbar": "l2",
    "l1tex__": "l1",
    "derived__l1tex__": "l1",
}
_PRECISION_OF = {"_op_d": "fp64", "_op_f": "fp32"}
_TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def analyses(corpus: list[Path]) -> dict[Path, Analysis]:
    return {path: ncuroof.read(path).analyse() for path in corpus}


def test_every_report_gives_a_verdict_for_every_kernel(analyses: dict[Path, Analysis]) -> None:
    for path, analysis in analyses.items():
        document = analysis.to_dict()
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
        raw = ncuroof.ingest.open_report(path)  # every counter, as NVIDIA's module gives it
        rows = raw.counters.to_dicts() or [{} for _ in range(raw.workloads.height)]
        work = {(row["id"], row["precision"]): row for row in analysis.measurements.work.to_dicts()}
        bandwidth = {(row["id"], row["level"]): row for row in analysis.measurements.bandwidth.to_dicts()}
        for row, value in chart_values(path, rows):
            ours = _ours(value, row, work, bandwidth)
            if ours is not None:
                name, number = ours
                assert number is not None, (path, row, value)
                assert math.isclose(number, value.value, rel_tol=_TOLERANCE), (path, row, value, number)
                compared[name, value.kind] += 1
    print(f"values compared with embedded charts: {dict(compared)}")
    for name in ("fp64", "fp32", "dram", "l2", "l1"):
        for kind in ("peak", "achieved"):
            assert compared[name, kind] > 0, (name, kind)


def _ours(
    value: ChartValue, row: int, work: dict[tuple[int, str], dict], bandwidth: dict[tuple[int, str], dict]
) -> tuple[str, float | None] | None:
    """Return our name and number for a chart's value; None for half and tensor charts, whose factors changed by version."""
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
