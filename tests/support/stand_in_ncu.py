"""A stand-in for ncu that behaves like it towards its caller: it runs a program, prints ncu's lines, and leaves a report.

Its lines are as in logs of Nsight Compute 2023 to 2025 in public repositories. Environment variables control it:
STAND_IN_REPORT (file to leave as its report, with its suffix), STAND_IN_LINES (further lines to print), STAND_IN_KERNELS (number of kernels to profile,
default 3), STAND_IN_PAUSE (seconds between them), STAND_IN_BEGUN (file to write when the first is done). On an interrupt it closes its report, as ncu does.
"""  # noqa: E501

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

FLAGS = {"--force-overwrite", "--nvtx", "--call-stack"}
"""Options without a value; all others have one."""

VERSION = "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2024.1.1.0 (build 33998838) (public-release)"


def main(words: list[str]) -> int:
    if "--version" in words:
        print(VERSION)
        return 0
    options, program = options_of(words)
    interrupted: list[bool] = []
    signal.signal(signal.SIGINT, lambda *_: interrupted.append(True))
    log = open(options["--log-file"], "w", encoding="utf-8") if "--log-file" in options else sys.stdout  # noqa: SIM115, PTH123

    def say(text: str) -> None:
        log.write(text)
        log.flush()

    status = subprocess.run(program, check=False).returncode
    say(f"==PROF== Connected to process 4711 ({program[0]})\n")
    for line in filter(None, os.environ.get("STAND_IN_LINES", "").split("|")):
        say(line + "\n")
    source = os.environ.get("STAND_IN_REPORT")
    if Path(program[0]).name == "true":  # like every program that does not use CUDA
        source = None
    profile(say, interrupted, n_kernels=int(os.environ.get("STAND_IN_KERNELS", "3")) if source else 0)
    say("==PROF== Disconnected from process 4711\n")
    if status:
        say(f"==ERROR== The application returned an error code ({status}).\n")
    if source is None:
        say("==WARNING== No kernels were profiled.\n")
        return 1 if status else 0
    return leave(Path(source), options["--export"], say, is_forced="--force-overwrite" in options) or status


def options_of(words: list[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    place = 0
    while words[place].startswith("--"):
        has_value = words[place] not in FLAGS
        options[words[place]] = words[place + 1] if has_value else ""
        place += 2 if has_value else 1
    return options, words[place:]


def profile(say: Callable[[str], None], interrupted: list[bool], *, n_kernels: int) -> None:
    for number in range(n_kernels):
        if interrupted:
            say("==PROF== Received signal, trying to shutdown target application\n")
            return
        say(f'==PROF== Profiling "kernel_{number}" - {number}: 0%')
        time.sleep(float(os.environ.get("STAND_IN_PAUSE", "0")))
        say("....50%....100% - 23 passes\n")
        if "STAND_IN_BEGUN" in os.environ:
            Path(os.environ["STAND_IN_BEGUN"]).touch()


def leave(source: Path, export: str, say: Callable[[str], None], *, is_forced: bool) -> int:
    base = re.sub(r"%q\{(\w+)\}", lambda match: os.environ.get(match[1], ""), export).replace("%%", "%")
    report = Path(f"{base}{source.suffix}")
    if report.exists() and not is_forced:
        say(f"==ERROR== File {report} already exists. Use '-f' for overwriting the file.\n")
        return 1
    shutil.copyfile(source, report)
    say(f"==PROF== Report: {report}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
