"""A constructed kernel that uses every kind of unit a little, on any GPU."""

from __future__ import annotations

from tests.support.constructed import Accesses, Described, Shared


def every_unit(gpu: str, tensor_path: str) -> Described:
    """Return a kernel of 1 ms.

    Args:
        gpu: key of `constructed_gpus.GPUS`.
        tensor_path: counter of the kernel's tensor operations, one that the GPU has.
    """
    return Described(
        "every_unit",
        1_000_000,
        gpu=gpu,
        loads=Accesses(200_000, 8.5, 24, 6, hit_frac=0.25),
        stores=Accesses(50_000, 4),
        local_loads=Accesses(10_000, 4, hit_frac=0.5),
        shared_loads=Shared(100_000, conflict_ways=3),
        shared_stores=Shared(100_000),
        dram_read_bytes=2**24,
        dram_write_bytes=2**20,
        fp64=(1e6, 2e6, 3e6),
        fp32=(4e8, 5e8, 6e8),
        fp16=(7e6, 8e6, 9e6),
        tensor={tensor_path: 1e10},
        stalls={"long_scoreboard": 0.4, "not_selected": 0.1},
    )
