"""Produces every kind of JSON document that ncuroof writes, by running it on reports of this project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from click.testing import CliRunner

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.cli.program import program
from ncuroof.comparison import compare, judge, parse_gate
from ncuroof.comparison.baseline import baseline_json
from ncuroof.comparison.history import history
from ncuroof.fleet import FLEET_FAILURES
from ncuroof.fleet.questions import across_gpus, by_time, changes, code_versions, factors, overview
from ncuroof.present.documents.comparison import comparison_document, history_document
from ncuroof.present.documents.fleet import fleet_document, sql_document
from ncuroof.present.documents.projection import projection_document
from ncuroof.present.explanations.explain import document_of_names
from ncuroof.reading import Reports
from ncuroof.sidecars.calibration import Calibration, ReachedRoof, calibration_json
from ncuroof.sidecars.counts import Counts, KernelCount, counts_json
from ncuroof.sidecars.predecessors import Predecessor
from ncuroof.sidecars.traces.idle_places import IdleShare
from ncuroof.sidecars.traces.temporal_breakdown import CountedSteps, Part, TemporalBreakdown
from ncuroof.whatif import busy_times, parse_target, project
from tests.comparison import runs
from tests.fleet.launches import fleet, launch
from tests.support import demo, sampled
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import kernel
from tests.support.lined import lined_report
from tests.support.raw import raw_report
from tests.support.report_writer import write_report
from tests.support.sampled import COUNTER_BY_UNIT, sampled_report

Document = dict[str, Any]

_CHASE = Path(__file__).parents[2] / "fixtures" / "h200" / "pointer_chase-to-divergent.full.ncu-repz"
"""A recording with a kernel that loads at addresses which it loads."""

MENDED = demo.REPORT.with_name("h200-training-step-mended.ncu-rep")
CALIBRATION = Calibration(
    gpu="NVIDIA H200",
    compute_capability="9.0",
    sm_count=132,
    torch_version="2.13.0",
    cuda_version="13.0",
    roofs=(ReachedRoof("bandwidth", "dram", 4.4e12, 0.01, 50, "sum of 4 GB", 1.98e9),),
    not_measured=(("tensor_int8", "no such kernel"),),
)
_BREAKDOWN = TemporalBreakdown(
    (
        Part("computation", 70_000.0),
        Part("host_wait", 30_000.0, 4, 9_000.0, (IdleShare("aten::mm", 30_000.0),), (IdleShare("gemm", 30_000.0),)),
    ),
    CountedSteps(3, 100_000.0, 5_000.0, 30_000.0),
)
_PHASES = (sampled.Part(60, {"dram": 0.9, "fp32": 0.1}), sampled.Part(60, {"dram": 0.1, "fp32": 0.9}))
_RECORDED = KernelCount("gemm_bf16", (10, 1, 1), (256, 1, 1), 3, 70_000.0)
_NOT_RECORDED = KernelCount("gelu", (10, 1, 1), (256, 1, 1), 3, 7_000.0)
_BEFORE = Predecessor(_NOT_RECORDED.name, _NOT_RECORDED.grid, _NOT_RECORDED.block, 1)
_COUNTS = Counts((replace(_RECORDED, predecessors=(_BEFORE,)), _NOT_RECORDED), "1-3", _BREAKDOWN)
_SWEEP = ("gemm", "1:1024", "4096", "4096", "--gpu", "h100-sxm", "--gpu", "a100-sxm-80gb")
_MEASURED = ("gemm", "4096", "4096", "4096", "--gpu", "h100-sxm", "--achieved-time", "300us")
_PRODUCT = ("Net (Net) [100, 64]", "aten::mm, seq = 3, op_id = 5, sizes = [[100, 64], [64, 200]]")


def documents(folder: Path) -> Mapping[str, list[Document]]:
    """Return documents by schema; the reports they are made from are written into `folder`."""
    run, mended = (ncuroof.read(path).analyse() for path in (demo.REPORT, MENDED))
    compared = ncuroof.compare(run, mended)
    by_line = ncuroof.compare(*(ncuroof.read(path).analyse() for path in (_lined(folder), _lined(folder, 1400))))
    code = [runs.launch("a", sha256=each * 64, n_instructions=n, is_whole=True) for each, n in (("1", 100), ("2", 200))]
    of_code = compare(*map(runs.run, code))
    counts = json.loads(counts_json(_COUNTS))
    found = [
        ncuroof.read(demo.REPORT).analyse([CALIBRATION]).to_dict(),
        run.select(count=2).to_dict(),
        ncuroof.read(_with_operators(folder)).analyse().to_dict(),
        ncuroof.read(_lined(folder)).analyse().to_dict(),
        ncuroof.read(_CHASE).analyse().to_dict(),
        Reports((raw_report({}),)).analyse().to_dict(),
        Reports((sampled_report(_PHASES, without=[f"pmsampling:{COUNTER_BY_UNIT['l2']}"]),)).analyse().to_dict(),
        comparison_document(compared, judge([parse_gate("time:+5%")], compared)),
        comparison_document(by_line),
        comparison_document(of_code),
        history_document(history([run.run(), mended.run(), run.run()])),
        json.loads(baseline_json(run.run())),
        _projection(run),
        _model(*_SWEEP),
        _model(*_MEASURED),
        json.loads(calibration_json(CALIBRATION)),
        counts,
        *_fleet(),
        document_of_names(),
    ]
    by_schema: dict[str, list[Document]] = {}
    for each in found:
        by_schema.setdefault(each["schema"], []).append(each)
    return by_schema


def _lined(folder: Path, n_at_9: int = 600) -> Path:
    """Write a report with source lines: one microsecond per sample, `n_at_9` samples in line 9 of inlined.h, 400 elsewhere."""
    path = folder / f"lined{n_at_9}.ncu-rep"
    path.write_bytes(lined_report(n_at_9=n_at_9, duration_ns=1e3 * (n_at_9 + 400)))
    return path


def _with_operators(folder: Path) -> Path:
    """Write a report of a GEMM within PyTorch's NVTX ranges, and the launch counts of a run that launched it three times."""
    described = Described(
        "gemm_bf16",
        20_000,
        grid=(10, 1, 1),
        nvtx=_PRODUCT,
        tensor={"op_hmma_src_bf16_dst_fp32_sparsity_off": 2 * 128 * 256 * 64},
        loads=Accesses(200, 16, bytes_per_thread=16),
        stores=Accesses(100, 16, bytes_per_thread=16),
        warp_instructions=1e6,
        dram_read_bytes=64_000,
        dram_write_bytes=40_000,
    )
    path = folder / "operators.ncu-rep"
    path.write_bytes(write_report([kernel(described)]))
    (folder / "operators.counts.json").write_bytes(counts_json(_COUNTS))
    return path


