"""Tensor work known by construction: a kernel that ran one path, or all of them, on every architecture and under every name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import ncuroof
from tests.support.constructed import Accesses, Described
from tests.support.constructed_counters import counters, kernel
from tests.support.constructed_gpus import GPUS
from tests.support.constructed_tensor import PIPE_TENSOR
from tests.support.report_writer import Kernel, write_report

pytestmark = pytest.mark.long  # each test is an analysis of its own


OPERATIONS = 3 * 2**30
DURATION_NS = 100_000_000
CLOCK_FRAC = 0.75
"""The clock while the kernel ran, over the GPU's highest: peaks are those at the measured clock."""

# The counters after `sm__ops_path_tensor_`, without `_sparsity_off` and `_sparsity_on`: the type of the inputs is the precision. A
# name that lumps several types counts as the one that is the most usual.
PRECISION = {
    "src_fp16_bf16_tf32_dst_fp32": "tensor_fp16",
    "src_fp16_dst_fp16": "tensor_fp16",
    "src_fp16_dst_fp32": "tensor_fp16",
    "src_bf16_dst_fp32": "tensor_bf16",
    "src_tf32_dst_fp32": "tensor_tf32",
    "src_fp64": "tensor_fp64",
    "src_int8": "tensor_int8",
    "src_int4": "tensor_int4",
    "src_int1": "tensor_int1",
    "src_fp8": "tensor_fp8",
    "src_fp8_dst_fp16": "tensor_fp8",
    "src_fp8_dst_fp32": "tensor_fp8",
    "src_fp4_fp6_dst_fp16": "tensor_fp6",
    "src_fp4_fp6_dst_fp32": "tensor_fp6",
    "src_fp4_dst_fp32": "tensor_fp4",
    "op_hmma_src_fp16_dst_fp16": "tensor_fp16",
    "op_hmma_src_fp16_dst_fp32": "tensor_fp16",
    "op_hmma_src_bf16_dst_fp32": "tensor_bf16",
    "op_hmma_src_tf32_dst_fp32": "tensor_tf32",
    "op_hgmma_src_fp16": "tensor_fp16",
    "op_hgmma_src_bf16_dst_fp32": "tensor_bf16",
    "op_hgmma_src_tf32_dst_fp32": "tensor_tf32",
    "op_imma_src_int8": "tensor_int8",
    "op_igmma_src_int8": "tensor_int8",
    "op_bmma_src_int1": "tensor_int1",
    "op_bgmma_src_int1": "tensor_int1",
    "op_utchmma_src_fp16_dst_fp16": "tensor_fp16",
    "op_utchmma_src_fp16_dst_fp32": "tensor_fp16",
    "op_utchmma_src_bf16_dst_fp32": "tensor_bf16",
    "op_utchmma_src_tf32_dst_fp32": "tensor_tf32",
    "op_utcimma_src_int8": "tensor_int8",
    "op_utcqmma_src_fp4_fp6_fp8_dst_fp16": "tensor_fp8",
    "op_utcqmma_src_fp4_fp6_fp8_dst_fp32": "tensor_fp8",
    "op_utcqmma_src_fp4_fp6_dst_fp16": "tensor_fp6",
    "op_utcqmma_src_fp4_fp6_dst_fp32": "tensor_fp6",
    "op_utcqmma_src_fp8_dst_fp16": "tensor_fp8",
    "op_utcqmma_src_fp8_dst_fp32": "tensor_fp8",
    "op_utcomma_src_fp4_dst_fp32": "tensor_fp4",
    # Sums of others, and nothing else.
    "src_fp16": "tensor_fp16",
    "src_fp4_fp6_fp8_dst_fp16": "tensor_fp8",
    "src_fp4_fp6_fp8_dst_fp32": "tensor_fp8",
}
# How many paths the chart of each architecture lists, sums left out: 8.x has six types with and without sparsity, int1 and fp64, …
N_PATHS = {
    "v100-sxm2": 2,
    "t4": 5,
    "a100-sxm-80gb": 2 * 6 + 2,
    "rtx-3090": 2 * 6 + 2,
    "jetson-agx-orin": 2 * 6 + 2,
    "rtx-4090": 2 * 7 + 2,
    "h200-sxm": 2 * (4 + 3 + 2 + 1) + 3,
    "b200": 2 * (4 + 1 + 4 + 1 + 2 + 1) + 1,
    "b300": 2 * (4 + 1 + 4 + 4 + 1) + 1,
    "jetson-agx-thor": 2 * (4 + 1 + 4 + 1 + 2 + 1) + 1,
    "rtx-5090": 2 * (4 + 1 + 5) + 1,
    "gb10": 2 * (4 + 1 + 5) + 1,
}
PATHS_BY_GPU = {gpu.id: [name for name in gpu.tensor_operations if name != PIPE_TENSOR] for gpu in GPUS.values()}
GPUS_WITH_SUMS = [gpu.id for gpu in GPUS.values() if gpu.tensor_sums]
Work = dict[str, dict[str, Any]]
Analyse = Callable[..., list[dict[str, Any]]]


