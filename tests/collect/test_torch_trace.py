"""Traces that users bring: written here as PyTorch's profiler exports them, and by PyTorch itself where it is installed."""

from __future__ import annotations

import gzip
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ncuroof.errors import CountsError
from ncuroof.sidecars.traces import torch_profiler as torch_trace
from ncuroof.sidecars.traces.read import read_trace
from tests.collect.test_temporal_breakdown import call, ran


def annotated(name: str, start: float, end: float, cat: str = "user_annotation") -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": end - start, "tid": 1}


LOADING = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
EVENTS = [
    annotated("ProfilerStep#3", 0, 50),
    annotated("ProfilerStep#4", 50, 100),
    annotated("ProfilerStep#4", 60, 95, "gpu_user_annotation"),
    annotated(LOADING, 0, 8),
    annotated(LOADING, 50, 62),
    annotated(LOADING, 60, 61, "gpu_user_annotation"),
    call(10, 14, 1),
    ran(15, 40, 1),
    call(63, 68, 2),
    ran(70, 95, 2),
]


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_trace_gives_kernel_counts_and_its_steps(tmp_path: Path, compress: Any) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(compress(json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}).encode()))
    counts = read_trace(path)
    assert [(each.name, each.n_launches, each.duration_ns) for each in counts.kernels] == [("gemm", 2, 50_000.0)]
    breakdown = counts.breakdown
    assert breakdown is not None
    assert breakdown.steps is not None
    assert (breakdown.steps.n_steps, breakdown.steps.duration_ns, breakdown.steps.batches_ns) == (2, None, 20_000.0)
    assert {part.name: part.duration_ns for part in breakdown.parts} == {"computation": 50e3, "host_wait": 30e3}


STEP = Path(__file__).parent / "traces/h100-training-step.json.gz"
"""Step 10 of examples/train_transformer.py, counted by the runner on an H100 with PyTorch 2.11 and CUDA 13.0; without flows
and arguments that nothing reads."""


