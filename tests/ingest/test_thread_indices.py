from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ncuroof
from ncuroof.ingest import open_report
from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.static_code import BY_LANE, unread_in
from tests.support.elf_image import elf_with
from tests.support.machine_code import EXIT, LOAD, STORE, instruction
from tests.support.report_writer import Kernel, write_report

AMPERE = 86
S2R, S2UR = 0x919, 0x9C3
ATOMG, RED, CALL_ABS, CALL_NEARBY, CALL_REGISTER, ELECT = 0x9A8, 0x98E, 0x943, 0x944, 0x344, 0x82F
TID_X, TID_Y, TID_Z, CTAID_X, CTAID_Y, CTAID_Z, LANEID = 0x21, 0x22, 0x23, 0x25, 0x26, 0x27, 0

WAVES = "launch__waves_per_multiprocessor"
ALL = {f"launch__{what}_dim_{axis}" for what in ("block", "grid") for axis in "xyz"}

PROGRAM = """
#include <cstdio>
__device__ __noinline__ float scaled(float x) { return x * threadIdx.y + sqrtf(x); }
__global__ void calls(float* p) { p[threadIdx.x] = scaled(p[threadIdx.x]); }
__global__ void x_only(float* p, int n) {
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += 1024) p[i] = p[i] / 3.f * p[i + 1] / p[i + 2];
}
__global__ void most(float* p) { p[threadIdx.x + 32 * threadIdx.y] = 1; p[blockIdx.z * gridDim.y + blockIdx.y] = 2.f; }
__global__ void prints(float* p) { if (p[threadIdx.x] > 1) printf("x"); }
__global__ void by_lane(float* p) { int lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane)); p[lane] = 1; }
__global__ void takes_a_ticket(int* p, float* q) { q[atomicAdd(p, 1)] = 2; }
__global__ void counts(int* p) { atomicAdd(p, 1); }
__global__ void sums(float* p) { atomicAdd(p, p[threadIdx.x]); }
__global__ void locks(int* p, float* q) { q[atomicCAS(p, 1, threadIdx.x)] = 2; }
__global__ void locks_a_block(float* p) { __shared__ int s; if (p[0] > 1) s = 1; __syncthreads(); p[atomicCAS(&s, 1, 3)] = 2; }
__device__ float (*function)(float);
__global__ void calls_a_pointer(float* p) { p[threadIdx.x] = function(p[0]); }
__global__ void looks_at_the_clock(long long* p) { p[threadIdx.x] = clock64(); }
__global__ void same_everywhere(float* p) { p[0] = p[1] + p[2]; }
"""

READ = {
    "calls": "threads x y",
    "x_only": "threads x, blocks x",
    "most": "threads x y, blocks y z",
    "prints": None,
    "by_lane": None,
    "takes_a_ticket": None,
    "counts": None,
    "sums": None,
    "locks": None,
    "locks_a_block": None,
    "calls_a_pointer": None,
    "looks_at_the_clock": None,
    "same_everywhere": "",
}
"""What each kernel of PROGRAM reads, from its text; None where its threads can differ by more than indices."""


def read(register: int, opcode: int = S2R) -> bytes:
    """Return an instruction that reads a special register, whose number stands in bits 72 to 79."""
    return (int.from_bytes(instruction(opcode), "little") | register << 72).to_bytes(16, "little")


def extents(indices: str) -> set[str]:
    whats = {"threads": "block", "blocks": "grid"}
    parts = [part.split() for part in indices.split(",") if part]
    return {f"launch__{whats[what]}_dim_{axis}" for what, *axes in parts for axis in axes}


def test_indices_are_read_from_special_registers() -> None:
    code = read(TID_X) + instruction(LOAD) + read(CTAID_Y, S2UR) + instruction(STORE) + instruction(EXIT)
    assert unread_in(code, AMPERE) == ALL - extents("threads x, blocks y")
    everything = b"".join(map(read, (TID_X, TID_Y, TID_Z, CTAID_X, CTAID_Y, CTAID_Z)))
    assert unread_in(everything, AMPERE) == set()