def precision(path: str) -> str:
    """Return the precision of a path; work with structured sparsity is told apart."""
    suffix = "_sparse" if path.endswith("_sparsity_on") else ""
    return PRECISION[path.removesuffix("_sparsity_on").removesuffix("_sparsity_off")] + suffix


def described(gpu: str, operations: dict[str, float]) -> Described:
    clock_hz = CLOCK_FRAC * GPUS[gpu].sm_clock_hz
    return Described("mma", DURATION_NS, gpu=gpu, sm_clock_hz=clock_hz, loads=Accesses(1000), tensor=operations)


def done(work: Work) -> dict[str, float]:
    """Return the tensor work by precision, where there is any."""
    return {name: entry["flop"] for name, entry in work.items() if name.startswith("tensor") and entry["flop"]}


@pytest.fixture(scope="module")
def analyse(tmp_path_factory: pytest.TempPathFactory) -> Analyse:
    """What the analysis says of the kernels of one report: their work, or another of their blocks."""

    def block(kernels: list[Kernel], name: str = "work") -> list[Work]:
        path = tmp_path_factory.mktemp("tensor") / "mma.ncu-rep"
        path.write_bytes(write_report(kernels))
        return [entry[name] for entry in ncuroof.read(path).analyse().to_dict()["kernels"]]

    return block


@pytest.fixture(scope="module")
def work_of_path(analyse: Analyse) -> Callable[[str, str], Work]:
    """The work of a kernel that ran a single path; one report for each GPU has them all."""

    @cache
    def by_path(gpu: str) -> dict[str, Work]:
        paths = PATHS_BY_GPU[gpu]
        return dict(zip(paths, analyse([kernel(described(gpu, {path: OPERATIONS})) for path in paths]), strict=True))

    return lambda gpu, path: by_path(gpu)[path]


def test_every_path_of_every_architecture_is_here() -> None:
    assert {gpu: len(paths) for gpu, paths in PATHS_BY_GPU.items()} == N_PATHS


@pytest.mark.parametrize(("gpu", "path"), [(gpu, path) for gpu, paths in PATHS_BY_GPU.items() for path in paths])
def test_a_path_counts_once_in_its_precision_and_under_its_own_roof(
    gpu: str, path: str, work_of_path: Callable[[str, str], Work]
) -> None:
    work = work_of_path(gpu, path)
    assert done(work) == pytest.approx({precision(path): OPERATIONS}, rel=1e-12)
    entry = work[precision(path)]
    assert entry["reliable"]
    # Operations of an SM per clock, times SMs, times the measured clock.
    part = GPUS[gpu]
    peak = part.tensor_operations[path] * part.n_sms * CLOCK_FRAC * part.sm_clock_hz
    assert entry["peak_flop_per_s"] == pytest.approx(peak, rel=1e-12)
    assert entry["frac"] == pytest.approx(OPERATIONS / (peak * DURATION_NS / 1e9), rel=1e-12)


@pytest.mark.parametrize("gpu", GPUS)
def test_paths_of_a_precision_add_up(gpu: str, analyse: Analyse) -> None:
    # 1, 2, 3, … times 2^20, so that a path which is counted twice or not at all cannot hide.
    operations = {path: number * 2.0**20 for number, path in enumerate(PATHS_BY_GPU[gpu], start=1)}
    expected: dict[str, float] = {}
    for path, n in operations.items():
        expected[precision(path)] = expected.get(precision(path), 0.0) + n
    (work,) = analyse([kernel(described(gpu, operations))])
    assert done(work) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("gpu", GPUS_WITH_SUMS)
def test_the_sums_that_stand_beside_their_parts_do_not_add_to_them(gpu: str, analyse: Analyse) -> None:
    part = GPUS[gpu]
    summed = {name: part.summed(name) for name in part.tensor_sums}
    kernels = [kernel(described(gpu, dict.fromkeys(parts, OPERATIONS))) for parts in summed.values()]
    for name, written, work in zip(summed, kernels, analyse(kernels), strict=True):
        parts = summed[name]
        assert written.metrics[f"sm__ops_path_tensor_{name}.sum"] == len(parts) * OPERATIONS
        assert sum(done(work).values()) == pytest.approx(len(parts) * OPERATIONS, rel=1e-12)


