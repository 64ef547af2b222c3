"""The reports that the benchmarks read: the committed one, and generated ones with any number of kernels."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

from ncuroof.ingest.framing import walk
from ncuroof.ingest.report_files import report_content
from tests.support.constructed_counters import kernel
from tests.support.demo import PLANTED, REPORT
from tests.support.report_writer import Instances, Kernel, Metric, Session, write_report

__all__ = ["REPORT", "write_full_set", "write_recorded"]

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"

_RECORDED = (
    "fp32_chain.quick",
    "gemm_bf16_8192.roofline",
    "spills-to-atomics_spread.full",
    "train_transformer.roofline",
)
"""Recordings on an H200 in `fixtures/`: 1, 1, 18 and 321 launches."""

_N_COUNTERS, _N_WITH_INSTANCES, _N_INSTANCES = 600, 80, 20
"""A recorded `--set full` has about 1100 counters per kernel, about 80 of them with 1600 instance values in all. The constructed
kernels have the 424 counters that ncuroof may need; these are the others, which every reader has to skip."""

_LENGTH_PREFIX_BYTES = 4


def write_recorded(folder: Path) -> list[Path]:
    """Decompress recordings, which older versions of ncu read only so, into a folder, and return their paths."""
    paths = []
    for name in _RECORDED:
        content, _ = report_content(FIXTURES / "h200" / f"{name}.ncu-repz")
        paths.append(folder / f"{name}.ncu-rep")
        paths[-1].write_bytes(content)
    return paths


def write_full_set(path: Path, n_kernels: int) -> Path:
    """Write a report of `n_kernels` launches, each as large as a recorded full set, and return its path.

    It repeats the launches of the simulated training step. As in ncu's reports, only their first occurrence is encoded with the
    counters' names; the second is copied as often as needed.
    """
    kernels = [_as_large_as_recorded(kernel(planted.kernel)) for planted in PLANTED]
    session = Session(command_line="ncu --set full --simulated-by-ncuroof app")
    if n_kernels <= len(kernels):
        path.write_bytes(write_report(kernels[:n_kernels], session))
        return path
    written = write_report(2 * kernels, session)
    again = walk(written).blocks[-len(kernels) :]
    blocks = [written[block.header_offset - _LENGTH_PREFIX_BYTES : block.end_offset] for block in again]
    with path.open("wb") as file:
        file.write(written[: again[0].header_offset - _LENGTH_PREFIX_BYTES])
        file.writelines(islice(cycle(blocks), n_kernels - len(kernels)))
    return path


def _as_large_as_recorded(constructed: Kernel) -> Kernel:
    instances = Instances(tuple(map(float, range(_N_INSTANCES))), tuple(range(_N_INSTANCES)), total=1.0)
    others: dict[str, Metric] = {
        **{f"benchmark__counter_{number:03}.sum": 1000.0 + number for number in range(_N_COUNTERS)},
        **{f"benchmark__instances_{number:02}": instances for number in range(_N_WITH_INSTANCES)},
    }
    return replace(constructed, metrics={**constructed.metrics, **others})
