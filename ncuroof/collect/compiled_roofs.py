"""Our own kernels for roofs that no PyTorch operator reaches, compiled on the machine with CUDA's runtime compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_L2_THREADS = 1024
_L2_BLOCKS_PER_SM = 64
_L2_STEP_BYTES = 4 * 16 * _L2_THREADS
_L2_STEPS = 64
"""Steps per block: 256 MiB per SM and launch take at least 2 ms, so that tens of µs for a launch from Python are negligible."""
_SHARED_THREADS = 256
_SHARED_BLOCKS_PER_SM = 16
_SHARED_LOADS = 8
_SHARED_ROUNDS = 1024
"""Rounds per block: 512 MiB per SM and launch, 2 ms at 128 bytes per cycle and 2 GHz."""

_SOURCE = r"""
// One step of a block is 64 KiB, four loads in flight a thread. A block walks the whole buffer in order and so comes back to a line
// only after more bytes than an L1 holds; the loads ask for no place in L1, either. They are weak, as those of most programs are:
// one of scope GPU, which ld.cg becomes, may have to go to the half of L2 that its line belongs to, the far one as often as not.
extern "C" __global__ void l2_read(const float4 *buffer, float *out, unsigned n_groups, unsigned n_steps) {
  unsigned group = blockIdx.x * 7919u % n_groups;
  float sum = 0.0f;
  for (unsigned step = 0; step < n_steps; ++step) {
    const float4 *start = buffer + group * 4096ull + threadIdx.x;
    float4 value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm volatile("ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(value[i].x), "=f"(value[i].y), "=f"(value[i].z), "=f"(value[i].w) : "l"(start + 1024 * i));
#pragma unroll
    for (int i = 0; i < 4; ++i) sum += value[i].x + value[i].y + value[i].z + value[i].w;
    group = group + 1 == n_groups ? 0 : group + 1;
  }
  if (sum == 12345.678f) out[0] = sum;
}

// The loads are volatile for the assembler, which takes others out of the loop: `asm volatile` binds the compiler before it alone.
extern "C" __global__ void shared_read(float *out, int n_rounds) {
  __shared__ float4 tile[512];
  for (int i = threadIdx.x; i < 512; i += blockDim.x) tile[i] = make_float4(i, i + 1, i + 2, i + 3);
  __syncthreads();
  float sum = 0.0f;
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile)) + 16 * threadIdx.x;
  for (int round = 0; round < n_rounds; ++round) {
    float4 value[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(value[i].x), "=f"(value[i].y), "=f"(value[i].z), "=f"(value[i].w)
                   : "r"(address + 4096 * (i & 1)));
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += value[i].x + value[i].y + value[i].z + value[i].w;
  }
  if (sum == 12345.678f) out[0] = sum;
}
"""


def l2_read(torch: Any, device: str) -> tuple[float, Callable[[], object]]:
    """Return the bytes of one call, and the call: every block reads a buffer of a quarter of L2 repeatedly, bypassing L1.

    Raises:
        RuntimeError: the kernel cannot be compiled.
    """
    properties = torch.cuda.get_device_properties(device)
    n_blocks = _L2_BLOCKS_PER_SM * properties.multi_processor_count
    n_groups = max(properties.L2_cache_size // 4 // _L2_STEP_BYTES, 1)
    buffer = torch.rand(n_groups * _L2_STEP_BYTES // 4, device=device)
    out = torch.empty(1, device=device)
    kernel = _compiled(torch, "l2_read")
    arguments = [buffer, out, n_groups, _L2_STEPS]
    n_bytes = float(_L2_STEP_BYTES * _L2_STEPS * n_blocks)
    return n_bytes, lambda: kernel((n_blocks, 1, 1), (_L2_THREADS, 1, 1), arguments)


def shared_read(torch: Any, device: str) -> tuple[float, Callable[[], object]]:
    """Return the bytes of one call, and the call: every thread reads 16 bytes of shared memory per load, without bank conflicts.

    Raises:
        RuntimeError: the kernel cannot be compiled.
    """
    properties = torch.cuda.get_device_properties(device)
    n_blocks = _SHARED_BLOCKS_PER_SM * properties.multi_processor_count
    out = torch.empty(1, device=device)
    kernel = _compiled(torch, "shared_read")
    n_bytes = 16.0 * _SHARED_LOADS * _SHARED_ROUNDS * _SHARED_THREADS * n_blocks
    return n_bytes, lambda: kernel((n_blocks, 1, 1), (_SHARED_THREADS, 1, 1), [out, _SHARED_ROUNDS])


def _compiled(torch: Any, name: str) -> Any:
    """Return a kernel of `_SOURCE`; PyTorch's runtime compiler (2.9 and later) has no public name."""
    return torch.cuda._compile_kernel(_SOURCE, name)  # noqa: SLF001
