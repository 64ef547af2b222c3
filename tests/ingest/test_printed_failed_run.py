"""A log of ncu without tables is told from other texts, with ncu's own reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ncuroof
from ncuroof.errors import ReportEmptyError, ReportFormatError
from tests.support.console import log, section

CONNECTED = "==PROF== Connected to process 5 (/opt/app)\n"
PROFILED = '==PROF== Profiling "k" - 0: 0%....50%....100% - 8 passes\n'
BEGUN = '==PROF== Profiling "k" - 1: 0%\n'
SLOW = "==WARNING== Launching the workload is taking more time than expected.\n"
WATCHDOG = (
    "[rank1]:[E ProcessGroupNCCL.cpp:5] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)\n"
)
ENDED = "==PROF== Disconnected from process 5\n"
NOTHING = "==WARNING== No kernels were profiled.\n"
DENIED = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target "
    "device 0.\n"
)


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        (CONNECTED + ENDED + NOTHING, ": ncu says “No kernels were profiled.”", "--kernel-name"),
        (CONNECTED + DENIED + ENDED + NOTHING, "this user may not read the GPU's performance", "ncuroof doctor"),
        (f"0: {DENIED}1: {DENIED}", "(ERR_NVGPUCTRPERM) (no-permission)", "ncuroof doctor"),  # of srun --label
        (
            f"{CONNECTED}==ERROR== The application returned an error code (9).\n==ERROR== Something \x1b[1m\x07new.\n{NOTHING}",
            ": ncu says “Something  new.”",
            "--kernel-name",
        ),
        (
            f"{CONNECTED}==ERROR== The application returned an error code (9).\n{NOTHING}",
            ": ncu says “The application returned an error code (9).”",
            "--kernel-name",
        ),
        (CONNECTED + BEGUN + "==ERROR== Out of memory.\n", "ncu ran out of memory", "--replay-mode application"),
        (
            CONNECTED + "==ERROR== Unknown Error on device 0.\n",
            "nothing was launched under it",
            "may not read the counters",
        ),
        (CONNECTED + BEGUN + "==ERROR== Unknown Error on device 0.\n", "(replay-failed)", "--replay-mode application"),
        (
            "==ERROR== An error was reported by the driver:\n==ERROR== Cuda driver is not compatible.\n",
            "do not fit",
            "newest CUDA",
        ),
        (CONNECTED + BEGUN + SLOW, "in k, a kernel waited without end", "--replay-mode range"),
        (CONNECTED + BEGUN.replace('"k"', '"ncclDevKernel_AllReduce"') + SLOW, "is a collective", "regex:^(?!nccl)"),
        (CONNECTED + BEGUN.replace('"k"', '"nvshmemi_sync"') + WATCHDOG, "is a collective", "--replay-mode range"),
    ],
)
def test_a_log_without_kernels_says_why(tmp_path: Path, text: str, reason: str, hint: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReportEmptyError) as caught:
        ncuroof.read(path)
    said = str(caught.value)
    assert said.startswith("log.txt: the log of a run of ncu that recorded nothing")
    assert said.endswith(reason) if reason.startswith(":") else reason in said
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("n_kernels", [1, 153])
@pytest.mark.parametrize(
    ("trouble", "reason", "hint"),
    [
        (
            "==ERROR== Failed to save the report to file /d/run.ncu-rep\n",
            "could not write its report",
            "free some space",
        ),
        ("==ERROR== Something new.\n", "ncu says “Something new.”", "--kernel-name"),
        (BEGUN + SLOW, "in k, a kernel waited", "--replay-mode range"),
    ],
)
def test_kernels_that_were_profiled_and_lost_are_counted(
    tmp_path: Path, n_kernels: int, trouble: str, reason: str, hint: str
) -> None:
    path = tmp_path / "log.txt"
    profiled = "".join(PROFILED.replace("- 0:", f"- {number}:") for number in range(n_kernels))
    path.write_text(CONNECTED + profiled + trouble)
    with pytest.raises(ReportEmptyError) as caught:
        ncuroof.read(path)
    counted = "1 kernel" if n_kernels == 1 else f"{n_kernels} kernels"
    assert f"that profiled {counted} and then failed; no values are in it: " in str(caught.value)
    assert reason in str(caught.value)
    assert hint in (caught.value.hint or "")


TABLE = log(section("GPU Speed Of Light Throughput", [("Duration", "us", "5.50")]))


@pytest.mark.parametrize(
    ("trouble", "warning"),
    [
        (DENIED, "(no-permission)"),
        ("==ERROR== LaunchFailed\n", "(replay-failed)"),
        ("==ERROR== Something new.\n", "so that kernels may be missing: “Something new.”"),
        (BEGUN.replace('"k"', '"ncclKernel_SendRecv"') + SLOW, "ncclKernel_SendRecv is a collective"),
        ("==ERROR== The application returned an error code (11).\n==WARNING== Clocks are not locked.\n", None),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_log_with_results_and_errors_has_both(
    tmp_path: Path, trouble: str, warning: str | None, *, is_first: bool
) -> None:
    path = tmp_path / "log.txt"
    text = [CONNECTED, PROFILED, trouble, TABLE] if is_first else [CONNECTED, PROFILED, TABLE, trouble]
    path.write_text("".join(text))
    (report,) = ncuroof.read(path).raw
    assert report.counters["gpu__time_duration.sum"].to_list() == [5500.0]
    assert len(report.warnings) == (warning is not None)
    assert warning is None or warning in report.warnings[0]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (f"{CONNECTED}{PROFILED}{ENDED}==PROF== Report: /data/run.ncu-rep\n", "it wrote: /data/run.ncu-rep"),
        (f"epoch 1\\n{CONNECTED}loss 0.5\\n", "pass the .ncu-rep file"),  # it may still be running
        (CONNECTED + PROFILED + ENDED, "pass the .ncu-rep file"),
    ],
)
def test_a_log_of_progress_points_to_the_report(tmp_path: Path, text: str, hint: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReportFormatError, match="found only its progress") as caught:
        ncuroof.read(path)
    assert hint in (caught.value.hint or "")


NAMED = "[5] app@127.0.0.1\n  k(int) (4, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 12.0\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"==WARNING== No metrics to collect found in sections.\n{CONNECTED}{ENDED}",
            "ncu says “No metrics to collect found in sections.”",
        ),
        (f"{CONNECTED}==ERROR== Profiling is not supported on device 0.\n{ENDED}", "(unsupported-gpu)"),
    ],
)
def test_a_log_that_names_kernels_but_has_no_value_of_them_says_why(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text + NAMED, encoding="utf-8")
    with pytest.raises(ReportEmptyError) as caught:
        ncuroof.read(path)
    assert str(caught.value).startswith("log.txt: the log of a run of ncu that recorded no values: ")
    assert str(caught.value).endswith(reason)


def test_a_log_that_names_kernels_and_gives_no_reason_lacks_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(f"{CONNECTED}==WARNING== Clocks are not locked.\n{ENDED}{NAMED}", encoding="utf-8")
    with pytest.raises(ReportFormatError, match="found kernels' names without any"):
        ncuroof.read(path)


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("==4711== NVPROF is profiling process 4711, command: ./a\n", "nvprof"),
        ("step 1\n==4711== Metric result:\n", "nvprof"),
        (" ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n", "Nsight Systems (nsys)"),
        ("Time (%),Total Time (ns),Instances,Avg (ns)\n", "Nsight Systems (nsys)"),
        (" Time (%)  Total Time (ns)  Instances\n", "Nsight Systems (nsys)"),
        ("Processing [run.sqlite] with [/opt/nsys/reports/cuda_gpu_kern_sum.py]...\n", "Nsight Systems (nsys)"),
    ],
)
def test_output_of_other_profilers_is_named(tmp_path: Path, text: str, tool: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReportFormatError, match=re.escape(f"found output of {tool}")) as caught:
        ncuroof.read(path)
    assert "ncuroof profile" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["==ERROR== make failed\n", "==4711== NVHPC is at process 4711\n"])
def test_a_text_that_only_resembles_messages_of_ncu_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReportFormatError, match="found another text file"):
        ncuroof.read(path)
