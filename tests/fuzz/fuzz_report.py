"""`python -m tests.fuzz.fuzz_report [OPTIONS OF LIBFUZZER] FOLDER`: damaged reports against the framing and the native reader."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import atheris
import zstandard

with atheris.instrument_imports(include=["ncuroof.ingest"]):
    from ncuroof.ingest import file_content, open_report

from ncuroof.errors import NcuroofError
from ncuroof.metrics import selection
from tests.support.elf_image import elf
from tests.support.lined import lined_report
from tests.support.report_writer import METRICS_BY_CHIP, Instances, Kernel, Rule, write_report

TIMED = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 4096.0}


def seeds() -> dict[str, bytes]:
    """Return small whole reports with every kind of message that the readers look into."""
    rule = Rule("r", "rule", "s", "title", "message", speedup=("global", 50.0))
    plain = write_report([Kernel(name, TIMED) for name in ("first", "second")])
    rich = write_report(
        [
            Kernel(
                "k", {**TIMED, "i": Instances((1.0, 2.0), total=3.0)}, nvtx=("a", "b"), rules=(rule,), sections=("s",)
            ),
            Kernel("g", TIMED, kind="graph"),
            Kernel("c", TIMED, kind="cmdlist", rules=(rule,)),
        ],
        kernels_per_block=2,
    )
    code = ((1, elf(".nv_debug_info_reg_sass", ".text.k")), (2, elf(".text.k")))
    built = write_report([Kernel("debug", TIMED), Kernel("optimised", TIMED, source=2)], sources=code)
    return {
        "plain": plain,
        "built": built,
        "lined": lined_report(),
        "rich": rich,
        "compressed": zstandard.compress(plain),
    }


def main() -> None:
    """Fuzz until libFuzzer's limits: whatever is no named error is a crash."""
    wanted = selection()
    folder = Path(sys.argv[-1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in seeds().items():
        (folder / f"seed-{name}").write_bytes(content)
    path = Path(tempfile.mkdtemp()) / "fuzzed.ncu-rep"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        file_content.LARGE_BYTES = len(content) + len(content) % 2  # those of even length are large
        with contextlib.suppress(NcuroofError):
            open_report(path, selection=wanted, reader="native")

    atheris.Setup(sys.argv, read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
