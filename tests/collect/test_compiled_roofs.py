"""Kernels that read L2 and shared memory: what is left of their loads in machine code, and how many bytes a call reads."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ncuroof.collect.reachable_roofs import _SOURCE, l2_read, shared_read
from ncuroof.ingest.code.elf import Image

OPCODE, LDS, LDG, BRA = 0x1FF, 0x184, 0x181, 0x147
"""Low bits of an instruction, of loads from shared and from global memory, and of a branch, since Volta."""


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("architecture", [75, 80, 86, 89, 90])
@pytest.mark.parametrize(("kernel", "load", "per_pass"), [("shared_read", LDS, 8), ("l2_read", LDG, 4)])
def test_loads_stay_in_the_loop(tmp_path: Path, architecture: int, kernel: str, load: int, per_pass: int) -> None:
    # ld.shared without .volatile was taken out of it: 12 times the roof of an H100 came out
    source, compiled = tmp_path / "roofs.cu", tmp_path / "roofs.cubin"
    source.write_text(_SOURCE)
    subprocess.run(
        ["nvcc", f"-arch=sm_{architecture}", "-cubin", "-o", compiled, source], check=True, capture_output=True
    )
    code = bytes(Image(compiled.read_bytes()).code(kernel.encode()))
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    branches = [
        (at, target(at, word, is_hopper=architecture >= 90)) for at, word in enumerate(words) if word & OPCODE == BRA
    ]
    loops = [(at, to) for at, to in branches if to <= at]
    n_in_loops = [sum(word & OPCODE == load for word in words[to : at + 1]) for at, to in loops]
    # passes are unrolled by 4, with a loop for what is left over
    assert sorted(n for n in n_in_loops if n) == [per_pass, 4 * per_pass]
    assert sum(word & OPCODE == load for word in words) == sum(n_in_loops)


def target(at: int, word: int, *, is_hopper: bool) -> int:
    """Return which instruction a branch goes to: words of 4 bytes from the next one, bits 34 to 81, since Hopper and 16 to 23."""
    n_words, n_bits = word >> 34 & (1 << 48) - 1, 48
    if is_hopper:
        n_words, n_bits = n_words << 8 | (word >> 16 & 0xFF), 56
    return at + 1 + (n_words - (n_words >> n_bits - 1 << n_bits)) // 4


class Torch:
    """As much of PyTorch as a kernel is launched with; an H100 of 132 SMs and 50 MiB of L2."""

    def __init__(self) -> None:
        self.launched: list[tuple[Any, ...]] = []
        properties = SimpleNamespace(multi_processor_count=132, L2_cache_size=50 << 20)
        self.cuda = SimpleNamespace(
            get_device_properties=lambda device: properties,
            _compile_kernel=lambda source, name: lambda *launch: self.launched.append(launch),
        )

    def rand(self, n: int, device: str) -> int:
        return n

    def empty(self, n: int, device: str) -> int:
        return n


def test_a_call_reads_the_stated_number_of_bytes() -> None:
    torch = Torch()
    n_bytes, call = l2_read(torch, "cuda")
    call()
    # 64 blocks an SM, 64 steps of 4 loads of 16 bytes by 1024 threads
    assert n_bytes == 132 * 64 * 64 * 4 * 16 * 1024
    # a quarter of 50 MiB is 200 steps of 64 KiB; in numbers of 4 bytes 16 384 each
    assert torch.launched[-1] == ((64 * 132, 1, 1), (1024, 1, 1), [200 * 16384, 1, 200, 64])
    n_bytes, call = shared_read(torch, "cuda")
    call()
    # 16 blocks an SM, 1024 passes of 8 loads of 16 bytes by 256 threads
    assert n_bytes == 132 * 16 * 1024 * 8 * 16 * 256
    assert torch.launched[-1] == ((16 * 132, 1, 1), (256, 1, 1), [1, 1024])


def test_a_launch_lasts_much_longer_than_launching_it() -> None:
    # an H100 at 1.98 GHz: 5120 bytes a cycle of L2, 128 an SM of shared memory; to launch from Python takes tens of µs
    for read, bytes_per_s in ((l2_read, 5120 * 1.98e9), (shared_read, 132 * 128 * 1.98e9)):
        n_bytes, _ = read(Torch(), "cuda")
        assert n_bytes / bytes_per_s > 1e-3
