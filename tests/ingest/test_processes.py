"""Several processes, ranks and copies: every workload is attributed to its own, and nothing counts double."""

from __future__ import annotations

from pathlib import Path

import pytest

import ncuroof
from tests.support.report_writer import METRICS_BY_CHIP, Kernel, Session, write_report

CHIP = {**METRICS_BY_CHIP["GA100"], "gpu__time_duration.sum": 50_000.0}
SESSION = Session(processes=((4242, "/opt/app/rank0"), (5, "C:\\app\\rank1.exe")))


def kernel(name: str, process_id: int, kind: str = "kernel") -> Kernel:
    return Kernel(name, CHIP, process_id=process_id, kind=kind)


def test_each_workload_belongs_to_the_process_of_its_block(tmp_path: Path) -> None:
    path = tmp_path / "ranks.ncu-rep"
    kernels = [
        kernel("a", 4242),
        kernel("b", 5),
        kernel("r", 4242, "range"),
        kernel("c", 4242),
        kernel("g", 5, "graph"),
    ]
    path.write_bytes(write_report(kernels, SESSION))
    found = ncuroof.read(path).analyse().to_dict()["kernels"]
    assert [entry["process"]["id"] for entry in found] == [4242, 5, 4242, 4242, 5]
    assert [entry["process"]["name"] for entry in found] == ["rank0", "rank1.exe", "rank0", "rank0", "rank1.exe"]


def test_ranks_over_several_files_add_up_once(tmp_path: Path) -> None:
    paths = []
    for rank, process_id in enumerate((4242, 5)):
        paths.append(tmp_path / f"rank{rank}.ncu-rep")
        paths[-1].write_bytes(write_report([kernel(f"k{rank}", process_id)] * 2, SESSION))
    document = ncuroof.read(paths).analyse().to_dict()
    assert [entry["process"]["id"] for entry in document["kernels"]] == [4242, 4242, 5, 5]
    assert [entry["source"] for entry in document["kernels"]] == [0, 0, 1, 1]
    assert document["summary"]["duration_ns"] == pytest.approx(4 * 50_000)
    assert len(document["devices"]) == 1


def test_a_file_given_twice_is_counted_once(tmp_path: Path) -> None:
    first, copy = tmp_path / "first.ncu-rep", tmp_path / "copy.ncu-rep"
    content = write_report([kernel("k", 4242)], SESSION)
    for path in (first, copy):
        path.write_bytes(content)
    reports = ncuroof.read([first, copy, first])
    assert reports.repeated == (("copy.ncu-rep", "first.ncu-rep"), ("first.ncu-rep", "first.ncu-rep"))
    assert reports.analyse().summary.n_kernels == 1
