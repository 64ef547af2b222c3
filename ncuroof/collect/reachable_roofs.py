"""Measure the rates that a GPU reaches: bandwidth with copies, sums and fills, arithmetic with matrix products of random data.

Zeros draw less power than random numbers and would let a GPU clock higher than in real work. A rate is the median of repeats of at
least 10 ms, its clock the median of readings during them; the spread shows whether changing clocks or other users of the GPU
interfered. The caller imports PyTorch. Roofs that no PyTorch operator reaches are measured by own kernels, compiled on the machine
with CUDA's runtime compiler.

Source: He, "Strangely, Matrix Multiplications on GPUs Run Faster When Given 'Predictable' Data!", 2024; McCalpin, STREAM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles
from typing import Any

from ncuroof.sidecars.calibration import Calibration, ReachedRoof

_BATCH_S = 0.01
"""Shortest measurement; launch overhead and timer resolution are negligible in it."""
_DRAM_SHARE = 0.1
_MOST_DRAM_BYTES = 4 << 30
_MATRIX = 8192
_LEAST_REPEATS = 5
_SMALL_MATRIX = 2048
"""Size for FP64 without tensor cores, which on most GPUs has 1/64 of the FP32 rate."""
_FP64_MATRIX = 4096
"""Size for FP64 tensor cores; on a B300 these are so slow that at the data sheet's rate this product takes 0.1 s."""

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


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement.

    Attributes:
        kind, name: of the roof, as in `ReachedRoof`.
        amount: bytes or flop of one call.
        call: does the work once.
        how: description of the work.
    """

    kind: str
    name: str
    amount: float
    call: Callable[[], object]
    how: str


Builder = Callable[[], Case]


def measure(
    torch: Any,
    *,
    device: str = "cuda",
    seconds: float = 0.5,
    matrix: int = _MATRIX,
    has_fp64_tensor_cores: bool = False,
) -> Calibration:
    """Return the roofs that the GPU reaches.

    Args:
        torch: the imported module.
        device: PyTorch's device.
        seconds: time to spend on each roof.
        matrix: rows and columns of the matrices; FP64's are at most 4096.
        has_fp64_tensor_cores: FP64 products run on tensor cores. Their roof is "tensor_fp64" then, else "fp64" with smaller
            matrices.
    """
    properties = torch.cuda.get_device_properties(device)
    with torch.cuda.device(device):  # streams, events and our own kernels use the current device
        builders = _builders(torch, device, matrix, has_fp64_tensor_cores)
        found = [(name, _attempt(torch, device, build, seconds)) for name, build in builders]
    return Calibration(
        gpu=properties.name,
        compute_capability=f"{properties.major}.{properties.minor}",
        sm_count=properties.multi_processor_count,
        torch_version=str(torch.__version__),
        cuda_version=torch.version.cuda,
        roofs=tuple(roof for _, roof in found if isinstance(roof, ReachedRoof)),
        not_measured=tuple((name, reason) for name, reason in found if isinstance(reason, str)),
    )


def _attempt(torch: Any, device: str, build: Builder, seconds: float) -> ReachedRoof | str:
    """Return the roof, or why it could not be measured: an unsupported data type, no compiler, no memory."""
    try:
        return _reached_roof(torch, device, build(), seconds)
    except (RuntimeError, AttributeError, TypeError, ValueError, ImportError, OSError) as error:
        return " ".join(str(error).split())[:200] or type(error).__name__


def _reached_roof(torch: Any, device: str, case: Case, seconds: float) -> ReachedRoof:
    for _ in range(3):
        case.call()
    n_calls = 1
    while (elapsed := _elapsed_s(torch, case.call, n_calls)) < _BATCH_S:
        n_calls *= max(2, int(_BATCH_S / max(elapsed, 1e-6)) + 1)
    n_repeats = max(_LEAST_REPEATS, int(seconds / elapsed))
    # a GPU at its power limit takes about 0.1 s to settle on a clock that it can hold
    for _ in range(n_repeats // 2):
        _elapsed_s(torch, case.call, n_calls)
    readings: list[float | None] = []

    def read_clock() -> None:
        readings.append(_sm_clock_hz(torch, device))

    rates = [n_calls * case.amount / _elapsed_s(torch, case.call, n_calls, read_clock) for _ in range(n_repeats)]
    middle, tenths = median(rates), quantiles(rates, n=10, method="inclusive")
    spread = (tenths[-1] - tenths[0]) / middle
    clocks = [each for each in readings if each is not None]
    clock = median(clocks) if clocks else None
    return ReachedRoof(case.kind, case.name, middle, spread, n_repeats, case.how, clock)


def _elapsed_s(
    torch: Any, call: Callable[[], object], n_calls: int, meanwhile: Callable[[], None] | None = None
) -> float:
    """Return how long `n_calls` calls take, in s. `meanwhile` is called while the GPU works on them."""
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    for _ in range(n_calls):
        call()
    after.record()
    if meanwhile is not None:
        meanwhile()
    after.synchronize()
    return float(before.elapsed_time(after)) * 1e-3


def _builders(torch: Any, device: str, matrix: int, has_fp64_tensor_cores: bool) -> Iterator[tuple[str, Builder]]:
    """Yield the name of each measurement and a function that sets it up, so that its buffers exist only while it runs."""
    for name in ("copy", "read", "write", "triad"):
        yield f"dram {name}", partial(_dram, torch, device, name)
    yield (
        "l2 read",
        lambda: Case(
            "bandwidth", "l2", *l2_read(torch, device), "reads of a buffer a quarter the size of L2, bypassing L1"
        ),
    )
    yield (
        "shared read",
        lambda: Case(
            "bandwidth", "shared", *shared_read(torch, device), "16-byte reads of shared memory without bank conflicts"
        ),
    )
    if has_fp64_tensor_cores:
        yield "tensor_fp64", partial(_product, torch, device, "tensor_fp64", min(matrix, _FP64_MATRIX))
    else:
        yield "fp64", partial(_product, torch, device, "fp64", min(matrix, _SMALL_MATRIX))
    for precision in ("fp32", "tensor_tf32", "tensor_bf16", "tensor_fp16", "tensor_fp8", "tensor_int8"):
        yield precision, partial(_product, torch, device, precision, matrix)


def _dram(torch: Any, device: str, name: str) -> Case:
    free_bytes, _ = torch.cuda.mem_get_info(device)
    n_numbers = int(min(_DRAM_SHARE * free_bytes, _MOST_DRAM_BYTES)) // 4
    a = torch.rand(n_numbers, device=device)
    n_bytes = 4.0 * n_numbers
    if name == "read":
        return Case("bandwidth", "dram", n_bytes, a.sum, f"sum of {n_bytes / 1e9:.3g} GB")
    if name == "write":
        return Case("bandwidth", "dram", n_bytes, lambda: a.fill_(1.5), f"fill of {n_bytes / 1e9:.3g} GB")
    b = torch.rand(n_numbers, device=device)
    if name == "copy":
        return Case("bandwidth", "dram", 2 * n_bytes, lambda: a.copy_(b), f"copy of {n_bytes / 1e9:.3g} GB")
    c = torch.rand(n_numbers, device=device)
    triad = f"triad a = b + s*c of {n_bytes / 1e9:.3g} GB each"
    return Case("bandwidth", "dram", 3 * n_bytes, lambda: torch.add(b, c, alpha=1.5, out=a), triad)


def _product(torch: Any, device: str, precision: str, matrix: int) -> Case:
    """Return a measurement of a matrix product."""
    flop, shape = 2.0 * matrix**3, (matrix, matrix)
    how = f"product of {matrix} × {matrix} random matrices"
    if precision == "tensor_int8":
        a, b = (torch.randint(-128, 128, shape, dtype=torch.int8, device=device) for _ in range(2))
        # Hopper's tensor cores need 8-bit operands contiguous along the inner dimension: row-major a, column-major b
        return Case("compute", precision, flop, lambda: torch._int_mm(a, b.t()), how)  # noqa: SLF001  no public name
    if precision == "tensor_fp8":
        a, b = (torch.randn(shape, device=device).to(torch.float8_e4m3fn) for _ in range(2))
        one = torch.ones((), device=device)
        options = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16, "use_fast_accum": True}
        how += ", fast accumulation"
        return Case("compute", precision, flop, lambda: torch._scaled_mm(a, b.t(), **options), how)  # noqa: SLF001  no public name
    fp64 = torch.float64
    dtypes = {"fp64": fp64, "tensor_fp64": fp64, "tensor_bf16": torch.bfloat16, "tensor_fp16": torch.float16}
    a, b = (torch.randn(shape, device=device, dtype=dtypes.get(precision, torch.float32)) for _ in range(2))
    out = torch.empty_like(a)

    def multiply() -> None:
        torch.backends.cuda.matmul.allow_tf32 = precision == "tensor_tf32"
        torch.mm(a, b, out=out)

    return Case("compute", precision, flop, multiply, how)


def _sm_clock_hz(torch: Any, device: str) -> float | None:
    """Return the current SM clock; None if PyTorch cannot read it."""
    nvml_error = getattr(getattr(torch.cuda, "pynvml", None), "NVMLError", RuntimeError)
    try:
        return 1e6 * float(torch.cuda.clock_rate(device))
    except (RuntimeError, ImportError, AttributeError, nvml_error):
        return None


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
