"""Element types: their size, and the roofs that apply to work on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ncuroof.enums import Precision
from ncuroof.errors import ArgumentError, UnknownNameError

_TF32_SINCE = (8, 0)
"""Compute capability of the first tensor cores that multiply TF32 (PTX ISA, mma: .tf32 requires sm_80)."""

FP32, FP64 = (Precision.FP32.value,), (Precision.FP64.value,)


@dataclass(frozen=True, slots=True)
class Dtype:
    """The type of a tensor's elements.

    Attributes:
        name: e.g. "bf16".
        bits: bits per element, shared scale factors included.
        matrix: roofs of matrix products, the preferred one first; the first that a GPU has applies (but see `is_unstated`). Empty
            for types without matrix products.
        vector: roof of all other arithmetic. Types narrower than FP32 are converted to FP32 for it, as PyTorch's kernels do.
    """

    name: str
    bits: float
    matrix: tuple[str, ...]
    vector: tuple[str, ...] = FP32

    @property
    def bytes(self) -> float:
        """Bytes per element."""
        return self.bits / 8


def _tensor(precision: Precision, *fallback: Precision) -> tuple[str, ...]:
    return tuple(each.value for each in (precision, *fallback))


_ALL = (
    Dtype("fp64", 64, _tensor(Precision.TENSOR_FP64, Precision.FP64), FP64),
    Dtype("fp32", 32, FP32),
    Dtype("tf32", 32, _tensor(Precision.TENSOR_TF32, Precision.FP32)),
    Dtype("fp16", 16, _tensor(Precision.TENSOR_FP16, Precision.FP16)),
    Dtype("bf16", 16, _tensor(Precision.TENSOR_BF16)),
    Dtype("fp8", 8, _tensor(Precision.TENSOR_FP8)),
    Dtype("fp6", 6, _tensor(Precision.TENSOR_FP6)),
    Dtype("fp4", 4, _tensor(Precision.TENSOR_FP4)),
    # OCP Microscaling Formats v1.0, section 5: an 8-bit scale per 32 elements.
    Dtype("mxfp8", 8 + 8 / 32, _tensor(Precision.TENSOR_FP8)),
    Dtype("mxfp6", 6 + 8 / 32, _tensor(Precision.TENSOR_FP6)),
    Dtype("mxfp4", 4 + 8 / 32, _tensor(Precision.TENSOR_FP4)),
    # cuDNN and CUTLASS documentation of NVFP4: an FP8 scale per 16 elements; the scale per tensor is not counted.
    Dtype("nvfp4", 4 + 8 / 16, _tensor(Precision.TENSOR_FP4)),
    Dtype("int8", 8, _tensor(Precision.TENSOR_INT8)),
    Dtype("int4", 4, _tensor(Precision.TENSOR_INT4)),
    # Indices, masks, counters, and types without a peak in any data sheet.
    Dtype("complex128", 128, (), FP64),
    Dtype("complex64", 64, ()),
    Dtype("int64", 64, ()),
    Dtype("int32", 32, ()),
    Dtype("int16", 16, ()),
    Dtype("bool", 8, ()),
)

DTYPES: Mapping[str, Dtype] = MappingProxyType({dtype.name: dtype for dtype in _ALL})
"""All element types by name; floating-point types from the widest to the narrowest."""

_OTHER_NAMES: Mapping[str, str] = {
    "double": "fp64", "float64": "fp64", "float": "fp32", "float32": "fp32", "half": "fp16", "float16": "fp16",
    "bfloat16": "bf16", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "float8_e4m3fnuz": "fp8", "float8_e5m2fnuz": "fp8",
    "e4m3": "fp8", "e5m2": "fp8", "uint8": "int8", "float4_e2m1fn_x2": "int8", "float8_e8m0fnu": "int8", "long": "int64",
    "int": "int32", "short": "int16", "uint16": "int16", "uint32": "int32", "uint64": "int64", "cfloat": "complex64",
}  # fmt: skip
"""PyTorch's and other names of these types. An element of float4_e2m1fn_x2 is a byte that holds two numbers."""


def dtype_of(name: str | Dtype) -> Dtype:
    """Return the element type called `name`, in ncuroof's spelling ("bf16") or PyTorch's ("torch.bfloat16", "c10::BFloat16").

    An element type is returned unchanged.

    Raises:
        ArgumentError: `name` is neither a string nor an element type.
        UnknownNameError: no element type has that name; the hint lists all names.
    """
    if isinstance(name, Dtype):
        return name
    if not isinstance(name, str):
        found = type(name).__name__
        raise ArgumentError(
            f"expected the name of an element type, found {found}", hint=f"use one of: {', '.join(DTYPES)}"
        )
    wanted = name.lower().removeprefix("torch.").removeprefix("c10::")
    wanted = _OTHER_NAMES.get(wanted, wanted)
    if wanted in DTYPES:
        return DTYPES[wanted]
    raise UnknownNameError(f"no element type is called {name!r}", hint=f"use one of: {', '.join(DTYPES)}")


def is_unstated(precision: str, compute_capability: str | None) -> bool:
    """Return whether a GPU has matrix products in a precision whose peak its data sheet does not state: no fallback roof applies.

    Args:
        precision: name of the roof, a value of `Precision`.
        compute_capability: e.g. "8.7"; None for machines that are not GPUs.
    """
    if precision != Precision.TENSOR_TF32.value or compute_capability is None:
        return False
    return tuple(map(int, compute_capability.split("."))) >= _TF32_SINCE


def wider(first: Dtype, second: Dtype) -> Dtype:
    """Return the type that a product of both runs in: the one with more bits, or the first if they are equal."""
    return second if second.bits > first.bits else first