@pytest.mark.parametrize("opcode", [ATOMG, RED, CALL_ABS, CALL_REGISTER, ELECT])
def test_threads_that_can_differ_by_something_else_are_not_judged(opcode: int) -> None:
    assert unread_in(read(TID_X) + instruction(opcode), AMPERE) is None
    assert unread_in(read(TID_X) + read(LANEID), AMPERE) is None
    assert unread_in(read(TID_X) + instruction(CALL_NEARBY), AMPERE) is not None


@pytest.mark.long
@pytest.mark.parametrize("opcode", [0x23C, 0x237, 0x23F, 0x27A, 0x83B, 0x989])  # HMMA, IMMA, DMMA, QMMA, LDSM, SHFL
def test_threads_of_a_warp_can_differ_by_their_lane(opcode: int, tmp_path: Path) -> None:
    code = read(TID_Y) + read(CTAID_X) + instruction(opcode)
    assert unread_in(code, AMPERE) == ALL - extents("threads y, blocks x") | {BY_LANE}

    def n_alike(block: tuple[int, int, int], register: int) -> tuple[float | None, float | None]:
        code = read(register) + read(CTAID_X) + instruction(opcode)
        kernel = judged(tmp_path / "r.ncu-rep", launch(block, (4, 1, 3)), code)
        return kernel["launch"]["n_alike_threads"], kernel["launch"]["n_alike_blocks"]

    assert n_alike((64, 8, 1), TID_X) == (8, 3)  # whole warps
    assert n_alike((16, 8, 1), TID_X) == (None, 3)  # two rows in a warp
    assert n_alike((64, 8, 1), TID_Y) == (None, 3)


def test_each_thread_has_its_own_clock() -> None:
    cs2r, srz, clock = 0x805, 0xFF, 0x50
    assert unread_in(read(TID_X) + read(srz, cs2r), AMPERE) == ALL - extents("threads x")
    assert unread_in(read(TID_X) + read(clock, cs2r), AMPERE) is None


def test_unknown_machine_code_gives_no_answer() -> None:
    assert unread_in(b"", AMPERE) is None
    assert unread_in(read(TID_X), 62) is None
    assert unread_in(read(TID_X) + instruction(EXIT)[:5], AMPERE) == ALL - extents("threads x")  # cut


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("architecture", [75, 80, 86, 89, 90, 100, 103, 110, 120, 121])
def test_code_compiled_by_nvcc_reads_what_the_program_reads(tmp_path: Path, architecture: int) -> None:
    source, compiled = tmp_path / "indices.cu", tmp_path / "indices.cubin"
    source.write_text(PROGRAM)
    subprocess.run(
        ["nvcc", f"-arch=sm_{architecture}", "-cubin", "-o", compiled, source], check=True, capture_output=True
    )
    image = Image(compiled.read_bytes())
    assert image.compute_capability == architecture
    names = {name: f"_Z{len(name)}{name}" for name in READ}
    functions = {
        name: next(s for s in image.sections if s.name.startswith(f".text.{names[name]}".encode())) for name in READ
    }
    found = {
        name: unread_in(image.code(section.name.removeprefix(b".text.")), architecture)
        for name, section in functions.items()
    }
    assert found == {name: None if indices is None else ALL - extents(indices) for name, indices in READ.items()}


def launch(block: tuple[int, int, int], grid: tuple[int, int, int]) -> dict[str, float]:
    """Return the counters of a launch of this shape whose LSU is the busiest unit, at 70 %, and which uses a tenth of DRAM."""
    shape = {"block": block, "grid": grid}
    return {
        "gpu__time_duration.sum": 1e6,
        WAVES: 20.0,
        **{f"launch__{what}_dim_{axis}": n for what in shape for axis, n in zip("xyz", shape[what], strict=True)},
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 70.0,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 10.0,
    }


def judged(path: Path, counters: dict[str, float], *code: bytes) -> dict[str, Any]:
    """Return what is said of a kernel of compute capability 8.6 with this code."""
    image = bytearray(elf_with({".text.k": b"".join(code)}))
    image[0x30] = AMPERE
    path.write_bytes(write_report((Kernel("k", counters, source=7),), sources=((7, bytes(image)),)))
    (kernel,) = ncuroof.read(path).analyse().to_dict()["kernels"]
    return kernel


