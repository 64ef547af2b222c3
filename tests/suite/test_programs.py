"""The programs compile, refuse a wrong call in plain words, and spill where they are meant to."""

from __future__ import annotations

import gc
import py_compile
import re
import shutil
import subprocess
import sys
import weakref
from collections import defaultdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import recorded
from cases import HERE, load
from jobs import Tools, build_command

from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.modules import is_debug_build

CUDA = sorted(HERE.glob("*.cu"))
SCRIPTS = ("products.py", "attention.py", "elementwise.py", "tuned.py", "decoding.py", "training_step.py")
KERNELS = ("triton_kernels.py", "tuned_kernels.py", "decoding_kernels.py")

SPILLING = defaultdict(set, {
    "contention.cu": {"spill_registers"},
    "balance.cu": {"mix_live", "march_held"},
    "sorting.cu": {"DeviceScanKernel"},
})  # fmt: skip
"""Kernels that spill registers, by program."""
LARGE = {
    "waiting.cu": {"march_registers"},
    "loads.cu": {"normalise_twice"},
    "balance.cu": {"march_held", "both_paths", "rare_alone"},
    "fusing.cu": {"multiply_tiles"},
    "tensor_paths.cu": {"multiply_bf16", "multiply_doubles"},
    "hopper.cu": {"multiply_from_shared"},
    "sorting.cu": {"cub"},
}
"""Kernels with more than 48 registers per thread, by program."""

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc on this machine")
    return tmp_path_factory.mktemp("suite")


@pytest.mark.long
@pytest.mark.parametrize("source", CUDA, ids=lambda path: path.stem)
def test_a_cuda_program_compiles_and_refuses_a_wrong_call(source: Path, build: Path) -> None:
    tools = Tools("ncu", "nvcc", sys.executable, build, "none", "sm_90")
    command = [*build_command(source.name, tools), "-Xptxas", "-v", "-Werror", "all-warnings"]
    compiled = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr
    if source.name != "unoptimised.cu":
        only_planted_spills_and_registers(source, compiled.stderr)
    words = ["id", "no_such_case", "--", "other", "nor_this"]
    called = subprocess.run([build / source.stem, *words], capture_output=True, text=True, check=False)
    assert called.returncode == 2
    assert called.stderr.startswith("error: one of ")
    assert "no_such_case was found" in called.stderr
    assert "nor_this was found" in called.stderr  # what is wrong with a case costs no other


def only_planted_spills_and_registers(source: Path, printed: str) -> None:
    spilling = re.findall(r"Function properties for (\w+)\n\s+\d+ bytes stack frame, [1-9]\d* bytes spill", printed)
    assert {part for name in spilling for part in SPILLING[source.name] if part in name} == SPILLING[source.name]
    assert all(any(part in name for part in SPILLING[source.name]) for name in spilling)
    # What 2048 threads spill fits L1 (256 KiB, less what shared memory takes) with room: the pipe to it is the limit, not L2.
    stacks = [int(n) for n in re.findall(r"spill_registers\w+\n\s+(\d+) bytes stack frame", printed)]
    assert all(2048 * n <= 192 * 1024 for n in stacks)
    # No kernel but these holds so many registers that occupancy suffers by accident: per_sm counts on it.
    used = re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", printed, re.DOTALL)
    large = {name for name, n in used if int(n) > 48}
    assert all(any(part in name for part in LARGE.get(source.name, ())) for name in large), large


