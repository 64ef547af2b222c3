"""A program that behaves as ncu does where that matters to whoever calls it: it runs the program, prints ncu's lines, leaves a report.

Its lines are as in the log of Nsight Compute 2023 to 2025 in public repositories. What it does is told by the environment: STAND_IN_REPORT
(the file that it leaves as its report), STAND_IN_LINES (lines that it prints besides), STAND_IN_KERNELS (how many it profiles, 3),
STAND_IN_PAUSE (seconds between them). An interrupt makes it close its report, as ncu does.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

WITH_VALUE = {
    "--export", "--log-file", "--set", "--section", "--metrics", "--replay-mode", "--clock-control", "--cache-control", "--target-processes",
    "--graph-profiling", "--kernel-name", "--nvtx-include", "--profile-from-start", "--launch-skip", "--launch-count", "--filter-mode",
}  # fmt: skip
VERSION = "NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2024 NVIDIA Corporation\nVersion 2024.1.1.0 (build 33998838) (public-release)"


def main(words: list[str]) -> int:
    if "--version" in words:
        print(VERSION)
        return 0
    options: dict[str, str] = {}
    place = 0
    while words[place].startswith("--"):
        if words[place] in WITH_VALUE:
            options[words[place]] = words[place + 1]
            place += 1
        place += 1
    interrupted: list[bool] = []
    signal.signal(signal.SIGINT, lambda *_: interrupted.append(True))
    log = open(options["--log-file"], "w", encoding="utf-8") if "--log-file" in options else sys.stdout  # noqa: SIM115, PTH123

    def say(text: str) -> None:
        log.write(text)
        log.flush()

    status = subprocess.run(words[place:], check=False).returncode
    say(f"==PROF== Connected to process 4711 ({words[place]})\n")
    for line in filter(None, os.environ.get("STAND_IN_LINES", "").split("|")):
        say(line + "\n")
    source = os.environ.get("STAND_IN_REPORT")
    for number in range(int(os.environ.get("STAND_IN_KERNELS", "3")) if source else 0):
        if interrupted:
            say("==PROF== Received signal, trying to shutdown target application\n")
            break
        say(f'==PROF== Profiling "kernel_{number}" - {number}: 0%')
        time.sleep(float(os.environ.get("STAND_IN_PAUSE", "0")))
        say("....50%....100% - 23 passes\n")
    say("==PROF== Disconnected from process 4711\n")
    if status:
        say(f"==ERROR== The application returned an error code ({status}).\n")
    if source is None:
        say("==WARNING== No kernels were profiled.\n")
        return 1 if status else 0
    base = re.sub(r"%q\{(\w+)\}", lambda match: os.environ.get(match[1], ""), options["--export"]).replace("%%", "%")
    report = Path(f"{base}.ncu-rep")
    if report.exists() and "--force-overwrite" not in words:
        say(f"==ERROR== File {report} already exists. Use '-f' for overwriting the file.\n")
        return 1
    shutil.copyfile(source, report)
    say(f"==PROF== Report: {report}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
