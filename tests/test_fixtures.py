"""The simulated report is what its script writes, and NVIDIA's readers find in it what was planted."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ncuroof.resources import read_toml
from tests.support import demo
from tests.support.patience import PATIENCE_S
from tests.support.read_back import Counters, actions

FLOP_OF_PLANTED = (
    # 2 * M * N * K; 4 * batch * heads * seq² * dim under a causal mask; one FFMA per product of 4096³.
    ("nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT", "tensor", 2 * 16384 * 16384 * 4096),
    ("device_kernel", "tensor", 4 * 8 * 32 * 2048**2 * 128 // 2),
    ("sgemm_naive_vec4", "f", 2 * 4096**3),
    ("lennard_jones_fp64", "d", 1.5e10 + 1.6e10 + 2 * 0.5e10),
)


@pytest.fixture(scope="module")
def planted() -> list[Counters]:
    return [Counters(action) for action in actions(demo.REPORT)]


def test_the_fixtures_are_what_their_script_writes() -> None:
    assert demo.REPORT.read_bytes() == demo.report()
    assert demo.REPORT_MENDED.read_bytes() == demo.report_mended()


def test_provenance_names_the_fixtures_and_their_hashes() -> None:
    entries = read_toml(demo.PROVENANCE)["file"]
    for entry, path in zip(entries, (demo.REPORT, demo.REPORT_MENDED), strict=True):
        assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert (entry["name"], entry["simulated"]) == (path.name, True)


def test_the_fixture_is_small_and_says_that_it_is_simulated() -> None:
    written = demo.REPORT.read_bytes()
    assert len(written) < 300_000
    assert b" --simulated-by-ncuroof" in written
    assert b"/opt/simulated/train.py" in written


def test_ncu_report_reads_the_planted_kernels_in_order() -> None:
    found = actions(demo.REPORT)
    assert [action.name() for action in found] == [entry.kernel.name for entry in demo.PLANTED]
    assert all(action.nvtx_state() for action in found)


def test_the_failed_collection_knows_only_launch_and_device(planted: list[Counters]) -> None:
    (failed,) = [c for c in planted if c.is_failed()]
    known = {name.split("__")[0] for name in failed.names() if _is_number(failed[name])}
    assert known == {"device", "launch", "profiler", "sm"}
    assert [name for name in failed.names() if name.startswith("sm__") and _is_number(failed[name])] == [
        "sm__maximum_warps_avg_per_active_cycle",
        "sm__maximum_warps_per_active_cycle_pct",
    ]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)


def test_units_are_those_of_the_chip() -> None:
    # In a process of its own: the module's words for units change with what it has read before.
    program = (
        "import sys; from tests.support.read_back import actions; from pathlib import Path\n"
        "(action,) = (a for a in actions(Path(sys.argv[1])) if a.name() == 'copy_strided')\n"
        "print(*(action.metric_by_name(n).unit() for n in ('gpu__time_duration.sum', 'dram__bytes.sum.per_second')))"
    )
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program, str(demo.REPORT)], capture_output=True, text=True, check=True, cwd=root
    )
    assert done.stdout.split() == ["ns", "byte/s"]


@pytest.mark.parametrize(("name", "kind", "flop"), FLOP_OF_PLANTED)
def test_flops_are_those_of_the_problem(planted: list[Counters], name: str, kind: str, flop: float) -> None:
    (index,) = [i for i, entry in enumerate(demo.PLANTED) if entry.kernel.name == name]
    assert planted[index].flop(kind) == pytest.approx(flop)


@pytest.mark.oracle
def test_ncu_prints_the_planted_values() -> None:
    cached = Path.home() / ".cache" / "nsight-compute" / "ncu"
    ncu = os.environ.get("NCUROOF_NCU") or shutil.which("ncu") or (str(cached) if cached.exists() else None)
    if not ncu:
        pytest.skip("NVIDIA's ncu is neither in NCUROOF_NCU nor on the PATH")
    command = [ncu, "--import", str(demo.REPORT), "--page", "raw", "--csv", "--print-units", "base"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout
    rows = list(csv.DictReader(io.StringIO(printed)))[1:]
    assert [row["Kernel Name"].split("(")[0] for row in rows][-4:] == [
        "sgemm_naive_vec4",
        "copy_strided",
        "void transpose_tile32<32, 8>",
        "lennard_jones_fp64",
    ]
    # 2^28 elements of 4 bytes in 2^23 requests of 32 sectors.
    strided = rows[-3]
    assert float(strided["gpu__time_duration.sum"].replace(",", "")) == 1_080_000
    assert float(strided["dram__bytes_read.sum"].replace(",", "")) == 2**30
    assert float(strided["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"].replace(",", "")) == 2**28
    assert float(strided["launch__waves_per_multiprocessor"]) == pytest.approx(2**20 / (132 * 8), abs=0.01)