@pytest.mark.long
def test_the_debug_build_fits_an_sm_as_often_as_its_case_counts_on(build: Path) -> None:
    tools = Tools("ncu", "nvcc", sys.executable, build, "none", "sm_90")
    command = [*build_command("unoptimised.cu", tools)[:-3], "-Xptxas", "-v", "-cubin", "-o", "/dev/null"]
    printed = subprocess.run([*command, "unoptimised.cu"], cwd=HERE, capture_output=True, text=True, check=True).stderr
    registers = re.findall(r"run_chainsI9Fp32Fused.*?Used (\d+) registers", printed, re.DOTALL)
    # 34 registers are given as 40; 65536 of an SM suffice for six blocks of 256 threads.
    allocated = [-(-int(n) // 8) * 8 for n in registers]
    (case,) = (case for case in load().cases if case.id == "fp32_chain_unoptimised")
    assert [65536 // (256 * n) for n in allocated] == [case.sizes["per_sm"]]


@pytest.mark.long
@pytest.mark.parametrize("program", ["arithmetic.cu", "unoptimised.cu"])
def test_the_planted_debug_build_is_one(program: str, build: Path) -> None:
    tools = Tools("ncu", "nvcc", sys.executable, build, "none", "sm_90")
    code = build / f"{program}.cubin"
    subprocess.run([*build_command(program, tools)[:-3], "-cubin", "-o", code, program], cwd=HERE, check=True)
    assert is_debug_build(Image(code.read_bytes())) == (program == "unoptimised.cu")


@pytest.mark.parametrize("name", [*SCRIPTS, *KERNELS, "recorded.py"])
def test_a_python_program_compiles(name: str, tmp_path: Path) -> None:
    py_compile.compile(str(HERE / name), cfile=str(tmp_path / "compiled"), doraise=True)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize(
    ("words", "message"),
    [([], "nothing was found"), (["id", "no_such"], "no_such was found"), (["id", "FUNCTION", "n=x"], "n was found")],
)
def test_a_python_program_refuses_a_wrong_call(name: str, words: list[str], message: str) -> None:
    function = re.findall(r"^def ([a-z]\w+)\(.*\) -> Step:", (HERE / name).read_text(encoding="utf-8"), re.MULTILINE)[
        -1
    ]
    words = [function if word == "FUNCTION" else word for word in words]
    done = subprocess.run([sys.executable, HERE / name, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_cases_are_separated_by_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    def failing(n: int) -> recorded.Step:
        raise RuntimeError(f"no memory for {n}")

    assert recorded.main({"failing": failing}, ["a", "failing", "n=1", "--", "b", "failing", "n=2"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: case a: RuntimeError: no memory for 1",
        "error: case b: RuntimeError: no memory for 2",
    ]


STUBS = {
    "cuda_runtime.h": """
        #pragma once
        #include <cstddef>
        #include <cstdio>
        enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
        enum { cudaDevAttrMultiProcessorCount };
        inline cudaError_t last = cudaSuccess;
        inline cudaError_t cudaGetLastError() { const cudaError_t was = last; last = cudaSuccess; return was; }
        inline const char* cudaGetErrorString(cudaError_t) { return "out of memory"; }
        template <typename T>
        cudaError_t cudaMalloc(T** memory, size_t n) {
            *memory = nullptr;
            return n > 1000 ? last = cudaErrorMemoryAllocation : cudaSuccess;
        }
        template <typename T>
        cudaError_t cudaMemset(T*, int, size_t) { return cudaSuccess; }
        inline cudaError_t cudaFree(const void*) { return cudaSuccess; }
        inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
        inline cudaError_t cudaGetDevice(int*) { return cudaSuccess; }
        inline cudaError_t cudaDeviceGetAttribute(int*, int, int) { return cudaSuccess; }
        template <typename Kernel>
        cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, Kernel, int, size_t) { return cudaSuccess; }
        """,
    "cuda_profiler_api.h": """
        inline cudaError_t cudaProfilerStart() { std::puts("start"); return cudaSuccess; }
        inline cudaError_t cudaProfilerStop() { std::puts("stop"); return cudaSuccess; }
        """,
    "nvtx3/nvToolsExt.h": """
        inline int nvtxRangePushA(const char* name) { std::puts(name); return 0; }
        inline int nvtxRangePop() { std::puts("pop"); return 0; }
        """,
    "program.cpp": """
        #include <cuda_runtime.h>
        #include "harness.cuh"
        static void sound(const Sizes&) { repeat([] {}); }
        static void large(const Sizes&) { Buffer<char> buffer(2000); }
        static void failing(const Sizes&) { record([] { last = cudaErrorMemoryAllocation; }); }
        int main(int argc, char** argv) {
            return run_cases(argc, argv, {{"sound", sound}, {"large", large}, {"failing", failing}});
        }
        """,
}
"""A CUDA of which nothing works but what tells who asked for it."""


def test_a_case_that_fails_spoils_no_later_one(tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler on this machine")
    for name, text in STUBS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    program = tmp_path / "program"
    command = ["c++", "-std=c++17", f"-I{tmp_path}", f"-I{HERE}", "-o", program, tmp_path / "program.cpp"]
    subprocess.run(command, check=True)
    words = ["a", "large", "--", "b", "failing", "--", "c", "sound"]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["start", "b", "pop", "stop", "start", "c", "pop", "stop"]
    assert [line for line in done.stderr.splitlines() if line.startswith("error")] == [
        "error: cudaMalloc(&pointer_, n * sizeof(T)) failed: out of memory",
        "error: cudaGetLastError() failed: out of memory",
    ]
    assert done.returncode == 1


class Operand:
    """What a step holds on the GPU, in a circle of references as graphs are."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.torch
def test_a_failing_step_leaves_no_window_open_and_no_memory_held(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    seen: list[str] = []
    operands: weakref.WeakSet[Operand] = weakref.WeakSet()
    window = {name: partial(seen.append, name) for name in ("start", "stop", "range_pop")}
    nothing = SimpleNamespace(**window, range_push=seen.append)
    free = lambda: seen.append(f"{len(operands)} held")  # noqa: E731
    cuda = SimpleNamespace(synchronize=int, empty_cache=free, profiler=nothing, nvtx=nothing)
    monkeypatch.setattr(torch, "cuda", cuda)

    def case(fails: int) -> recorded.Step:
        operand = Operand()
        operands.add(operand)
        calls = iter(range(4))

        def step() -> Operand:
            if next(calls) == fails:
                raise RuntimeError("no memory")
            return operand

        return step

    words = ["a", "case", "fails=0", "--", "b", "case", "fails=3", "--", "c", "case", "fails=9"]
    gc.disable()  # what is freed by chance does not count
    try:
        assert recorded.main({"case": case}, words) == 1
    finally:
        gc.enable()
    windows = [[], *(["start", name, "range_pop", "stop"] for name in "bc")]
    assert seen == [word for window in windows for word in (*window, "0 held")]


@pytest.mark.torch
def test_the_backward_pass_is_launched_by_the_thread_that_opened_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    nothing = SimpleNamespace(start=int, stop=int, range_push=str, range_pop=int)
    cuda = SimpleNamespace(synchronize=int, empty_cache=int, profiler=nothing, nvtx=nothing)
    monkeypatch.setattr(torch, "cuda", cuda)
    seen: list[bool] = []
    step = lambda: seen.append(torch._C._is_multithreading_enabled())  # noqa: E731
    assert recorded.main({"step": lambda: step}, ["backward", "step"]) == 0
    assert seen == [False] * 4  # three times unseen, once recorded
    assert torch._C._is_multithreading_enabled()