def _fleet() -> list[Document]:
    """Return the documents for a fleet in which work and GPU change, and one report could not be ingested."""
    work = {"work.flop": 1e9}
    rows = fleet(
        launch("a", 0, 100.0, recoverable_ns=40e3, labels={"commit": "x"}, code_sha256="a" * 64, **work),
        launch("b", 1, 150.0, labels={"commit": "y"}, code_sha256="b" * 64, **work),
        launch("c", 2, 70.0, gpu_name="Tesla T4", **work),
        launch("d", 3, 50.0, gpu_name="Tesla T4", **work),
        launch("e", 4, 500.0, gpu_name="Tesla T4", **{"work.flop": 9e9}),
    )
    failed = pl.DataFrame([dict.fromkeys(FLEET_FAILURES, "x")], schema=FLEET_FAILURES)
    changed = [changes(rows, name) for name in factors(rows)]
    answered = overview(rows), by_time(rows), across_gpus(rows), changed, code_versions(rows), failed
    answers = fleet_document("runs", *answered, top=10)
    return [answers, sql_document("SELECT error FROM failures", failed.select("error"))]


def _projection(run: Analysis) -> Document:
    busy = busy_times(run.kernels, run.roofline_tables.work)
    projection = project(busy, run.roofline_tables.profiles, [parse_target("b200")])
    return projection_document(busy, projection, sources=["run.ncu-rep"], changes=[])


def _model(*asked: str) -> Document:
    printed = CliRunner().invoke(program, ["model", *asked, "--format", "json"], catch_exceptions=False).stdout
    document: Document = json.loads(printed)
    return document
