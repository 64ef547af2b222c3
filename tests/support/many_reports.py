"""Writes many small reports with different contents, as in a fleet."""

from __future__ import annotations

from pathlib import Path

from tests.support.report_writer import METRICS_BY_CHIP, Kernel, Session, write_report

N_LAUNCHES = 3
FIRST_DAY_S = 1_700_000_000
"""2023-11-14, 22:13:20 UTC."""


def small_report(
    number: int = 0,
    *,
    chip: str = "GA100",
    gpu: str = "NVIDIA A100-SXM4-40GB",
    times_us: tuple[float, ...] = (100.0, 200.0, 300.0),
    created_s: int | None = None,
    **session: str,
) -> bytes:
    """Return a report with one launch per time in `times_us`, named k0, k1, …; its session begins `number` days after the first."""
    kernels = [
        Kernel(
            f"k{index}",
            {
                **METRICS_BY_CHIP[chip],
                "device__attribute_display_name": gpu,
                "gpu__time_duration.sum": 1e3 * microseconds,
                "smsp__cycles_elapsed.avg.per_second": 1.0e9,
                "dram__bytes.sum": 1e6,
            },
        )
        for index, microseconds in enumerate(times_us)
    ]
    created = FIRST_DAY_S + 86_400 * number if created_s is None else created_s
    return write_report(kernels, Session(creation_time_s=created, processes=((4242, "app"),), **session))


def write_many(folder: Path, n_reports: int) -> None:
    """Write reports of N_LAUNCHES launches each, no two with the same content."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n_reports):
        (folder / f"run{number:05}.ncu-rep").write_bytes(small_report(number))
