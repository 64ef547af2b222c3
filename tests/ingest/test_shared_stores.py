"""Shared memory that machine code fills and never reads: code that is put together by hand or compiled, and what is said of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import ncuroof
from ncuroof.ingest import open_report
from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.static_code import unread_shared_stores
from tests.support.elf_image import elf_with
from tests.support.machine_code import ADD, BARRIER, BRANCH, COMMIT, COPY, EXIT, LOAD, RETURN, STORE, instruction
from tests.support.report_writer import Kernel, write_report

AMPERE, HOPPER, BLACKWELL = 86, 90, 100
STS, STSM, LDS, LDSM, ATOMS, ATOMS_CAS = 0x388, 0x844, 0x984, 0x83B, 0x38C, 0x38D
GENERIC_LOAD, GENERIC_ATOM, GENERIC_CAS, GENERIC_FLOAT_ATOM = 0x980, 0x38A, 0x38B, 0x9A2
BULK_COPY, BULK_REDUCTION, TENSOR_STORE, TENSOR_REDUCTION, MBARRIER = 0x3BA, 0x3BB, 0x3B5, 0x3B6, 0x9B2
HGMMA, IGMMA, BGMMA, QGMMA = 0x7F0, 0x7F1, 0x7F2, 0x7F3
CALL_NEARBY, CALL_REGISTER, CALL_ABS, JUMP = 0x944, 0x344, 0x943, 0x94A
GENERIC_STORE, ATOMG, RED, SHFL, MEMBAR = 0x385, 0x3A8, 0x98E, 0xF89, 0x992

TILE = (LOAD, STS, STS, BARRIER, STORE)
"""A kernel that fills a tile, waits at a barrier and stores zeros."""

PROGRAM = """
#define ADDRESS(x) (unsigned)__cvta_generic_to_shared(x)
#define FILL tile[threadIdx.x] = p[threadIdx.x]; __syncthreads();
extern __shared__ int tile[];
__global__ void zeros(int* p) { FILL p[threadIdx.x] = 0; }
__global__ void other_lanes(int* p) { FILL p[threadIdx.x] = __shfl_xor_sync(~0u, p[threadIdx.x], 1); }
__global__ void counts_in_global_memory(int* p) { FILL atomicAdd(p, p[1]); p[2] = atomicCAS(p + 3, 1, 2); }
__global__ void no_tile(int* p) { p[threadIdx.x] = 3; }
__global__ void neighbours(int* p) { FILL p[threadIdx.x] = tile[threadIdx.x ^ 1]; }
__global__ void counts(int* p) { FILL atomicAdd(tile + p[1], p[2]); }
__global__ void takes_turns(int* p) { FILL p[0] = atomicCAS(tile + p[1], 1, 3); }
__global__ void either(int* p, int i) { FILL int* q = i ? tile : p; p[threadIdx.x] = q[i]; }
__global__ void counts_in_either(int* p, int i) { FILL int* q = i ? tile : p; p[0] = atomicAdd(q + i, 1); }
__device__ int (*function)(int*);
__global__ void passes_it_on(int* p) { FILL p[0] = function(tile); }
__global__ void matrix(int* p) {
  FILL int r; asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(ADDRESS(tile))); p[0] = r;
}
#if __CUDA_ARCH__ >= 800
__global__ void copies(int* p) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" :: "r"(ADDRESS(tile)), "l"(p)); p[1] = 0;
}
#endif
#if __CUDA_ARCH__ >= 900
__global__ void stores_in_bulk(int* p) {
  FILL asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;" :: "l"(p), "r"(ADDRESS(tile)) : "memory");
}
__global__ void reads_a_neighbour(int* p) {
  FILL unsigned a; asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(a) : "r"(ADDRESS(tile)));
  int v; asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(a)); p[0] = v;
}
#endif
"""

UNREAD, READ, UNKNOWN = 1, 0, None
SAID = {
    "zeros": UNREAD,
    "other_lanes": UNREAD,
    "counts_in_global_memory": UNREAD,
    "no_tile": READ,
    "neighbours": READ,
    "counts": READ,
    "takes_turns": READ,
    "either": UNKNOWN,
    "counts_in_either": UNKNOWN,
    "passes_it_on": UNKNOWN,
    "matrix": READ,
}
SAID_FROM_80 = {"copies": UNREAD}
SAID_OF_90 = {"stores_in_bulk": UNKNOWN, "reads_a_neighbour": UNKNOWN}
"""What each kernel of PROGRAM does with its tile, from its text."""


def unread(*opcodes: int, target: int = AMPERE) -> int | None:
    return unread_shared_stores(b"".join(map(instruction, opcodes)), target)


def test_stores_that_nothing_reads_count() -> None:
    assert unread(*TILE, EXIT) == 2
    assert unread(COPY, COMMIT, BARRIER, STORE, EXIT) == 1
    assert unread(STSM, BARRIER, STORE, EXIT, target=HOPPER) == 1


@pytest.mark.parametrize("opcode", [LDS, LDSM, ATOMS, ATOMS_CAS])
def test_a_store_that_is_read_once_counts_as_read(opcode: int) -> None:
    assert unread(*TILE, opcode, EXIT) == 0


def test_loads_that_are_never_executed_read_nothing() -> None:
    """nvcc puts `@!PT LDS RZ, [RZ]` before LDGSTS."""
    never, maybe = 0xF, 0x8  # !PT, !P0
    code = b"".join(map(instruction, (COPY, COMMIT, STORE)))
    assert unread_shared_stores(instruction(LDS, predicate=never) + code, HOPPER) == 1
    assert unread_shared_stores(instruction(LDS, predicate=maybe) + code, HOPPER) == 0
    assert unread_shared_stores(instruction(STS, predicate=never) + instruction(STORE), HOPPER) == 0


def test_a_kernel_without_shared_memory_has_no_unread_stores() -> None:
    assert unread(LOAD, ADD, STORE, EXIT) == 0


@pytest.mark.parametrize(
    "opcode",
    [
        *(GENERIC_LOAD, GENERIC_ATOM, GENERIC_CAS, GENERIC_FLOAT_ATOM),
        *(BULK_COPY, BULK_REDUCTION, TENSOR_STORE, TENSOR_REDUCTION, MBARRIER),
        *(HGMMA, IGMMA, BGMMA, QGMMA),
        *(CALL_REGISTER, CALL_ABS, JUMP),
        0x9DD,  # nobody knows this one
    ],
)
def test_an_instruction_that_may_read_it_leaves_the_answer_open(opcode: int) -> None:
    assert unread(*TILE, opcode, EXIT, target=HOPPER) is None
    assert unread(*TILE, opcode, LDS, EXIT, target=HOPPER) == 0


@pytest.mark.parametrize(
    "opcode", [GENERIC_STORE, ATOMG, RED, SHFL, MEMBAR, BRANCH, RETURN, CALL_NEARBY, 0x223, 0x23C, 0x308, 0xF60]
)
def test_unrelated_instructions_read_no_shared_memory(opcode: int) -> None:
    """Memory, warps, control flow, and FFMA, HMMA, MUFU and TEX."""
    assert unread(*TILE, opcode, EXIT) == 2


@pytest.mark.parametrize("target", [62, BLACKWELL, 120])
def test_unknown_machine_code_gives_no_answer(target: int) -> None:
    assert unread(*TILE, EXIT, target=target) is None


def test_truncated_code_gives_no_answer() -> None:
    code = b"".join(map(instruction, TILE))
    assert unread_shared_stores(code, AMPERE) == 2
    assert unread_shared_stores(code + instruction(LDS)[:7], AMPERE) is None
    assert unread_shared_stores(b"", AMPERE) is None


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("architecture", [75, 80, 86, 87, 89, 90])
def test_code_compiled_by_nvcc_reads_what_the_program_reads(tmp_path: Path, architecture: int) -> None:
    source, compiled = tmp_path / "tiles.cu", tmp_path / "tiles.cubin"
    source.write_text(PROGRAM)
    subprocess.run(
        ["nvcc", f"-arch=sm_{architecture}", "-cubin", "-o", compiled, source], check=True, capture_output=True
    )
    image = Image(compiled.read_bytes())
    said = SAID | (SAID_FROM_80 if architecture >= 80 else {}) | (SAID_OF_90 if architecture >= 90 else {})
    sections = {
        name: next(s for s in image.sections if s.name.startswith(f".text._Z{len(name)}{name}P".encode()))
        for name in said
    }
    found = {
        name: unread_shared_stores(image.code(section.name.removeprefix(b".text.")), architecture)
        for name, section in sections.items()
    }
    assert found == said


def judged(path: Path, *opcodes: int) -> dict[str, object]:
    """Return what is said of a kernel of compute capability 8.6 with this code."""
    image = bytearray(elf_with({".text.k": b"".join(map(instruction, opcodes))}))
    image[0x30] = AMPERE
    counters = {
        "gpu__time_duration.sum": 1e6,
        "launch__waves_per_multiprocessor": 0.4,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
    }
    path.write_bytes(write_report((Kernel("k", counters, source=7),), sources=((7, bytes(image)),)))
    (kernel,) = ncuroof.read(path).analyse().to_dict()["kernels"]
    return kernel


@pytest.mark.long
def test_a_computation_that_was_removed_comes_before_a_better_grid(tmp_path: Path) -> None:
    kernel = judged(tmp_path / "r.ncu-rep", *TILE, EXIT)
    assert kernel["access"]["unread_shared_stores"] == 2
    first, *others = kernel["findings"]
    assert (first["id"], first["severity"], first["gain_ns"]) == ("unread_shared_stores", "high", None)
    assert first["advice"].startswith("Compare the results with a reference before timing this kernel")
    # what may be wrong is not to be made faster
    assert not any(finding["is_most_worth"] for finding in others)


@pytest.mark.long
def test_a_tile_that_is_read_is_not_reported(tmp_path: Path) -> None:
    kernel = judged(tmp_path / "r.ncu-rep", *TILE, LDS, EXIT)
    assert kernel["access"]["unread_shared_stores"] == 0
    assert "unread_shared_stores" not in {finding["id"] for finding in kernel["findings"]}


def test_reports_without_code_give_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(write_report([Kernel("k", {"gpu__time_duration.sum": 1e6}, source=8)], sources=((8, b""),)))
    assert open_report(path).code["unread_shared_stores"].to_list() == [None]
