"""Find what limits an operation at a given size: the critical batch, and data reuse in L2.

From the critical batch on, an operation is compute-bound. Whether a working set fits L2 gives the best hit rate, and the bandwidth
that follows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from ncuroof.enums import MemoryLevel
from ncuroof.model.dtypes import dtype_of
from ncuroof.model.machines import Machine, machine_of
from ncuroof.model.prediction import Prediction

MOST = 2**40
"""Largest size that is tried."""
_ROUNDING = 1e-9


def grows(predicted: Callable[[int], Prediction]) -> bool:
    """Return whether compute time over memory time never falls as a size doubles; otherwise there is no critical size.

    True if a roof is unknown.

    Args:
        predicted: returns the prediction for a size.
    """
    found = [predicted(1 << power).compute_over_memory for power in range(MOST.bit_length())]
    known = [each for each in found if each is not None]
    return all(after >= before * (1 - _ROUNDING) for before, after in itertools.pairwise(known))


def critical_size(predicted: Callable[[int], Prediction]) -> int | None:
    """Return the smallest size from which on the operation is compute-bound; None if it never is, or roofs are unknown.

    Args:
        predicted: returns the prediction for a size. Compute over memory time has to grow with the size (`grows`), as it does with
            the batch of a layer.
    """
    if not _is_compute_bound(predicted(MOST)):
        return None
    least = 0  # the largest size known not to be compute-bound
    size = 1
    while size < MOST and not _is_compute_bound(predicted(size)):
        least, size = size, 2 * size
    while size - least > 1:
        middle = (least + size) // 2
        if _is_compute_bound(predicted(middle)):
            size = middle
        else:
            least = middle
    return size


def critical_batch_of_large_layer(ridge_flop_per_byte: float, weight_dtype: str) -> float:
    """Return the batch, in tokens, above which a large linear layer is compute-bound: ridge · w / 2.

    flop/byte · byte/element ÷ 2 flop/(element·token) = tokens. Smaller layers need a larger batch: their activations move as well.

    Args:
        ridge_flop_per_byte: ridge of the machine in the precision of the product.
        weight_dtype: element type of the weights, of w bytes.

    Raises:
        UnknownNameError: no such element type.

    Source: Austin et al., How to Scale Your Model, part 1, 2025.
    """
    return ridge_flop_per_byte * dtype_of(weight_dtype).bytes / 2


def _is_compute_bound(prediction: Prediction) -> bool:
    return prediction.bound == "compute"


@dataclass(frozen=True, slots=True)
class Residency:
    """How a working set fits into L2, and what its reuse gains at best.

    Attributes:
        working_set_bytes: size of the data that is reused.
        l2_bytes: capacity of L2; None if the data sheet does not state it.
        does_fit: whether the whole working set fits; None if the capacity is unknown.
        hit_frac: best hit rate of every use after the first: 1 if the working set fits; else, if it is swept, capacity over
            working set. Sweeps reach that only if part of the data is kept on purpose (an access policy window with that hit
            ratio): least-recently-used replacement gets no hits. None for data that neither fits nor is swept.
        bandwidth_bytes_per_s: best bandwidth of uses after the first; None if unknown.
    """

    working_set_bytes: float
    l2_bytes: int | None
    does_fit: bool | None
    hit_frac: float | None
    bandwidth_bytes_per_s: float | None


def residency(working_set_bytes: float, machine: Machine | str, *, is_swept: bool = True) -> Residency:
    """Return how a working set fits into a machine's L2, and the best hit rate and bandwidth of its reuse.

    hit = min(1, capacity / working set). Uses after the first take the longer of byte / (L2's byte/s) and
    (1 − hit)·byte / (memory's byte/s), so bandwidth = min(L2's, memory's / (1 − hit)).

    This bound holds for data that is repeatedly swept in order. A tiled matrix product reuses its operands long before it has gone
    through all of them, so its hit rate depends on its tiles.

    A GPU's L2 can consist of two partitions that each keep a copy of what their SMs read (A100, H100). Data that all SMs read then
    fits only up to half the capacity.

    Args:
        working_set_bytes: size of the data that is reused.
        machine: a machine, or its name.
        is_swept: all of the data is read in order before any of it is read again.

    Raises:
        ArgumentError: `machine` is neither a machine nor a name.
        UnknownNameError: no machine has that name, or several GPUs match it.

    Source: NVIDIA A100 Tensor Core GPU Architecture whitepaper v1.0, 2020, L2 cache; CUDA C++ Programming Guide, L2 access
    management.
    """
    machine = machine_of(machine)
    capacity = machine.l2_bytes
    if not capacity or not working_set_bytes:
        return Residency(working_set_bytes, capacity, None, None, None)
    if working_set_bytes > capacity and not is_swept:
        return Residency(working_set_bytes, capacity, False, None, None)
    hit_frac = min(1.0, capacity / working_set_bytes)
    l2 = machine.bandwidth_bytes_per_s.get(MemoryLevel.L2.value)
    dram = machine.bandwidth_bytes_per_s.get(MemoryLevel.DRAM.value)
    bandwidth = l2
    if hit_frac < 1:
        bandwidth = None if l2 is None or dram is None else min(l2, dram / (1 - hit_frac))
    return Residency(working_set_bytes, capacity, hit_frac == 1, hit_frac, bandwidth)
