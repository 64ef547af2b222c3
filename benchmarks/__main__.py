"""`python -m benchmarks [one_kernel] [many_kernels] [diagnosis] [comparison] [page] [fleet] [recording] [--rounds N] [--large]`."""

from __future__ import annotations

import argparse
import compileall
import tempfile
from pathlib import Path

import ncuroof
from benchmarks import comparison, diagnosis, fleet, many_kernels, one_kernel, page, recording
from benchmarks.timing import machine

NAMES = ("one_kernel", "many_kernels", "diagnosis", "comparison", "page", "fleet", "recording")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all unless named")
    parser.add_argument("--rounds", type=int, default=5, help="of every measurement, after one that warms up")
    parser.add_argument("--large", action="store_true", help="many_kernels goes up to 10 000 kernels")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: use {', '.join(NAMES)}")
    chosen = arguments.names or NAMES
    # As installers do: without bytecode, the first start would compile all modules, and with PYTHONDONTWRITEBYTECODE every start.
    compileall.compile_dir(Path(ncuroof.__file__).parent, quiet=1)
    print(f"{machine()}\n")
    with tempfile.TemporaryDirectory() as folder:
        if "one_kernel" in chosen:
            one_kernel.benchmark(Path(folder), arguments.rounds)
        if "many_kernels" in chosen:
            many_kernels.benchmark(Path(folder), arguments.rounds, large=arguments.large)
        if "diagnosis" in chosen:
            diagnosis.benchmark(arguments.rounds)
        if "comparison" in chosen:
            comparison.benchmark(arguments.rounds)
        if "page" in chosen:
            page.benchmark(Path(folder), arguments.rounds)
        if "fleet" in chosen:
            fleet.benchmark(Path(folder))
        if "recording" in chosen:
            recording.benchmark(Path(folder))


if __name__ == "__main__":
    main()