def test_a_real_step_is_read_as_by_a_simple_reference() -> None:
    """321 launches of 88 kernels and shapes, 3762.296 µs; 11 launches until one of each instantiation of a template was there."""
    events = json.loads(gzip.decompress(STEP.read_bytes()))["traceEvents"]
    kernels = [event for event in events if event["cat"] == "kernel"]
    on_gpu = [event for event in events if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    kinds = {(each["name"], *each["args"]["grid"], *each["args"]["block"]) for each in kernels}
    duration_us = max(each["ts"] + each["dur"] for each in on_gpu) - min(each["ts"] for each in on_gpu)
    assert (len(kernels), len(kinds), round(sum(each["dur"] for each in kernels), 3)) == (321, 88, 3762.296)
    counts = read_trace(STEP)
    assert (counts.n_launches, len(counts.kernels)) == (321, 88)
    assert counts.duration_ns == pytest.approx(3762.296e3)
    in_order = sorted(on_gpu, key=lambda each: each["ts"])  # all on one stream
    n_after_kernels = sum(first["cat"] == second["cat"] == "kernel" for first, second in pairwise(in_order))
    assert {each["args"]["stream"] for each in on_gpu} == {7}
    assert (
        sum(each.n_launches for kernel in counts.kernels for each in kernel.predecessors or ())
        == n_after_kernels
        == 273
    )
    assert counts.breakdown is not None
    assert sum(part.duration_ns for part in counts.breakdown.parts) == pytest.approx(1e3 * duration_us, abs=10)
    (computation,) = [part for part in counts.breakdown.parts if part.name == "computation"]
    assert computation.duration_ns == pytest.approx(3762.296e3, abs=10)  # kernels of one stream do not overlap


def test_memsets_and_copies_that_end_gaps_are_not_kernels() -> None:
    """`Memset (Device)` became the function `Device)`."""
    breakdown = read_trace(STEP).breakdown
    assert breakdown is not None
    functions = {place.name for part in breakdown.parts for place in part.before}
    assert {"copy", "vectorized_elementwise_kernel"} <= functions
    assert all(re.fullmatch(r"\w+", name) for name in functions), functions


def test_without_steps_it_is_one_run(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [event for event in EVENTS if "Step" not in event["name"]]}), "utf-8")
    breakdown = read_trace(path).breakdown
    assert breakdown is not None
    assert breakdown.steps is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a trace of PyTorch's profiler"),
        (b"NVR\x00\xd7" + bytes(9999), "can't decode byte 0xd7 in position 4: invalid continuation byte$"),  # and no more
        (b"not JSON", "expected a trace of PyTorch's profiler, found a file that is not JSON"),
        (b"[1, 2]", "expected a trace of PyTorch's profiler, found a JSON list$"),
        (b"{}", "expected a trace of PyTorch's profiler, found an empty JSON object$"),
        (b'{"schema": 1, "b": 2}', "profiler, found a JSON object with 'schema', 'b'$"),
        (b'{"traceEvents": 3}', "not a list of events"),
        (b'{"traceEvents": [3]}', "not a list of events"),
        (b"\x1f\x8bnot gzip", "expected a trace of PyTorch's profiler"),
        (gzip.compress(b'{"traceEvents": []}', mtime=0)[:-9], "expected a trace of PyTorch's profiler"),
        (b'{"traceEvents": []}', "the trace contains no GPU kernels"),
        (b'{"traceEvents": [{"cat": "kernel", "name": "k", "ts": 0, "dur": -1, "args": {}}]}', "an event is malformed"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_a_trace_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "trace.json").write_bytes(content)
    with pytest.raises(CountsError, match=message):
        read_trace(tmp_path / "trace.json")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"ts": "a"}, "'ts': expected a number, found 'a'"),
        ({"dur": None}, "'dur': expected a number, found None"),
        ({"args": {"grid": [1, 1], "block": [1, 1, 1]}}, "expected three numbers for a grid or block, found 2"),
        ({"args": {"grid": [1, 1, 1]}}, "'block' is missing"),
        ({"args": {"grid": ["x", 1, 1]}}, "expected a number, found 'x'"),
        ({"dur": -1}, "found an implausible duration: -1000.0 ns from 0.0 ns on"),
    ],
)
def test_an_event_that_is_malformed_is_named_with_its_file(
    tmp_path: Path, broken: dict[str, Any], message: str
) -> None:
    event = {"cat": "kernel", "name": "k", "ts": 0, "dur": 1, "args": {"grid": [1, 1, 1], "block": [1, 1, 1]}}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [event, event | broken]}), encoding="utf-8")
    with pytest.raises(CountsError) as caught:
        read_trace(path)
    assert str(caught.value) == f"{path}: an event is malformed: kernel k: {message}"


def test_a_folder_is_not_a_trace(tmp_path: Path) -> None:
    with pytest.raises(CountsError, match=r"expected the file of a trace, found a directory$") as caught:
        read_trace(tmp_path)
    assert str(caught.value.hint).startswith("name the .json")


def test_a_trace_that_is_too_large_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_trace, "_MOST_BYTES", 2**20)
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(bytes(2**24)))
    with pytest.raises(CountsError, match="trace fewer steps"):
        read_trace(tmp_path / "trace.json.gz")


def test_a_missing_trace_is_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(CountsError, match="No such file"):
        read_trace(tmp_path / "trace.json")


@pytest.mark.torch
def test_pytorch_writes_the_events_that_are_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "trace.json"
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in torch.utils.data.DataLoader(torch.ones(2, 4)):
            profile.step()
    profile.export_chrome_trace(str(path))
    events = [(event.get("cat"), event["name"]) for event in json.loads(path.read_bytes())["traceEvents"]]
    assert ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__") in events
    with pytest.raises(CountsError, match="the trace contains no GPU kernels"):  # no kernels: there is no GPU here
        read_trace(path)


def test_products_of_several_sizes_share_a_kernel_and_a_grid_and_nothing_else_is_uneven() -> None:
    # Read off the trace: 13 launches of 6.2 to 48.2 µs, 5 of 16.8 to 56.0 µs, 8 of 6.7 to 14.3 µs; all others within 1.51 times.
    uneven = [each for each in read_trace(STEP).kernels if each.longest_ns > 1.8 * each.shortest_ns]
    assert sorted((each.n_launches, round(each.longest_ns / each.shortest_ns, 1)) for each in uneven) == [
        (5, 3.3),
        (8, 2.2),
        (13, 7.7),
    ]
    assert all(each.name.startswith("nvjet_") for each in uneven)
    assert all(each.duration_ns / each.n_launches > 1.3 * each.shortest_ns for each in uneven)
