"""Find the element type of a call's tensors, which NVTX ranges lack: from tensor-core counters, else from kernel names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ncuroof.enums import TENSOR_PREFIX
from ncuroof.model.dtypes import DTYPES

_BY_PRECISION: Mapping[str, str] = {
    dtype.matrix[0]: dtype.name
    for dtype in reversed(tuple(DTYPES.values()))  # the plain type wins over those with shared scale factors
    if dtype.matrix and dtype.matrix[0].startswith(TENSOR_PREFIX)
}
_NARROW = (
    ("bf16", re.compile(r"bfloat16|(?<![a-z0-9])bf16|bf16(?![0-9a-z])", re.IGNORECASE)),
    (
        "fp16",
        re.compile(
            r"c10::half|__half\b|(?<![a-z])float16|(?<![a-z0-9])(f16|fp16|half)(?![a-z])|hgemm|h16816|s16816gemm_fp16",
            re.IGNORECASE,
        ),
    ),
)
"""Types to look for first: kernels on tensors of these types compute in FP32, which their names also mention."""

_WIDE = (
    ("fp64", re.compile(r"\bdouble[1-4]?\b|float64|dgemm|f64f64", re.IGNORECASE)),
    ("fp32", re.compile(r"\bfloat(32|[1-4])?\b|sgemm|(?<![a-z])(f32|fp32|tf32)", re.IGNORECASE)),
)
"""Types of which the first in the name counts: types of accumulators and of numbers, such as learning rates, come after it."""

_SCALAR = re.compile(r"\s*(const\s+)?(double|float|__half|__nv_bfloat16|c10::\w+|T\d+)(\s+(const\s+)?\w+)?\s*")
"""A parameter that is a number, such as a learning rate, which says nothing about the tensors."""

_CONVERTS = re.compile(r"(Load|Store)WithCast|float16_copy_kernel")
"""PyTorch's kernels that convert: their tensors have different types."""


def element_type(tensor_precisions: Iterable[str], names: Iterable[str]) -> str | None:
    """Return the element type of a call's tensors; None if neither counters nor names show it, or if the call converts types.

    Args:
        tensor_precisions: tensor precisions in which its launches did work, without the sparsity suffix.
        names: demangled names of its kernels.
    """
    by_counters = [_BY_PRECISION[precision] for precision in tensor_precisions if precision in _BY_PRECISION]
    if by_counters:
        return by_counters[0]
    text = "\n".join(map(_without_scalars, names))
    if _CONVERTS.search(text):
        return None
    narrow = next((dtype for dtype, pattern in _NARROW if pattern.search(text)), None)
    if narrow is not None:
        return narrow
    wide = ((found.start(), dtype) for dtype, pattern in _WIDE if (found := pattern.search(text)))
    return min(wide, default=(0, None))[1]


def _without_scalars(name: str) -> str:
    """Return a demangled name without the parameters that are plain numbers."""
    function, opening, parameters = name.rpartition("(")
    if not opening or not parameters.endswith(")") or parameters.count(")") != 1:
        return name
    kept = (each for each in parameters[:-1].split(",") if not _SCALAR.fullmatch(each))
    return f"{function}({','.join(kept)})"
