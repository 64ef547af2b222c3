"""Runs Python programs in forks of one process that has already imported torch, because the import takes seconds.

    python forked_runs.py CASES.json

CASES.json is a list of {"argv": …, "folder": …}; one result {"status", "stdout", "stderr"} per case is printed as JSON.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import sys
import warnings
from pathlib import Path
from typing import NoReturn


def main(path: str) -> None:
    warnings.simplefilter("ignore")
    import torch
    import torch.distributed.run
    import torch.utils.data

    weight = torch.ones(1, requires_grad=True)
    weight.sum().backward()
    torch.optim.AdamW([weight]).step()  # the first step imports most of PyTorch
    results = []
    for number, case in enumerate(json.loads(Path(path).read_text(encoding="utf-8"))):
        outputs = [Path(f"{path}.{number}.{name}") for name in ("out", "err")]
        child = os.fork()
        if child == 0:
            os.chdir(case["folder"])
            for descriptor, output in enumerate(outputs, start=1):
                os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), descriptor)
            sys.argv = case["argv"]
            sys.path[0] = str(Path(case["argv"][0]).parent)
            _end(_status_of(case["argv"][0]))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        stdout, stderr = (output.read_text(encoding="utf-8") for output in outputs)
        results.append({"status": status, "stdout": stdout, "stderr": stderr})
    print(json.dumps(results))


def _status_of(path: str) -> int:
    """Run a file as `__main__`, and return the exit status that the interpreter would have."""
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
            return 1
        return int(ended.code or 0)
    return 0


def _end(status: int) -> NoReturn:
    """Exit like the interpreter, but skip unloading torch, which takes a second."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1])
