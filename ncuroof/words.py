"""The names that all rooms share: precisions, memory levels, verdicts, kinds of workload, and how GPUs are numbered.

The values are the names of the JSON document (`ncuroof.analysis/1`) and of the profiles; renaming one breaks readers.
"""

from __future__ import annotations

from enum import Enum

NAMELESS = "(no name)"
"""What a kernel is called of which no report tells a name."""


class MemoryLevel(str, Enum):
    """A level of the memory hierarchy that has a roof, from the farthest to the nearest."""

    DRAM = "dram"
    L2 = "l2"
    L1 = "l1"
    SHARED = "shared"


class Precision(str, Enum):
    """A class of arithmetic with a ceiling of its own; `tensor_*` is named by the type of the inputs."""

    FP64 = "fp64"
    FP32 = "fp32"
    FP16 = "fp16"
    TENSOR_FP64 = "tensor_fp64"
    TENSOR_TF32 = "tensor_tf32"
    TENSOR_BF16 = "tensor_bf16"
    TENSOR_FP16 = "tensor_fp16"
    TENSOR_FP8 = "tensor_fp8"
    TENSOR_FP6 = "tensor_fp6"
    TENSOR_FP4 = "tensor_fp4"
    TENSOR_INT8 = "tensor_int8"
    TENSOR_INT4 = "tensor_int4"
    TENSOR_INT1 = "tensor_int1"


SPARSE_SUFFIX = "_sparse"
"""Appended to a tensor precision whose work ran on the structured-sparsity path: it has twice the dense ceiling."""


SLOWER_PATH_SUFFIX = "_slower_path"
"""Appended to the ceiling of a tensor path that is slower than another one of the same type: mma.sync on Hopper."""


class Verdict(str, Enum):
    """What bounds a kernel; `profiles/rules.toml` says how it is told."""

    MEMORY = "memory"
    COMPUTE = "compute"
    BALANCED = "balanced"
    LATENCY = "latency"
    OVERHEAD = "overhead"
    UNKNOWN = "unknown"


class Side(str, Enum):
    """Where a kernel's DRAM intensity lies relative to the ridge of the precision that takes it longest."""

    MEMORY = "memory"
    NEAR_RIDGE = "near_ridge"
    COMPUTE = "compute"


class Confidence(str, Enum):
    """How sure a verdict is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class CeilingSource(str, Enum):
    """Where the number behind a roof comes from."""

    COUNTERS = "counters"
    DATASHEET = "datasheet"
    MEASURED = "measured"


def capability_text(capability: int) -> str:
    """Return a compute capability (major × 10 + minor) as it is written: "9.0"."""
    return f"{capability // 10}.{capability % 10}"