@pytest.mark.parametrize("gpu", GPUS_WITH_SUMS)
def test_a_sum_alone_is_the_work_and_has_the_dense_roof_of_its_fastest_part(gpu: str, analyse: Analyse) -> None:
    part = GPUS[gpu]
    for name in part.tensor_sums:
        stored = counters(described(gpu, dict.fromkeys(part.summed(name), OPERATIONS)))
        kept = {
            counter: value
            for counter, value in stored.items()
            if "ops_path_tensor" not in counter or counter.startswith(f"sm__ops_path_tensor_{name}.")
        }
        (work,) = analyse([Kernel("mma", kept)])
        dense = PRECISION[name]
        assert done(work) == pytest.approx({dense: len(part.summed(name)) * OPERATIONS}, rel=1e-12)
        fastest = max(part.tensor_operations[split] for split in part.summed(name) if not split.endswith("_on"))
        peak = fastest * part.n_sms * CLOCK_FRAC * part.sm_clock_hz
        assert work[dense]["peak_flop_per_s"] == pytest.approx(peak, rel=1e-12)


# `--metrics regex:sm__ops_path_tensor` collects what no chart lists: a sum over sparsity of every path that has it (`src_fp8`,
# `op_hmma_src_fp16_dst_fp32`), and a `_realtime` twin of every counter.
WITH_SPARSITY = [gpu for gpu, paths in PATHS_BY_GPU.items() if any(path.endswith("_sparsity_on") for path in paths)]


@pytest.mark.parametrize("gpu", WITH_SPARSITY)
def test_sums_over_sparsity_do_not_add_to_their_parts(gpu: str, analyse: Analyse) -> None:
    pairs = [path.removesuffix("_sparsity_on") for path in PATHS_BY_GPU[gpu] if path.endswith("_sparsity_on")]
    kernels = []
    for pair in pairs:
        ran = described(gpu, {f"{pair}_sparsity_off": OPERATIONS, f"{pair}_sparsity_on": 2 * OPERATIONS})
        metrics = counters(ran)
        for name in pairs:
            bare, off, on = (f"sm__ops_path_tensor_{name}{end}.sum" for end in ("", "_sparsity_off", "_sparsity_on"))
            for suffix in ("", ".per_cycle_elapsed"):
                metrics[bare + suffix] = metrics[off + suffix] + metrics[on + suffix]
            metrics[f"{bare}.peak_sustained"] = metrics[f"{on}.peak_sustained"]
        kernels.append(Kernel(pair, metrics))
    for pair, work in zip(pairs, analyse(kernels), strict=True):
        dense = PRECISION[pair]
        assert done(work) == pytest.approx({dense: OPERATIONS, f"{dense}_sparse": 2 * OPERATIONS}, rel=1e-12)


@pytest.mark.parametrize("gpu", GPUS)
def test_realtime_twins_count_nothing(gpu: str, analyse: Analyse) -> None:
    paths = PATHS_BY_GPU[gpu]
    kernels = []
    for path in paths:
        metrics = counters(described(gpu, {path: OPERATIONS}))
        tensor = [name for name in metrics if name.startswith("sm__ops_path_tensor_")]
        kernels.append(
            Kernel(path, metrics | {name.replace(".sum", "_realtime.sum"): metrics[name] for name in tensor})
        )
    for path, work in zip(paths, analyse(kernels), strict=True):
        assert done(work) == pytest.approx({precision(path): OPERATIONS}, rel=1e-12)


@pytest.mark.parametrize("gpu", GPUS)
def test_every_path_keeps_the_tensor_cores_busy(gpu: str, analyse: Analyse) -> None:
    part = GPUS[gpu]
    sm_clocks = part.n_sms * CLOCK_FRAC * part.sm_clock_hz * DURATION_NS / 1e9
    # A quarter of what the path can do in the time.
    operations = {path: 0.25 * rate * sm_clocks for path, rate in part.tensor_operations.items()}
    kernels = [kernel(described(gpu, {path: n})) for path, n in operations.items()]
    busy = [utilisation["tensor"] for utilisation in analyse(kernels, "utilisation")]
    assert dict(zip(operations, busy, strict=True)) == pytest.approx(dict.fromkeys(operations, 0.25))


def test_tensor_instructions_of_volta_are_512_operations_and_not_relied_on(analyse: Analyse) -> None:
    (work,) = analyse([kernel(described("v100-sxm2", {PIPE_TENSOR: OPERATIONS}))])
    assert done(work) == pytest.approx({"tensor_fp16": OPERATIONS}, rel=1e-12)
    assert not work["tensor_fp16"]["reliable"]


@pytest.mark.parametrize("gpu", GPUS)
def test_without_tensor_work_there_is_none(gpu: str, analyse: Analyse) -> None:
    (work,) = analyse([kernel(described(gpu, {}))])
    assert done(work) == {}
