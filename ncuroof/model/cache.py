"""What L2 does for data that is used again: does it fit, which hit rate follows at best, which bandwidth then applies."""

from __future__ import annotations

from dataclasses import dataclass

from ncuroof.model.machines import Machine, machine_of
from ncuroof.words import MemoryLevel


@dataclass(frozen=True, slots=True)
class Residency:
    """Data against L2.

    Attributes:
        working_set_bytes: what is used again.
        l2_bytes: capacity; None where the data sheet does not say.
        does_fit: whether all of it can stay.
        hit_frac: at best, of the second and every further use: 1 of what fits, else capacity over working set where it is swept.
            Data read in order and again from the start gets that much only where a part of it is kept on purpose (an access
            policy window with that hit ratio): evicting what was used longest ago, it gets none. None for what does not fit and
            is not swept.
        bandwidth_bytes_per_s: that further uses reach at best; None where the hits are not known.
    """

    working_set_bytes: float
    l2_bytes: int | None
    does_fit: bool | None
    hit_frac: float | None
    bandwidth_bytes_per_s: float | None


def residency(working_set_bytes: float, machine: Machine | str, *, is_swept: bool = True) -> Residency:
    """Return what a machine's L2 does for a working set.

    hit = min(1, capacity / working set); further uses take the longer of byte / L2's byte/s and (1 − hit)·byte / memory's
    byte/s, so bandwidth = min(L2's, memory's / (1 − hit)).

    That bounds data that is swept in order, again and again. A product made in tiles uses its operands again long before it has
    gone through all of them, and hits as often as its tiles let it.

    A GPU's L2 can be two partitions that each keep a copy of what their SMs read (A100, H100): data that all SMs read then
    fits up to half the capacity only.

    Args:
        working_set_bytes: what is used again.
        machine: its data sheet, or name.
        is_swept: all of it is read in order before any of it is read again.

    Raises:
        ArgumentError: `machine` is neither a machine nor a name.
        UnknownNameError: no machine is called so.

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
