"""Runs a program for `timing.run`; prints its wall-clock seconds, CPU seconds, peak memory in bytes, and exit code.

A program starts as a copy of the process that starts it, and Linux counts that in its peak memory; this process is small.
"""

from __future__ import annotations

import os
import sys
import time

if __name__ == "__main__":
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    start = time.perf_counter()
    process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=nothing)
    _, status, used = os.wait4(process, 0)
    seconds = time.perf_counter() - start
    peak_bytes = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(seconds, used.ru_utime + used.ru_stime, peak_bytes, os.waitstatus_to_exitcode(status))
