"""The JSON document is `ncuroof.analysis/1`: names, types, and null for what is not known."""

from __future__ import annotations

import json
from typing import Any

import pytest

import ncuroof
from ncuroof.enums import MemoryLevel, Precision, Verdict
from ncuroof.present import render
from ncuroof.present.documents.analysis import document as describe_all
from ncuroof.reading import Reports
from tests.support import demo
from tests.support.raw import raw_report

NUMBER = (int, float, type(None))
TEXT = (str, type(None))
SOURCE_KEYS = {
    "file", "sha256", "ncu_version", "driver_version", "cuda_version", "command_line", "clock_control", "cache_control",
    "replay_mode", "sections",
}  # fmt: skip
KERNEL_KEYS = {
    "id", "source", "device", "name", "short_name", "workload", "failed", "grid", "block", "stream", "context", "process",
    "nvtx", "duration_ns", "sm_clock_hz", "passes", "work", "bandwidth", "traffic_bytes", "points", "utilisation",
    "occupancy", "access", "stalls", "verdict", "limiter", "side", "confidence", "path", "caveats", "findings",
    "min_time_ns", "recoverable_ns", "missing", "vendor",
}  # fmt: skip
BLOCK_KEYS = {
    "traffic_bytes": {"dram", "dram_read", "dram_write", "l2", "l1", "shared"},
    "utilisation": {"dram", "l2", "l1", "sm", "memory", "compute", "issue", "tensor", "fp32"},
    "occupancy": {"achieved_frac", "theoretical_frac", "limiters", "waves"},
    "access": {
        "load_bytes_per_sector", "store_bytes_per_sector", "load_sectors_per_request", "l1_hit_frac", "l2_hit_frac",
        "bank_conflict_frac", "local_bytes",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return ncuroof.read(demo.REPORT).analyse().to_dict()


def test_top_level(document: dict[str, Any]) -> None:
    assert document["schema"] == "ncuroof.analysis/1"
    assert document["tool"] == {"name": "ncuroof", "version": ncuroof.__version__}
    assert set(document["sources"][0]) >= SOURCE_KEYS
    assert set(document["devices"][0]) >= {"name", "compute_capability", "sm_count", "profile"}
    assert set(document["summary"]) >= {"n_kernels", "n_failed", "duration_ns", "recoverable_ns", "by_verdict"}


def test_source_tells_how_the_report_was_made(document: dict[str, Any]) -> None:
    source = document["sources"][0]
    assert source["file"] == demo.REPORT.name
    assert source["ncu_version"] == "2025.3.1"
    assert "--set full" in source["command_line"]
    assert source["simulated"] is True
    assert document["devices"] == [
        {
            "name": "NVIDIA H200",
            "compute_capability": "9.0",
            "sm_count": 132,
            "dram_bytes_per_s": 4.8e12,
            "profile": "h200-sxm",
        }
    ]


def test_every_kernel_has_every_block(document: dict[str, Any]) -> None:
    assert [kernel["id"] for kernel in document["kernels"]] == list(range(len(demo.PLANTED)))
    for kernel in document["kernels"]:
        assert set(kernel) >= KERNEL_KEYS
        for block, keys in BLOCK_KEYS.items():
            assert set(kernel[block]) >= keys, block
        assert kernel["verdict"] in [verdict.value for verdict in Verdict]
        assert kernel["confidence"] in ("high", "medium", "low")
        assert kernel["side"] in ("memory", "near_ridge", "compute", None)
        assert isinstance(kernel["duration_ns"], NUMBER)
        assert isinstance(kernel["limiter"], TEXT)


def test_work_points_and_bandwidth_use_the_names_of_the_design(document: dict[str, Any]) -> None:
    precisions = {precision.value for precision in Precision}
    levels = {level.value for level in MemoryLevel}
    for kernel in document["kernels"]:
        for precision, work in kernel["work"].items():
            assert precision.removesuffix("_sparse") in precisions
            assert set(work) >= {"flop", "flop_per_s", "peak_flop_per_s", "frac", "definition", "reliable"}
        for level, bandwidth in kernel["bandwidth"].items():
            assert level in levels
            assert set(bandwidth) >= {"bytes_per_s", "peak_bytes_per_s", "frac", "definition"}
        for point in kernel["points"]:
            assert set(point) == {
                "level", "precision", "intensity_flop_per_byte", "flop_per_s", "roof_flop_per_s", "ridge_flop_per_byte",
                "roof_frac",
            }  # fmt: skip


def test_instructions_are_null_or_a_block(document: dict[str, Any]) -> None:
    blocks = [kernel["instructions"] for kernel in document["kernels"]]
    # Of the 17 kernels one failed to profile.
    assert [block is None for block in blocks].count(True) == 1
    for block in filter(None, blocks):
        assert set(block) == {"warp_executed", "inst_per_s", "peak_inst_per_s", "frac", "definition", "points"}
        for point in block["points"]:
            assert set(point) == {
                "level", "intensity_inst_per_transaction", "inst_per_s", "roof_inst_per_s", "ridge_inst_per_transaction",
                "roof_frac",
            }  # fmt: skip


def test_path_findings_and_missing_have_their_fields(document: dict[str, Any]) -> None:
    for kernel in document["kernels"]:
        for step in kernel["path"]:
            assert set(step) == {"node", "quantity", "value", "op", "threshold", "outcome", "margin_frac"}
        for finding in kernel["findings"]:
            assert set(finding) == {
                "id", "title", "severity", "advice", "evidence", "where", "gain_ns", "gain_basis", "expected_ns", "expected_low_ns",
                "expected_high_ns", "expected_basis", "is_most_worth", "waste"
            }  # fmt: skip
            assert "{" not in finding["advice"]
            for item in finding["evidence"]:
                assert set(item) == {"quantity", "value", "unit"}
        for entry in kernel["missing"]:
            assert set(entry) == {"quantity", "collect"}
        assert set(kernel["vendor"]) == {"verdict", "agreement", "why", "rules"}


def test_vendor_rules_stand_beside_ours(document: dict[str, Any]) -> None:
    rules = [rule for kernel in document["kernels"] for rule in kernel["vendor"]["rules"]]
    assert rules
    assert all(set(rule) >= {"id", "type", "message", "speedup_frac", "scope"} for rule in rules)


def test_what_is_not_known_is_null_and_json_holds_no_nan() -> None:
    empty = Reports((raw_report({}),)).analyse()
    text = render(empty, "json").decode()
    kernel = json.loads(text)["kernels"][0]
    assert "NaN" not in text
    assert kernel["duration_ns"] is None
    assert all(value is None for value in kernel["utilisation"].values())
    assert kernel["grid"] is None
    assert kernel["occupancy"]["limiters"] == []


@pytest.mark.long
def test_the_same_report_gives_the_same_bytes() -> None:
    first, second = (render(ncuroof.read(demo.REPORT).analyse(), "json") for _ in range(2))
    assert first == second


@pytest.mark.long
def test_choosing_kernels_keeps_their_entries() -> None:
    analysis = ncuroof.read(demo.REPORT).analyse()
    whole = describe_all(analysis)["kernels"]
    assert describe_all(analysis, ids=[5, 2])["kernels"] == [whole[number] | {"scaling": None} for number in (5, 2)]


def test_python_api_gives_polars_pandas_and_a_page(tmp_path: Any) -> None:
    analysis = ncuroof.read(demo.REPORT).analyse()
    assert analysis.kernels.height == len(demo.PLANTED)
    frame = analysis.to_pandas()
    assert list(frame.columns) == analysis.kernels.columns
    page = analysis.to_html(tmp_path / "page.html")
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
