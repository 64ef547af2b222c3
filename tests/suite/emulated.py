"""Compiles the suite's CUDA programs for a CPU and runs their cases: threads are fibers, and memory ends where an array does."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cases import HERE

HEADERS = Path(__file__).resolve().parent / "cuda_on_cpu"
_ASSEMBLY = re.compile(r'asm volatile\(\s*"[^"].*?\);', re.DOTALL)
_DYNAMIC = re.compile(r"extern __shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[\];")
_CALLEE = re.compile(r"[\w:]+(?:<[^<>;()]*>)?$")


@dataclass(frozen=True)
class Freed:
    """A buffer as it was given back: its size, and the sum of its values."""

    n_bytes: int
    total: float


def on_cpu(source: str) -> str:
    """Return a program's text with its launches as calls, what a block shares as static variables, and without assembly."""
    source = _ASSEMBLY.sub(";", source)
    source = _DYNAMIC.sub(r"\1* \2 = reinterpret_cast<\1*>(dynamic_shared.data());", source)
    source = source.replace("__shared__", "static")
    while "<<<" in source:
        source = _with_call(source)
    return source


def _with_call(source: str) -> str:
    at = source.index("<<<")
    close = source.index(">>>", at)
    callee = _CALLEE.search(source[:at])
    assert callee, source[at - 60 : at]
    end = _closed(source, close + 3)
    grid, block, *shared = _parts(source[at + 3 : close])
    call = f"{callee[0]}{source[close + 3 : end]}"
    replaced = f"emulate({grid}, {block}, {shared[0] if shared else '0'}, [&] {{ {call}; }})"
    return source[: callee.start()] + replaced + source[end:]


def _closed(source: str, opening: int) -> int:
    """Return the index after the parenthesis that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(source)):
        depth += {"(": 1, ")": -1}.get(source[index], 0)
        if not depth:
            return index + 1
    raise AssertionError("a parenthesis is not closed")


def _parts(arguments: str) -> list[str]:
    parts, depth = [""], 0
    for letter in arguments:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def built(program: str, folder: Path, source: Path | None = None) -> Path:
    """Return a program of the suite, or another one, compiled for this machine."""
    for path in (source or HERE / program, HERE / "harness.cuh", HERE / "data.cuh"):
        (folder / path.name).write_text(on_cpu(path.read_text(encoding="utf-8")), encoding="utf-8")
    made = folder / program.removesuffix(".cu")
    command = [
        "c++",
        "-std=c++17",
        "-O1",
        "-x",
        "c++",
        "-w",
        "-include",
        "cuda_runtime.h",
        f"-I{HEADERS}",
        f"-I{folder}",
        "-o",
        made,
        folder / program,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


def ran(program: Path, function: str, sizes: dict[str, int]) -> list[Freed]:
    """Return the buffers of a case, the last one that was made first."""
    words = [program, "id", function, *(f"{name}={value}" for name, value in sizes.items())]
    environment = {"PER_SM": str(sizes.get("per_sm", 1))}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, (function, sizes, done.returncode, done.stderr)
    lines = (line.split() for line in done.stdout.splitlines())
    return [Freed(int(n_bytes), float(total)) for _, n_bytes, total in lines]
