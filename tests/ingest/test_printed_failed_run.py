"""A log of ncu without tables is told from other texts, with ncu's own reason."""

from __future__ import annotations

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


@pytest.mark.parametrize("text", ["==ERROR== make failed\n", "==4711== NVPROF is profiling process 4711\n"])
def test_what_only_resembles_ncus_messages_is_another_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReportFormatError, match="found another text file"):
        ncuroof.read(path)
