"""Data reuse in L2: whether a working set fits, the best hit rate, and the bandwidth that follows."""

from __future__ import annotations

from dataclasses import dataclass

from ncuroof.model.machines import Machine, machine_of
from ncuroof.words import MemoryLevel


@dataclass(frozen=True, slots=True)
class Residency:
    """How a working set fits into L2, and what its reuse gains at best.

    Attributes:
        working_set_bytes: size of the data that is reused.
        l2_bytes: capacity of L2; None if the data sheet does not state it.
        does_fit: whether the whole working set fits; None if the capacity is unknown.
        hit_frac: best hit rate of every use after the first: 1 if the working set fits; else, if it is swept, capacity over
            working set. Sweeps reach that only where part of the data is kept on purpose (an access policy window with that hit
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
