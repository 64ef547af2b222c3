"""A report whose code has a line table: line_tables/inlined.cu, compiled by nvcc 13.0 -arch=sm_90 -lineinfo."""

from __future__ import annotations

from pathlib import Path

from tests.support.report_writer import Instances, Kernel, write_report

_FOLDER = Path(__file__).parent / "line_tables"
COMPILED = (_FOLDER / "inlined.cubin").read_bytes()
SOURCES = tuple((f"/example/{name}", (_FOLDER / name).read_text()) for name in ("inlined.cu", "inlined.h"))
SCALE = "_Z5scalePfi"
LOADED_AT = 0x7F00_0000_0000

_STALL = "smsp__pcsamp_warps_issue_stalled_"


def by_address(values: dict[int, int]) -> Instances:
    """Return a counter with values per instruction, given by the instructions' offsets in the function."""
    return Instances(tuple(values.values()), correlation_ids=tuple(LOADED_AT + offset for offset in values))


def lined_report(*, duration_ns: float = 1e6, n_at_9: int = 600) -> bytes:
    """Return a report of a latency-bound kernel with 1000 samples: 600 in line 9 of inlined.h, where all but ten wait.

    The others are in line 4 of inlined.cu, where line 9 was inlined. Line 9 waits for the data that line 4 of inlined.h loads.

    Args:
        duration_ns: duration of the kernel.
        n_at_9: samples in line 9, in place of 600.
    """
    kernel = Kernel(
        SCALE,
        {
            "gpu__time_duration.sum": duration_ns,
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
            "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 6.0,
            "smsp__average_warp_latency_per_inst_issued.ratio": 10.0,
            "smsp__pcsamp_sample_count": by_address({0xB0: n_at_9, 0x90: 0, 0x10: 400}),
            f"{_STALL}long_scoreboard": by_address({0xB0: n_at_9 - 10, 0x10: 10}),
        },
        demangled="scale(float *, int)",
    )
    return write_report([kernel], sources=((1, COMPILED),), functions=((SCALE, LOADED_AT),), files=SOURCES)