@pytest.mark.long
def test_threads_and_blocks_that_do_the_same_are_counted(tmp_path: Path) -> None:
    code = read(TID_X) + read(CTAID_X) + instruction(EXIT)
    kernel = judged(tmp_path / "r.ncu-rep", launch((32, 8, 2), (100, 1, 3)), code)
    assert (kernel["launch"]["n_alike_threads"], kernel["launch"]["n_alike_blocks"]) == (8 * 2, 3)
    gains = {finding["id"]: finding["gain_ns"] for finding in kernel["findings"]}
    # whether 15 of 16 threads compute the same or leave their work undone, no counter tells; 2 of 3 blocks
    expected = {"alike_threads": None, "alike_blocks": pytest.approx(2e6 / 3 * 0.998)}
    assert gains == expected | {"unnamed_pipe": None}  # no pipe was counted
    assert kernel["findings"][0]["id"] == "alike_threads"
    # what may be wrong is not to be made faster: a line shows the first finding, and no action over the run counts the kernel
    assert not any(finding["is_most_worth"] for finding in kernel["findings"])
    assert "32 × 1, in the same grid" in kernel["findings"][0]["advice"]
    small = judged(tmp_path / "r.ncu-rep", launch((32, 8, 2), (10, 1, 3)) | {WAVES: 0.4}, code)
    gains = {finding["id"]: finding["gain_ns"] for finding in small["findings"]}
    # all run at once: what the blocks cost is what the busiest unit does for them, 70 % of the time at most
    assert (gains["alike_threads"], gains["alike_blocks"]) == (None, pytest.approx(2e6 / 3 * 0.998))


@pytest.mark.long
def test_threads_with_work_of_their_own_are_not_counted_as_alike(tmp_path: Path) -> None:
    code = read(TID_X) + read(CTAID_X) + instruction(EXIT)
    kernel = judged(tmp_path / "r.ncu-rep", launch((256, 1, 1), (100, 1, 1)), code)
    assert (kernel["launch"]["n_alike_threads"], kernel["launch"]["n_alike_blocks"]) == (1, 1)
    assert not {finding["id"] for finding in kernel["findings"]} & {"alike_threads", "alike_blocks"}
    unknown = judged(tmp_path / "r.ncu-rep", launch((32, 32, 1), (100, 1, 1)), code, instruction(ATOMG))
    assert (unknown["launch"]["n_alike_threads"], unknown["launch"]["n_alike_blocks"]) == (None, None)


def test_code_is_unknown_if_results_were_lost(tmp_path: Path) -> None:
    names = ("first", "second", "third")
    image = bytearray(elf_with({f".text.{name}": read(TID_X) + instruction(EXIT) for name in names}))
    image[0x30] = AMPERE
    kernels = [Kernel(name, launch((1, 1, 1), (1, 1, 1)), code=bytes(image)) for name in names]
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(write_report(kernels, sources=()))
    assert unread(path) == [sorted(ALL - extents("threads x"))] * 3
    path.write_bytes(write_report(kernels, sources=()).replace(b"\x32\x06second", b"\x32\x7fsecond"))
    assert unread(path) == [None, None]
    assert ncuroof.read(path).analyse().summary.n_kernels == 2


def unread(path: Path) -> list[list[str] | None]:
    return open_report(path).code["unread_indices"].to_list()


def test_every_report_says_as_much_as_its_code(tmp_path: Path) -> None:
    """Code that was left out, or belongs to another kernel, says nothing."""
    image = bytearray(elf_with({".text.k": read(TID_X) + instruction(EXIT)}))
    image[0x30] = AMPERE
    kernels = [
        Kernel(name, launch((1, 1, 1), (1, 1, 1)), source=source) for name, source in (("k", 7), ("other", 7), ("k", 8))
    ]
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(write_report(kernels, sources=((7, bytes(image)), (8, b""))))
    assert unread(path) == [sorted(ALL - extents("threads x")), None, None]
    path.write_bytes(
        write_report([Kernel("k", launch((1, 1, 1), (1, 1, 1)), code=bytes(image))], sources=())
    )  # old reports
    assert unread(path) == [sorted(ALL - extents("threads x"))]
    path.write_bytes(write_report(kernels, sources=((8, b""),)))
    assert unread(path) == [None, None, None]
    path.write_bytes(write_report(kernels, sources=((7, bytes(image[:90])),)))
    assert unread(path) == [None, None, None]
