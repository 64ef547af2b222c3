"""Predict the best time of an operation on a machine, by compute, memory and network, and which of these bounds it.

A measured time is compared with the prediction: how far its rate is below the roof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from ncuroof.enums import MemoryLevel, Side
from ncuroof.errors import ArgumentError
from ncuroof.model.dtypes import is_unstated
from ncuroof.model.machines import Machine, machine_of
from ncuroof.model.operation import Operation
from ncuroof.roofline.bounds import LEFT_OF_RIDGE, RIGHT_OF_RIDGE

Bound = Literal["compute", "memory", "network"]

_NS_PER_S = 1e9

NEAR_FRAC = 0.8
NOTE_FRAC = 0.5
"""Limits of the grades, as shares of the roof: from 0.8 near it, from 0.5 some headroom, below much headroom (a choice)."""


def attainable_flop_per_s(
    intensity_flop_per_byte: float, peak_flop_per_s: float, bandwidth_bytes_per_s: float
) -> float:
    """Return the roofline min(peak, intensity × bandwidth), in FLOP/s: flop/byte × byte/s = flop/s.

    Source: Williams, Waterman, Patterson, CACM 52(4), 2009.
    """
    return min(peak_flop_per_s, intensity_flop_per_byte * bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Bounds on the time of one operation on one machine. None means unknown: the data sheet lacks a number.

    Attributes:
        operation: the operation.
        machine: the machine it runs on.
        precision: roof of the kind of work that takes longest; None without work.
        peak_flop_per_s: peak of that roof.
        ridge_flop_per_byte: that peak over the bandwidth of device memory.
        compute_ns: time of the longest kind of work, each kind at its peak, all overlapping.
        other_compute_ns: total time of the other kinds of work.
        dram_ns: device-memory traffic at its bandwidth.
        l2_ns: bytes read from L2 at its bandwidth; None if the model has no tiles.
        network_ns: bytes sent, at the link's bandwidth; None if nothing is sent, or without a link.
        bound: what takes longest; compute wins a tie.
        least_ns: lower bound: the longest of compute, memory and network time, if everything overlaps.
        most_ns: upper bound: the sum of all times, including other kinds of work, if nothing overlaps.
        attainable_flop_per_s: total work over `least_ns`.
    """

    operation: Operation
    machine: Machine
    precision: str | None
    peak_flop_per_s: float | None
    ridge_flop_per_byte: float | None
    compute_ns: float | None
    other_compute_ns: float | None
    dram_ns: float | None
    l2_ns: float | None
    network_ns: float | None
    bound: Bound | None
    least_ns: float | None
    most_ns: float | None
    attainable_flop_per_s: float | None

    @property
    def memory_ns(self) -> float | None:
        """The longer of device-memory and L2 time."""
        return _longest(self.dram_ns, self.l2_ns)

    @property
    def memory_level(self) -> str | None:
        """The memory level with the longer time: "dram" or "l2"."""
        if self.memory_ns is None:
            return None
        return MemoryLevel.DRAM.value if self.memory_ns == self.dram_ns else MemoryLevel.L2.value

    @property
    def peak_frac(self) -> float | None:
        """Share of `least_ns` that the longest kind of work takes; with a single kind of work, attainable rate over peak."""
        return self.compute_ns / self.least_ns if self.compute_ns and self.least_ns else None

    @property
    def compute_over_memory(self) -> float | None:
        """Compute time over memory time; None if either is unknown, or nothing moves."""
        return None if self.compute_ns is None or not self.memory_ns else self.compute_ns / self.memory_ns

    @property
    def side(self) -> Side | None:
        """Side of the ridge; near the ridge (0.5 to 1.5 times it), both sides matter."""
        ratio = self.compute_over_memory
        if ratio is None:
            return None
        return Side.MEMORY if ratio < LEFT_OF_RIDGE else Side.COMPUTE if ratio > RIGHT_OF_RIDGE else Side.NEAR_RIDGE


