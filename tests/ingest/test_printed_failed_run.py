"""A log of ncu without tables is told from other texts, with ncu's own reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ncuroof
from ncuroof.errors import ReportEmptyError, ReportFormatError

CONNECTED = "==PROF== Connected to process 5 (/opt/app)\n"
PROFILED = '==PROF== Profiling "k" - 0: 0%....50%....100% - 8 passes\n'
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
        (CONNECTED + PROFILED + "==ERROR== Out of memory.\n", "ncu ran out of memory", "--replay-mode application"),
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
def test_what_only_resembles_ncus_messages_is_another_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReportFormatError, match="found another text file"):
        ncuroof.read(path)
