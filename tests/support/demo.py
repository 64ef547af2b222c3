"""Writes the simulated reports of the fixtures: `python -m tests.support.demo`.

The first report shows what ncuroof says about a training step on an H200, and gives tests exact numbers. PLANTED lists
its kernels in file order, each with the property planted in it and the verdict, limiter and findings that follow by
`profiles/rules.toml`. Nothing in it was measured: `--simulated-by-ncuroof` in its command line says so, and every
output repeats it. The second report is the same run after some optimisation, for comparisons.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.support.constructed_counters import kernel
from tests.support.constructed_gpus import GPUS, attributes
from tests.support.demo_backward import BACKWARD, OPTIMIZER, TEACHING
from tests.support.demo_forward import FORWARD
from tests.support.demo_mended import MENDED
from tests.support.report_writer import Device, Session, write_report

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "simulated"
REPORT = FOLDER / "h200-training-step.ncu-rep"
REPORT_MENDED = FOLDER / "h200-training-step-mended.ncu-rep"
PROVENANCE = FOLDER / "PROVENANCE.toml"
SIMULATED = "--simulated-by-ncuroof"
PLANTED = (*FORWARD, *BACKWARD, *OPTIMIZER, *TEACHING)

_GPU = GPUS["h200-sxm"]
_SESSION = Session(
    ncu_version="2025.3.1",
    cuda_version="13.0",
    driver_version="580.95.05",
    command_line="ncu --set full --nvtx --clock-control none -o h200-training-step "
    f"/opt/simulated/train.py --compile --steps 1 {SIMULATED}",
    executable=("/opt/simulated/train.py", f"--compile --steps 1 {SIMULATED}"),
    clock_control="None",
    replay_mode="Kernel",
    processes=((4242, "/opt/simulated/train.py"),),
    devices=(Device(0, _GPU.name, attributes(_GPU)),),
    creation_time_s=1_795_132_800,  # 2026-11-20
    host_name="simulated.invalid",
)


def report() -> bytes:
    """Return the bytes of the simulated report."""
    return write_report([kernel(planted.kernel) for planted in PLANTED], _SESSION)


def report_mended() -> bytes:
    """Return the bytes of the simulated report after optimisation."""
    return write_report([kernel(described) for described in MENDED], _SESSION)


def provenance(written: bytes, mended: bytes) -> str:
    """Return the provenance of both reports, as TOML."""
    return f"""\
[[file]]
name = "{REPORT.name}"
simulated = true
what = "{len(PLANTED)} kernels as an H200 could run them: a training step, CUDA courses; nothing is measured"
how = "tests/support/report_writer.py wrote what tests/support/demo_forward.py and demo_backward.py describe"
command = "python -m tests.support.demo"
date = 2026-11-20
sha256 = "{hashlib.sha256(written).hexdigest()}"

[[file]]
name = "{REPORT_MENDED.name}"
simulated = true
what = "the same run after some work on it: four kernels are faster, one is slower; nothing is measured"
how = "tests/support/report_writer.py wrote what tests/support/demo_mended.py describes"
command = "python -m tests.support.demo"
date = 2026-11-20
sha256 = "{hashlib.sha256(mended).hexdigest()}"
"""


def main() -> None:
    written, mended = report(), report_mended()
    FOLDER.mkdir(parents=True, exist_ok=True)
    REPORT.write_bytes(written)
    REPORT_MENDED.write_bytes(mended)
    PROVENANCE.write_text(provenance(written, mended), encoding="utf-8")


if __name__ == "__main__":
    main()
