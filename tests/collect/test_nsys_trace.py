"""Traces of Nsight Systems: written here by its schema, and by nsys itself where it is installed, whose sums are the judge."""

from __future__ import annotations

import csv
import io
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ncuroof.errors import CountsError
from ncuroof.ncu.machine import find_nsys
from ncuroof.ncu.settings import load_settings
from ncuroof.sidecars.counts import KernelCount
from ncuroof.sidecars.predecessors import Predecessor
from ncuroof.sidecars.traces import nsight_systems as nsys_trace
from ncuroof.sidecars.traces.nsight_systems import read_nsys_trace
from ncuroof.sidecars.traces.read import read_trace
from tests.support.nsys_database import OTHER_PID, PID, Called, Pushed, Ran, fill, write_database

GEMM = "void gemm<float>(T1 *)"
RAN = [
    Ran(0, 100, 1),
    Ran(112, 120, 2, "relu", grid=(2, 3, 4), block=(32, 2, 1)),
    Ran(115, 130, 3, table="MEMCPY"),
    Ran(150, 160, 4, GEMM, grid=(9, 1, 1)),
    Ran(161, 170, 5),
    Ran(200, 201, 6, table="MEMSET"),
    Ran(203, 213, 7, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"),
]
CALLED = [
    Called(-5, -1, 1),
    Called(104, 109, 2),  # launched when the GPU had been idle for 4 µs
    Called(105, 114, 3, "cudaMemcpyAsync_v3020"),
    Called(115, 140, 99, "cudaStreamSynchronize_v3020"),  # in which the host was when the GPU ran dry at 130
    Called(141, 145, 4),
    Called(146, 149, 5),  # queued
    Called(180, 190, 6, "cudaMemsetAsync_v3020"),
    Called(191, 195, 7, "cuLaunchKernelEx"),
]


def parts(path: Path) -> dict[str, tuple[float, int | None]]:
    """Return µs and gaps by part."""
    breakdown = read_trace(path).breakdown
    assert breakdown is not None
    assert breakdown.steps is None
    return {part.name: (part.duration_ns / 1e3, part.n_gaps) for part in breakdown.parts}


def test_a_database_gives_kernel_counts_and_the_activity_of_the_gpu(tmp_path: Path) -> None:
    path = write_database(tmp_path / "run.sqlite", RAN, CALLED)
    counts = read_trace(path)
    assert counts.source == "nsys"
    assert counts.kernels == (
        KernelCount(GEMM, (8, 1, 1), (64, 1, 1), 2, 109e3, 9e3, 100e3, (Predecessor(GEMM, (9, 1, 1), (64, 1, 1), 1),)),
        KernelCount(
            GEMM, (9, 1, 1), (64, 1, 1), 1, 10e3, 10e3, 10e3, ()
        ),  # a copy lies before it, and a memset before the next
        KernelCount(RAN[-1].name, (8, 1, 1), (64, 1, 1), 1, 10e3, 10e3, 10e3, ()),
        KernelCount("relu", (2, 3, 4), (32, 2, 1), 1, 8e3, 8e3, 8e3, (Predecessor(GEMM, (8, 1, 1), (64, 1, 1), 1),)),
    )
    assert parts(path) == {
        "computation": (127, None),
        "communication": (10, None),
        "memory": (11, None),  # 115 to 130 but for what the kernel hides, and the memset
        "host_wait": (12 + 30, 2),
        "synchronisation": (20, 1),
        "kernel_wait": (1 + 2, 2),
    }


def test_processes_have_launches_and_gpus_of_their_own(tmp_path: Path) -> None:
    """Two ranks, each the first GPU that it sees and each counting launches from 1: their kernels lie between each other's."""
    mine = [Ran(0, 40, 1), Ran(50, 60, 2)]
    others = [Ran(40, 45, 1, pid=OTHER_PID), Ran(45, 50, 2, pid=OTHER_PID)]
    calls = [Called(-9, -5, 1), Called(46, 49, 2), Called(-9, -5, 2, pid=OTHER_PID)]
    path = write_database(tmp_path / "run.sqlite", [*mine, *others], calls)
    assert [each.n_launches for each in read_trace(path).kernels] == [4]
    assert parts(path) == {"computation": (50, None), "host_wait": (10, 1)}


def test_a_call_of_another_thread_does_not_wait_for_this_one(tmp_path: Path) -> None:
    waits = Called(0, 95, 99, "cudaDeviceSynchronize_v3020", tid=PID + 1)
    path = write_database(tmp_path / "run.sqlite", [Ran(0, 90, 1), Ran(100, 110, 2)], [waits, Called(96, 99, 2)])
    assert parts(path)["host_wait"] == (10, 1)


def test_ranges_of_nvtx_name_the_places_of_idle_time(tmp_path: Path) -> None:
    """The GPU runs dry at 100 and 130, and the host returns from its launches at 109 and 145."""
    pushed = [
        Pushed(0, 300, "iteration"),
        Pushed(100, 106, "exchange halo", is_registered=True),
        Pushed(130, 140, "write"),
        Pushed(100, 109, "elsewhere", tid=PID + 1),
        Pushed(100, 200, "started, not pushed", event_type=60),
        Pushed(101, None, "never popped"),
    ]
    breakdown = read_trace(write_database(tmp_path / "run.sqlite", RAN[:4], CALLED[:5], pushed)).breakdown
    assert breakdown is not None
    places = {
        part.name: [(each.name, round(each.duration_ns / 1e3, 9)) for each in part.during] for part in breakdown.parts
    }
    # Of the 12 µs until 112 the host took 9: 6 of them in the exchange. Of the 20 until 150 it took 15: 10 of them writing.
    assert places["host_wait"] == [("exchange halo", 8.0), ("iteration", 4.0)]
    assert places["synchronisation"] == [
        ("write", pytest.approx(20 * 10 / 15)),
        ("iteration", pytest.approx(20 * 5 / 15)),
    ]


def test_graphs_recorded_as_wholes_are_not_idle_time(tmp_path: Path) -> None:
    graphs = [Ran(start, start + 90, number, table="GRAPH_TRACE") for number, start in enumerate((10, 100))]
    path = write_database(tmp_path / "run.sqlite", [Ran(0, 10, 7), *graphs])
    assert parts(path) == {"computation": (190, None)}
    (graph,) = [kernel for kernel in read_trace(path).kernels if kernel.name == "CUDA graph"]
    before = (Predecessor(GEMM, (8, 1, 1), (64, 1, 1), 1), Predecessor("CUDA graph", (0, 0, 0), (0, 0, 0), 1))
    assert graph == KernelCount("CUDA graph", (0, 0, 0), (0, 0, 0), 2, 180e3, 90e3, 90e3, before)


def test_graphs_taken_apart_say_nothing_of_gaps(tmp_path: Path) -> None:
    """nsys profile --help: tracing nodes "may cause significant runtime overhead"."""
    path = write_database(tmp_path / "run.sqlite", [Ran(0, 10, 1, node=3), Ran(15, 20, 1, node=4)])
    counts = read_trace(path)
    assert (counts.n_launches, counts.breakdown) == (2, None)


def test_a_trace_without_calls_still_has_gaps(tmp_path: Path) -> None:
    path = write_database(tmp_path / "run.sqlite", [Ran(0, 10, None), Ran(15, 20, None)])
    assert parts(path) == {"computation": (15, None), "other_wait": (5, 1)}


def test_a_trace_with_an_unfinished_call_is_read(tmp_path: Path) -> None:
    cut_off = [Called(104, 0, 2), *(call for call in CALLED if call.launches != 2)]
    assert parts(write_database(tmp_path / "run.sqlite", RAN[:2], cut_off))["other_wait"] == (12, 1)


def broken(folder: Path, statement: str) -> Path:
    path = write_database(folder / "run.sqlite", RAN, CALLED)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
    return path


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL", "the trace contains no GPU kernels"),
        ("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL", "the trace contains no GPU kernels"),
        ("DROP TABLE StringIds", "no such table: StringIds"),
        ("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME gridX TO blocks", "no such column: gridX"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 'late'", "expected a trace of Nsight Systems: unsupported operand"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start - 1", "found an implausible duration: -1 ns from"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 9223372036854775807", "expected a trace of Nsight Systems"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = x'00'", "expected a trace of Nsight Systems"),
        ("UPDATE StringIds SET value = x'ff00'", "expected a trace of Nsight Systems"),
        ("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = NULL", "expected a trace of Nsight Systems"),
        ("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = 'me'", "expected a trace of Nsight Systems"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_a_trace_is_refused(tmp_path: Path, statement: str, message: str) -> None:
    with pytest.raises(CountsError, match=message) as error:
        read_trace(broken(tmp_path, statement))
    assert error.value.hint is not None


def test_a_name_with_invalid_bytes_is_read_as_far_as_possible(tmp_path: Path) -> None:
    path = broken(tmp_path, "UPDATE StringIds SET value = CAST(x'ff67' AS TEXT) WHERE value = 'relu'")
    assert "\N{REPLACEMENT CHARACTER}g" in [kernel.name for kernel in read_trace(path).kernels]


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    path = write_database(tmp_path / "run.sqlite", RAN, CALLED)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(CountsError, match="expected a trace of Nsight Systems"):
        read_trace(path)


def test_a_trace_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nsys_trace, "_MOST_ROWS", 6)
    with pytest.raises(CountsError, match="more than 6 entries of one kind: trace a shorter time"):
        read_trace(write_database(tmp_path / "run.sqlite", RAN, CALLED))


def test_reading_leaves_the_database_as_it_is(tmp_path: Path) -> None:
    path = write_database(tmp_path / "a b#%?.sqlite", RAN, CALLED)
    before = path.read_bytes()
    path.chmod(0o444)
    read_trace(path)
    assert (path.read_bytes(), [each.name for each in tmp_path.iterdir()]) == (before, [path.name])


def test_a_report_takes_nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "run.nsys-rep"
    with pytest.raises(CountsError, match=r"run\.nsys-rep: no such file"):
        read_trace(report)
    report.write_bytes(b"anything")
    monkeypatch.setattr(nsys_trace, "find_nsys", lambda _: None)
    with pytest.raises(CountsError, match="reading it needs nsys") as error:
        read_trace(report)
    assert "nsys export --type=sqlite run.nsys-rep" in str(error.value.hint)
    broken = tmp_path / "nsys"
    broken.write_text("#!/bin/sh\necho unsupported version >&2\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setattr(nsys_trace, "find_nsys", lambda _: broken)
    with pytest.raises(CountsError, match="nsys cannot export it: unsupported version"):
        read_trace(report)


# ---- NVIDIA's own nsys --------------------------------------------------------------------------------------------------------

NSYS = find_nsys(os.environ)
needs_nsys = pytest.mark.skipif(NSYS is None, reason="nsys is not installed")


def nsys(*words: object) -> str:
    done = subprocess.run([str(NSYS), *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export with every table that nsys knows, of a program that used no GPU."""
    folder = tmp_path_factory.mktemp("nsys")
    nsys(*load_settings().nsys_options, f"--output={folder}/run", "/bin/true")
    nsys(
        "export",
        "--force-overwrite=true",
        "--type=sqlite",
        "--lazy=false",
        "--quiet=true",
        f"--output={folder}/run.sqlite",
        folder / "run.nsys-rep",
    )
    return folder / "run.sqlite"


def stats(report: str, path: Path) -> list[dict[str, str]]:
    said = nsys("stats", f"--report={report}", "--format=csv", "--output=@cat", "--quiet", path)
    return list(csv.DictReader(io.StringIO(said.strip())))


@needs_nsys
def test_nsys_makes_the_tables_that_are_read_and_sums_as_we_do(export: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    path.write_bytes(export.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        fill(connection, RAN, CALLED)
    found = read_trace(path)
    assert found == read_trace(write_database(tmp_path / "by_hand.sqlite", RAN, CALLED))
    sums = {
        (row["Name"], shape(row["GridXYZ"]), shape(row["BlockXYZ"])): (
            int(row["Instances"]),
            float(row["Total Time (ns)"]),
        )
        for row in stats("cuda_gpu_kern_gb_sum", path)
    }
    assert sums == {(each.name, each.grid, each.block): (each.n_launches, each.duration_ns) for each in found.kernels}
    timeline = read_nsys_trace(path, waiting_calls=load_settings().waiting_calls)
    launched_ns = {call.launch: call.start_ns for call in timeline.calls}
    kernels = sorted((each.start_ns, launched_ns[each.launch]) for each in timeline.activities if not each.is_copy)
    rows = stats("cuda_kern_exec_trace", path)
    assert kernels == sorted((int(row["Kernel Start (ns)"]), int(row["API Start (ns)"])) for row in rows)


def shape(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


PUSHES = """
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 2; i++) {
    nvtxRangePushA("outer"); usleep(1000); nvtxRangePushA("inner"); usleep(3000); nvtxRangePop(); nvtxRangePop();
  }
  nvtxRangeId_t range = nvtxRangeStartA("started"); nvtxMarkA("mark"); nvtxRangeEnd(range);
  return 0;
}
"""
HEADERS = next(Path("/usr/local").glob("cuda*/include/nvtx3"), None)


@needs_nsys
@pytest.mark.skipif(HEADERS is None, reason="NVTX's headers are not installed")
def test_ranges_are_read_as_nsys_records_them(tmp_path: Path) -> None:
    assert HEADERS is not None
    (tmp_path / "pushes.c").write_text(PUSHES, encoding="utf-8")
    subprocess.run(["gcc", f"-I{HEADERS.parent}", "pushes.c", "-o", "pushes", "-ldl"], cwd=tmp_path, check=True)
    nsys(*load_settings().nsys_options, f"--output={tmp_path}/run", tmp_path / "pushes")
    ranges = read_nsys_trace(tmp_path / "run.sqlite", waiting_calls="x").ranges
    assert [each.name for each in ranges] == ["outer", "inner", "outer", "outer", "inner", "outer"]
    assert sum(each.end_ns - each.start_ns for each in ranges if each.name == "inner") >= 6e6
    assert len({each.thread for each in ranges}) == 1


@needs_nsys
def test_a_report_of_nsys_without_kernels_is_a_named_error(export: Path) -> None:
    with pytest.raises(CountsError, match=r"run\.nsys-rep: the trace contains no GPU kernels"):
        read_trace(export.with_suffix(".nsys-rep"))
