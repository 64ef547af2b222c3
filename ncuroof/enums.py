"""Names that all parts of ncuroof share: precisions, memory levels, verdicts, sides of the ridge, sources of ceilings.

The values appear in the JSON document (`ncuroof.analysis/1`) and in the profiles; renaming one breaks their readers.
"""

from __future__ import annotations

from enum import Enum

NAMELESS = "(no name)"
"""Displayed for a kernel whose name the report does not contain."""


class MemoryLevel(str, Enum):
    """A level of the memory hierarchy that has a roof, from the farthest from the SM to the nearest."""

    DRAM = "dram"
    L2 = "l2"
    L1 = "l1"
    SHARED = "shared"


class Precision(str, Enum):
    """A kind of arithmetic with its own peak; `tensor_*` are tensor-core precisions, named by the type of the inputs."""

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


TENSOR_PREFIX = "tensor_"
"""Prefix of the names of precisions on tensor cores."""

SPARSE_SUFFIX = "_sparse"
"""Appended to a tensor precision for work on the structured-sparsity path, whose peak is usually twice the dense one."""


SPARSE_SPEEDUP = 2.0
"""Structured sparsity doubles a tensor peak (NVIDIA A100 Tensor Core GPU Architecture, "Sparsity").

B300's FP4 peak is only a third higher with sparsity: its data sheet says so, and counters there are split by sparsity."""

SLOWER_PATH_SUFFIX = "_slower_path"
"""Appended to the name of a ceiling for a tensor path that is slower than another path of the same type: mma.sync on Hopper."""


class Verdict(str, Enum):
    """What bounds a kernel; the decision tree in `profiles/rules.toml` decides."""

    MEMORY = "memory"
    COMPUTE = "compute"
    BALANCED = "balanced"
    LATENCY = "latency"
    OVERHEAD = "overhead"
    UNKNOWN = "unknown"


class Side(str, Enum):
    """The side of the ridge that a kernel's DRAM intensity is on: the ridge of its dominant precision (the longest at its peak)."""

    MEMORY = "memory"
    NEAR_RIDGE = "near_ridge"
    COMPUTE = "compute"


class Confidence(str, Enum):
    """How sure a verdict is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class CeilingSource(str, Enum):
    """Where a roof's value comes from: counters of the report, the GPU's data sheet, or a calibration."""

    COUNTERS = "counters"
    DATASHEET = "datasheet"
    MEASURED = "measured"


def capability_text(capability: int) -> str:
    """Return a compute capability (major × 10 + minor) as NVIDIA writes it: "9.0" for 90."""
    return f"{capability // 10}.{capability % 10}"
