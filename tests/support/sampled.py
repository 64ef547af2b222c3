"""Simulated series over a kernel's time, as PM sampling stores them: nothing of them is measured.

A kernel is described by parts of its time, each with the use of its units; `series` gives what ncu would have sampled of it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from ncuroof.ingest.raw_report import RAW_SAMPLES, RawReport
from tests.support.raw import raw_report
from tests.support.report_parts import Instances

CYCLES_PER_NS = 1.5
"""SM clock of the simulated kernels: 1.5 GHz."""

COUNTER_BY_UNIT = {
    "dram": "dramc__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue": "sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed",
    "tensor": "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
    "fp32": "sm__pipe_fma_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
    "alu": "sm__inst_executed_pipe_alu_realtime.avg.pct_of_peak_sustained_elapsed",
}
ACTIVE, LAUNCHED = "sm__cycles_active.avg", "sm__ctas_launched.sum"

_DRAM_BYTES_PER_S, _LANES = 3.3e12, 132 * 128.0
"""Peaks of the simulated GPU: DRAM, and FP32 lanes of all SMs."""

FIRST_NS = 1_726_456_889_119_118_624
"""Time of the first sample: nanoseconds since 1970, as ncu stores them."""


@dataclass(frozen=True)
class Part:
    """A part of a kernel's time.

    Attributes:
        n_samples: its length.
        use: shares of the units' peaks; 0 for those left out.
        sm_active: share of the SMs with work.
        n_blocks: blocks launched at its beginning.
    """

    n_samples: int
    use: Mapping[str, float] = field(default_factory=dict)
    sm_active: float = 1.0
    n_blocks: int = 0


@dataclass(frozen=True)
class Sampling:
    """How a simulated kernel is sampled.

    Attributes:
        interval_ns: time between two samples.
        n_idle: samples before the kernel, and after it.
        noise: standard deviation of a share.
        seed: of the noise.
        prefix: of the counters' names.
        first_ns: time of the first sample.
    """

    interval_ns: int = 2000
    n_idle: int = 10
    noise: float = 0.0
    seed: int = 0
    prefix: str = "pmsampling:"
    first_ns: int = FIRST_NS


PLAIN = Sampling()


def series(parts: Sequence[Part], sampling: Sampling = PLAIN) -> dict[str, tuple[list[int], list[float]]]:
    """Return times and values by counter."""
    rng = random.Random(sampling.seed)
    idle = [Part(1, sm_active=0.0)] * sampling.n_idle
    samples = [*idle, *(part for part in parts for _ in range(part.n_samples)), *idle]
    times = [sampling.first_ns + index * sampling.interval_ns for index in range(len(samples))]
    begins = {id(part): True for part in parts}

    def noisy(share: float) -> float:
        return max(0.0, share + rng.gauss(0, sampling.noise)) if share else 0.0

    cycles = CYCLES_PER_NS * sampling.interval_ns
    values = {
        counter: [100 * noisy(part.use.get(unit, 0.0)) for part in samples] for unit, counter in COUNTER_BY_UNIT.items()
    }
    values[ACTIVE] = [cycles * part.sm_active for part in samples]
    values[LAUNCHED] = [float(part.n_blocks) if begins.pop(id(part), False) else 0.0 for part in samples]
    return {f"{sampling.prefix}{counter}": (times, each) for counter, each in values.items()}


def metrics(recorded: Mapping[str, tuple[Sequence[int], Sequence[float]]]) -> dict[str, Instances]:
    """Return series as counters of a kernel for `report_writer`; their totals are their means."""
    return {
        counter: Instances(tuple(values), tuple(times), total=sum(values) / len(values))
        for counter, (times, values) in recorded.items()
    }


def duration_ns(parts: Sequence[Part], sampling: Sampling = PLAIN) -> float:
    """Return how long the kernel of these parts takes."""
    return float(sampling.interval_ns * sum(part.n_samples for part in parts))


def mean_use(parts: Sequence[Part], unit: str) -> float:
    """Return the use of a unit over the whole kernel."""
    total = sum(part.n_samples for part in parts)
    return sum(part.use.get(unit, 0.0) * part.n_samples for part in parts) / total


def sampled_report(parts: Sequence[Part], sampling: Sampling = PLAIN, without: Sequence[str] = ()) -> RawReport:
    """Return a report of a simulated kernel of these parts, whose counters are the means of its series.

    Args:
        parts: the kernel.
        sampling: how it is sampled.
        without: series to leave out.
    """
    elapsed = ".avg.pct_of_peak_sustained_elapsed"
    use = {unit: 100 * mean_use(parts, unit) for unit in COUNTER_BY_UNIT}
    raw = raw_report(
        {
            "gpu__time_duration.sum": duration_ns(parts, sampling),
            "smsp__cycles_elapsed.avg.per_second": 1e9 * CYCLES_PER_NS,
            f"gpu__dram_throughput{elapsed}": use["dram"],
            f"l1tex__throughput{elapsed}": use["l1"],
            f"lts__throughput{elapsed}": use["l2"],
            f"sm__issue_active{elapsed}": use["issue"],
            f"sm__pipe_tensor_cycles_active{elapsed}": use["tensor"],
            f"gpu__compute_memory_throughput{elapsed}": max(use["dram"], use["l1"], use["l2"]),
            f"sm__throughput{elapsed}": max(use["tensor"], use["issue"]),
            "dram__bytes.sum.per_second": use["dram"] * _DRAM_BYTES_PER_S / 100,
            "dram__bytes.sum.peak_sustained": 1280.0,
            "dram__cycles_elapsed.avg.per_second": _DRAM_BYTES_PER_S / 1280,
            "sm__cycles_elapsed.avg.per_second": 1e9 * CYCLES_PER_NS,
            f"sm__pipe_fma_cycles_active{elapsed}": use["fp32"],
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": use["fp32"] * _LANES / 100,
            "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed": 0.0,
            "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed": 0.0,
            "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": _LANES,
            "device__attribute_compute_capability_major": 9.0,
            "device__attribute_compute_capability_minor": 0.0,
            "launch__waves_per_multiprocessor": 8.0,
        },
        names=["simulated"],
    )
    rows = [(0, name, *each) for name, each in series(parts, sampling).items() if name not in without]
    return replace(raw, samples=pl.DataFrame(rows, schema=RAW_SAMPLES, orient="row"))
