"""Roofs that no operator of PyTorch reaches, by kernels of our own, compiled on the machine by CUDA's runtime compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_THREADS = 256
_BLOCKS_PER_SM = 8
_L2_ROUNDS = 16
_SHARED_ROUNDS = 4096

_SOURCE = r"""
extern "C" __global__ void l2_read(const float4 *data, float *out, int n_vectors, int n_rounds) {
  float sum = 0.0f;
  for (int round = 0; round < n_rounds; ++round) {
    // each round begins elsewhere, so that what a block reads next is not what it read last
    int start = (blockIdx.x + round * 7) % gridDim.x * blockDim.x + threadIdx.x;
    for (int i = start; i < n_vectors; i += gridDim.x * blockDim.x) {
      float4 value;
      asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w) : "l"(data + i));
      sum += value.x + value.y + value.z + value.w;
    }
  }
  if (sum == 12345.678f) out[0] = sum;
}

extern "C" __global__ void shared_read(float *out, int n_rounds) {
  __shared__ float4 tile[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] = make_float4(i, i + 1, i + 2, i + 3);
  __syncthreads();
  float sum = 0.0f;
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile)) + 16 * threadIdx.x;
  for (int round = 0; round < n_rounds; ++round) {
    float4 value;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w) : "r"(address + 4096 * (round & 3)));
    sum += value.x + value.y + value.z + value.w;
  }
  if (sum == 12345.678f) out[0] = sum;
}
"""


def l2_read(torch: Any, device: str) -> tuple[float, Callable[[], object]]:
    """Return bytes of one call, and the call: every block reads a buffer of a quarter of L2 again and again, past L1.

    Raises:
        RuntimeError: there is no GPU, or the kernel cannot be compiled.
    """
    properties = _properties(torch, device)
    n_blocks = _BLOCKS_PER_SM * properties.multi_processor_count
    n_vectors = max(properties.L2_cache_size // 4 // 16, n_blocks * _THREADS)
    data = torch.rand(4 * n_vectors, device=device)
    out = torch.empty(1, device=device)
    kernel = _compiled(torch, "l2_read")
    arguments = [data, out, n_vectors, _L2_ROUNDS]
    return 16.0 * n_vectors * _L2_ROUNDS, lambda: kernel((n_blocks, 1, 1), (_THREADS, 1, 1), arguments)


def shared_read(torch: Any, device: str) -> tuple[float, Callable[[], object]]:
    """Return bytes of one call, and the call: every thread reads 16 bytes of shared memory, neighbours side by side.

    Raises:
        RuntimeError: there is no GPU, or the kernel cannot be compiled.
    """
    properties = _properties(torch, device)
    n_blocks = _BLOCKS_PER_SM * properties.multi_processor_count
    out = torch.empty(1, device=device)
    kernel = _compiled(torch, "shared_read")
    n_bytes = 16.0 * _THREADS * n_blocks * _SHARED_ROUNDS
    return n_bytes, lambda: kernel((n_blocks, 1, 1), (_THREADS, 1, 1), [out, _SHARED_ROUNDS])


def _compiled(torch: Any, name: str) -> Any:
    """Return a kernel of the source; PyTorch has no public name for its runtime compiler (2.9 and later)."""
    return torch.cuda._compile_kernel(_SOURCE, name)  # noqa: SLF001


def _properties(torch: Any, device: str) -> Any:
    if device == "cpu":
        raise RuntimeError("a GPU was wanted, found the CPU")
    return torch.cuda.get_device_properties(device)