def predict(operation: Operation, machine: Machine | str, *, link_bytes_per_s: float | None = None) -> Prediction:
    """Return how fast `operation` can be on `machine` at best, and what bounds it.

    T_compute = max over kinds of work ( flop / (flop/s) ), T_memory = byte / (byte/s), T_network = byte / (byte/s).
    T_least = max of these; T_most = their sum, over all kinds of work.

    Args:
        operation: the operation, e.g. `gemm(4096, 4096, 4096)`.
        machine: a machine, or its name, e.g. "h100-sxm".
        link_bytes_per_s: bandwidth at which a device sends to others, for an operation that is sharded over devices.

    Raises:
        ArgumentError: `operation` is not an operation, or `machine` is neither a machine nor a name.
        UnknownNameError: no machine has that name, or several GPUs match it.

    Source: Williams, Waterman, Patterson, CACM 52(4), 2009; Wang et al., arXiv 2009.04598 (times of several pipes);
    Austin et al., How to Scale Your Model, part 1, 2025 (network, and the sum as the upper bound).
    """
    machine = machine_of(machine)
    if not isinstance(operation, Operation):
        found = type(operation).__name__
        raise ArgumentError(f"expected an operation, found {found}", hint="pass one, such as gemm(4096, 4096, 4096)")
    precision, peak, compute_ns, other_compute_ns = _compute(operation, machine)
    bandwidth = machine.bandwidth_bytes_per_s.get(MemoryLevel.DRAM.value)
    l2_bandwidth = machine.bandwidth_bytes_per_s.get(MemoryLevel.L2.value)
    dram_ns = None if bandwidth is None else operation.bytes / bandwidth * _NS_PER_S
    l2_ns = None
    if operation.l2_bytes is not None and l2_bandwidth is not None:
        l2_ns = operation.l2_bytes / l2_bandwidth * _NS_PER_S
    network_ns = None
    if operation.network_bytes and link_bytes_per_s is not None:
        network_ns = operation.network_bytes / link_bytes_per_s * _NS_PER_S
    wanted: list[tuple[Bound, float | None]] = [("compute", compute_ns), ("memory", _longest(dram_ns, l2_ns))]
    if operation.network_bytes:
        wanted.append(("network", network_ns))
    times = [(bound, time_ns) for bound, time_ns in wanted if time_ns is not None]
    is_known = len(times) == len(wanted) and dram_ns is not None
    bound, least_ns = max(times, key=lambda each: each[1]) if is_known else (None, None)
    return Prediction(
        operation=operation,
        machine=machine,
        precision=precision,
        peak_flop_per_s=peak,
        ridge_flop_per_byte=None if peak is None or bandwidth is None else peak / bandwidth,
        compute_ns=compute_ns,
        other_compute_ns=other_compute_ns,
        dram_ns=dram_ns,
        l2_ns=l2_ns,
        network_ns=network_ns,
        bound=bound,
        least_ns=least_ns,
        most_ns=sum(filter(None, (compute_ns, other_compute_ns, dram_ns, l2_ns, network_ns))) if is_known else None,
        attainable_flop_per_s=operation.flop / least_ns * _NS_PER_S if least_ns and operation.flop else None,
    )


def _compute(operation: Operation, machine: Machine) -> tuple[str | None, float | None, float | None, float | None]:
    """Return the roof that takes longest, its peak, its time, and the total time of the other roofs.

    Times are in ns: 0 without work, None if a roof is unknown.
    """
    if not operation.is_known:
        return None, None, None, None
    flop_by_roof: dict[str, float] = {}
    for work in operation.work:
        capability = getattr(machine, "compute_capability", None)
        has = (name for name in work.precisions if name in machine.peak_flop_per_s or is_unstated(name, capability))
        roof = next(has, None)
        if roof is None or roof not in machine.peak_flop_per_s:
            return work.precisions[0], None, None, None
        flop_by_roof[roof] = flop_by_roof.get(roof, 0.0) + work.flop
    if not flop_by_roof:
        return None, None, 0.0, 0.0
    time_by_roof = {roof: flop / machine.peak_flop_per_s[roof] for roof, flop in flop_by_roof.items()}
    slowest = max(time_by_roof, key=lambda roof: time_by_roof[roof])
    longest = time_by_roof.pop(slowest)
    return slowest, machine.peak_flop_per_s[slowest], longest * _NS_PER_S, sum(time_by_roof.values()) * _NS_PER_S


def _longest(*times_ns: float | None) -> float | None:
    return max((each for each in times_ns if each is not None), default=None)


def crosses_ridge(predictions: Sequence[Prediction]) -> bool:
    """Return whether one operation is compute-bound on some of the machines and not on others."""
    return len({each.bound == "compute" for each in predictions if each.bound is not None}) > 1


class Grade(str, Enum):
    """How close a measured rate is to its roof; `Distance.grade` has the limits."""

    ABOVE = "above"
    NEAR = "near"
    NOTE = "note"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Distance:
    """A measured rate against its roof.

    Attributes:
        limit_flop_per_s: roof at the operation's intensity.
        achieved_flop_per_s: measured rate.
        efficiency_frac: achieved over limit.
        gap_factor: limit over achieved; None if nothing was achieved.
        grade: near from 80 %, note from 50 %, else warn; above 100 %, the run did less work or moved fewer bytes than counted.
    """

    limit_flop_per_s: float
    achieved_flop_per_s: float
    efficiency_frac: float
    gap_factor: float | None
    grade: Grade


def distance(limit_flop_per_s: float, achieved_flop_per_s: float) -> Distance | None:
    """Return how far `achieved_flop_per_s` is below its limit; None if the limit is zero."""
    if not limit_flop_per_s:
        return None
    efficiency = achieved_flop_per_s / limit_flop_per_s
    gap = limit_flop_per_s / achieved_flop_per_s if achieved_flop_per_s else None
    return Distance(limit_flop_per_s, achieved_flop_per_s, efficiency, gap, _grade(efficiency))


def _grade(efficiency_frac: float) -> Grade:
    if efficiency_frac > 1:
        return Grade.ABOVE
    if efficiency_frac >= NEAR_FRAC:
        return Grade.NEAR
    return Grade.NOTE if efficiency_frac >= NOTE_FRAC else Grade.WARN
