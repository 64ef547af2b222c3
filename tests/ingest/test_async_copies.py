"""Asynchronous copies that are awaited at once: loops that are put together by hand, and programs of which it is known."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ncuroof.ingest import open_report
from ncuroof.ingest.code.async_copies import serial_copies
from ncuroof.ingest.code.elf import Image
from tests.support.elf_image import elf_with
from tests.support.machine_code import (
    ADD,
    BARRIER,
    COMMIT,
    COPY,
    EXIT,
    LOAD,
    P0,
    STORE,
    WAIT_FOR_COPIES,
    branch,
    instruction,
)
from tests.support.report_writer import Kernel, write_report

ADA = 89
FFMA, HMMA, DFMA, LDS, LDSM, IMAD = 0x223, 0x23C, 0x22B, 0x984, 0x83B, 0x224
BRX, CALL_NEARBY, HGMMA, ARRIVES, SYNCS = 0x949, 0x944, 0x7F0, 0x9B0, 0x5A7
NEVER = 0xF  # !PT


def wait(n_groups: int = 0, *, scoreboard: int = 0) -> int:
    """Return DEPBAR.LE SB0, N as nvdisasm shows it: 0x000080400000791a for one group, 0x0000900c0000791a for scoreboard 1."""
    return WAIT_FOR_COPIES | n_groups << 38 | scoreboard << 44


ISSUE = (COPY, COPY, COMMIT)
COMPUTE = (LDS, LDS, FFMA, FFMA)
SERIAL = (*ISSUE, wait(), BARRIER, *COMPUTE, BARRIER)
"""A loop that copies a tile, waits for it, and only then computes."""


def code(*body: int | bytes) -> bytes:
    return b"".join(each if isinstance(each, bytes) else instruction(each) for each in body)


def loop(*body: int | bytes) -> bytes:
    return code(*body, branch(-len(body) - 1, predicate=P0))


def serial(*body: int | bytes, target: int = ADA) -> int | None:
    return serial_copies(loop(*body) + code(STORE, EXIT), target)


def test_copies_that_are_awaited_before_anything_is_computed_count() -> None:
    assert serial(*SERIAL) == 2
    assert serial(ADD, IMAD, *ISSUE, ADD, IMAD, wait(), BARRIER, LDSM, HMMA, BARRIER, BARRIER) == 2
    assert serial(COPY, wait(), *COMPUTE) == 1  # each warp for itself


def test_copies_at_the_end_of_the_loop_count_as_well() -> None:
    assert serial_copies(code(*ISSUE) + loop(wait(), BARRIER, *COMPUTE, BARRIER, *ISSUE) + code(STORE, EXIT), ADA) == 2


def test_a_loop_inside_that_computes_changes_nothing() -> None:
    body = code(*ISSUE, wait(), BARRIER) + loop(*COMPUTE) + code(BARRIER)
    assert serial_copies(body + branch(-len(body) // 16 - 1, predicate=P0) + code(EXIT), ADA) == 2


def test_copies_that_a_branch_leaves_out_in_the_last_round_count() -> None:
    assert serial(branch(3, predicate=P0), *SERIAL) == 2


@pytest.mark.parametrize("n_groups", [1, 2, 7])
def test_copies_of_later_tiles_may_stay_on_their_way(n_groups: int) -> None:
    assert serial(*ISSUE, wait(n_groups), BARRIER, *COMPUTE, BARRIER) == 0


@pytest.mark.parametrize("work", [FFMA, DFMA, HMMA, LDS, LDSM])
def test_work_between_copies_and_wait_overlaps_with_them(work: int) -> None:
    assert serial(*ISSUE, work, wait(), BARRIER, *COMPUTE, BARRIER) == 0
    assert serial(COPY, work, COPY, wait(), BARRIER, *COMPUTE, BARRIER) == 0


def test_the_next_tile_is_on_its_way_where_it_is_issued_behind_the_wait() -> None:
    assert serial(wait(), BARRIER, *ISSUE, *COMPUTE) == 0


def test_work_on_one_of_two_paths_overlaps() -> None:
    assert serial(*ISSUE, branch(1, predicate=P0), FFMA, *SERIAL[3:]) == 0


def test_one_loop_that_overlaps_is_enough() -> None:
    overlapping = loop(wait(), BARRIER, *ISSUE, *COMPUTE)
    assert serial_copies(loop(*SERIAL) + overlapping + code(EXIT), ADA) == 0
    assert serial_copies(loop(*SERIAL) + loop(*SERIAL) + code(EXIT), ADA) == 4


def test_copies_outside_of_the_loops_that_compute_do_not_count() -> None:
    assert serial_copies(code(*ISSUE, wait(), BARRIER) + loop(*COMPUTE) + code(EXIT), ADA) == 0
    assert serial(*ISSUE, wait(), BARRIER, ADD) == 0
    assert serial_copies(code(*SERIAL, EXIT), ADA) == 0


def test_a_wait_for_different_instructions_is_not_a_wait_for_copies() -> None:
    assert serial(*ISSUE, wait(scoreboard=1), BARRIER, *COMPUTE, BARRIER) == 0


def test_instructions_that_are_never_executed_are_left_out() -> None:
    """nvcc puts `@!PT LDS RZ, [RZ]` before LDGSTS."""
    assert serial(COPY, instruction(LDS, predicate=NEVER), *SERIAL[1:]) == 2
    assert serial(instruction(COPY, predicate=NEVER), wait(), *COMPUTE) == 0
    assert serial(LOAD, *COMPUTE) == 0


def test_specialised_warps_that_copy_are_not_advised_to_overlap() -> None:
    # if (copies) { copy; wait; } else { compute; } __syncthreads();
    copying = code(*ISSUE, wait(), branch(len(COMPUTE)))
    assert (
        serial(branch(len(copying) // 16, predicate=P0), *ISSUE, wait(), branch(len(COMPUTE)), *COMPUTE, BARRIER)
        is None
    )
    # two loops, of which the first also scales what it has copied
    others = loop(BARRIER, *COMPUTE)
    assert serial_copies(loop(*SERIAL) + others + code(EXIT), ADA) is None


@pytest.mark.parametrize("opcode", [CALL_NEARBY, HGMMA, BRX, ARRIVES, SYNCS])
def test_unclear_code_gives_no_answer(opcode: int) -> None:
    assert serial(*SERIAL, opcode) is None


def test_unknown_machine_code_gives_no_answer() -> None:
    assert serial(*SERIAL, target=62) is None
    assert serial(*SERIAL, target=75) == 0  # these have no such copies
    assert serial_copies(b"", ADA) is None
    assert serial_copies(loop(*SERIAL) + code(EXIT)[:7], ADA) is None
    assert serial_copies(loop(*SERIAL) + code(ADD) * 70_000, ADA) is None  # longer than is searched


def test_the_kernels_of_a_report_have_the_answer(tmp_path: Path) -> None:
    image = bytearray(elf_with({".text.k": loop(*SERIAL) + code(EXIT)}))
    image[0x30] = ADA
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(
        write_report((Kernel("k", {"gpu__time_duration.sum": 1e6}, source=7),), sources=((7, bytes(image)),))
    )
    assert open_report(path).code["serial_copies"].to_list() == [2]


PROGRAM = """
constexpr int T = 32;
__device__ void copy(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(N) asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); __syncthreads()
#define WAIT_ALL asm volatile("cp.async.wait_all;" ::: "memory"); __syncthreads()
#define INDICES int x = threadIdx.x, y = threadIdx.y; float sum = 0
#define A(k) (a + (blockIdx.y * T + y) * n + (k) + x)
#define B(k) (b + ((k) + y) * n + blockIdx.x * T + x)
#define MULTIPLY(A, B) for (int i = 0; i < T; i++) sum += A[y][i] * B[i][x]
#define STORE c[(blockIdx.y * T + y) * n + blockIdx.x * T + x] = sum
#define KERNEL(name) extern "C" __global__ void name(const float* a, const float* b, float* c, int n)
KERNEL(awaited_at_once) {
  __shared__ float s[T][T], t[T][T]; INDICES;
  for (int k = 0; k < n; k += T) {
    copy(&s[y][x], A(k)); copy(&t[y][x], B(k)); COMMIT; WAIT(0);
    MULTIPLY(s, t);
    __syncthreads();
  }
  STORE;
}
KERNEL(issued_at_the_end) {
  __shared__ float s[T][T], t[T][T]; INDICES;
  copy(&s[y][x], A(0)); copy(&t[y][x], B(0)); COMMIT;
  for (int k = T; k <= n; k += T) {
    WAIT(0);
#pragma unroll 4
    MULTIPLY(s, t);
    __syncthreads();
    if (k < n) { copy(&s[y][x], A(k)); copy(&t[y][x], B(k)); }
    COMMIT;
  }
  STORE;
}
KERNEL(with_bounds) {
  __shared__ float s[T][T], t[T][T]; INDICES;
  for (int k = 0; k < n; k += T) {
    if (k + x < n) copy(&s[y][x], A(k)); else s[y][x] = 0;
    if (k + y < n) copy(&t[y][x], B(k)); else t[y][x] = 0;
    WAIT_ALL;
#pragma unroll 1
    MULTIPLY(s, t);
    __syncthreads();
  }
  STORE;
}
template <int S> __device__ void staged(const float* a, const float* b, float* c, int n) {
  __shared__ float s[S][T][T], t[S][T][T]; INDICES;
  for (int i = 0; i < S - 1; i++) { copy(&s[i][y][x], A(i * T)); copy(&t[i][y][x], B(i * T)); COMMIT; }
  for (int k = 0, i = 0; k < n; k += T, i++) {
    int next = k + (S - 1) * T, place = (i + S - 1) % S;
    if (next < n) { copy(&s[place][y][x], A(next)); copy(&t[place][y][x], B(next)); }
    COMMIT; WAIT(S - 1);
    MULTIPLY(s[i % S], t[i % S]);
    __syncthreads();
  }
  STORE;
}
KERNEL(two_stages) { staged<2>(a, b, c, n); }
KERNEL(three_stages) { staged<3>(a, b, c, n); }
KERNEL(issued_behind_the_wait) {
  __shared__ float s[2][T][T], t[2][T][T]; INDICES;
  copy(&s[0][y][x], A(0)); copy(&t[0][y][x], B(0)); COMMIT;
  for (int k = 0, i = 0; k < n; k += T, i ^= 1) {
    WAIT(0);
    if (k + T < n) { copy(&s[i ^ 1][y][x], A(k + T)); copy(&t[i ^ 1][y][x], B(k + T)); }
    COMMIT;
    MULTIPLY(s[i], t[i]);
  }
  STORE;
}
KERNEL(no_loop) {
  __shared__ float s[T][T], t[T][T]; INDICES;
  copy(&s[y][x], A(0)); copy(&t[y][x], B(0)); COMMIT; WAIT(0);
  for (int j = 0; j < n; j++) sum += s[y][j & 31] * t[j & 31][x];
  STORE;
}
KERNEL(half_of_the_warps_copy) {
  __shared__ float s[2][1024]; INDICES;
  for (int k = 0; k <= n; k++) {
    if (x >= 128) {
      for (int i = x - 128; i < 1024; i += 128) copy(&s[k & 1][i], a + k * 1024 + i);
      WAIT_GROUP;
    } else if (k > 0)
      for (int i = 0; i < 1024; i += 4) sum += s[~k & 1][i + (x & 3)] * s[~k & 1][x];
    __syncthreads();
  }
  STORE;
}
""".replace("WAIT_GROUP", 'asm volatile("cp.async.wait_all;" ::: "memory")')

SAID = {
    "awaited_at_once": 2,
    "issued_at_the_end": 2,
    "with_bounds": 2,
    "two_stages": 0,
    "three_stages": 0,
    "issued_behind_the_wait": 0,
    "no_loop": 0,
    "half_of_the_warps_copy": None,
}
"""How many copies each kernel of PROGRAM awaits at once, from its text."""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("architecture", [80, 86, 89, 90, 100, 120])
def test_code_compiled_by_nvcc_waits_as_the_program_does(tmp_path: Path, architecture: int) -> None:
    source, compiled = tmp_path / "copies.cu", tmp_path / "copies.cubin"
    source.write_text(PROGRAM)
    subprocess.run(
        ["nvcc", f"-arch=sm_{architecture}", "-cubin", "-o", compiled, source], check=True, capture_output=True
    )
    image = Image(compiled.read_bytes())
    assert {name: serial_copies(image.code(name.encode()), architecture) for name in SAID} == SAID
