"""Element types: how many bytes they take, and under which roofs work on them runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ncuroof.errors import ArgumentError, UnknownNameError
from ncuroof.words import Precision

_TF32_SINCE = (8, 0)
"""Compute capability of the first tensor cores that multiply TF32 (PTX ISA, mma: .tf32 requires sm_80)."""

FP32, FP64 = (Precision.FP32.value,), (Precision.FP64.value,)


@dataclass(frozen=True, slots=True)
class Dtype:
    """The type of a tensor's elements.

    Attributes:
        name: e.g. "bf16".
        bits: of an element, shared scale factors included.
        matrix: roofs of matrix products, the preferred first: the first one that a GPU has counts (`is_unstated`). Empty for
            types that no product is made in.
        vector: roof of all other arithmetic. Types narrower than FP32 are widened to FP32 for it, as PyTorch's kernels do.
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
    # OCP Microscaling Formats v1.0, section 5: a scale of 8 bits per 32 elements.
    Dtype("mxfp8", 8 + 8 / 32, _tensor(Precision.TENSOR_FP8)),
    Dtype("mxfp6", 6 + 8 / 32, _tensor(Precision.TENSOR_FP6)),
    Dtype("mxfp4", 4 + 8 / 32, _tensor(Precision.TENSOR_FP4)),
    # cuDNN and CUTLASS documentation of NVFP4: an FP8 scale per 16 elements; the one per tensor is left out.
    Dtype("nvfp4", 4 + 8 / 16, _tensor(Precision.TENSOR_FP4)),
    Dtype("int8", 8, _tensor(Precision.TENSOR_INT8)),
    Dtype("int4", 4, _tensor(Precision.TENSOR_INT4)),
    # Indices, masks and counters, and types that no GPU's data sheet has a roof for.
    Dtype("complex128", 128, (), FP64),
    Dtype("complex64", 64, ()),
    Dtype("int64", 64, ()),
    Dtype("int32", 32, ()),
    Dtype("int16", 16, ()),
    Dtype("bool", 8, ()),
)

DTYPES: Mapping[str, Dtype] = MappingProxyType({dtype.name: dtype for dtype in _ALL})
"""By name, floating-point types from the widest to the narrowest."""

_OTHER_NAMES: Mapping[str, str] = {
    "double": "fp64", "float64": "fp64", "float": "fp32", "float32": "fp32", "half": "fp16", "float16": "fp16",
    "bfloat16": "bf16", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "float8_e4m3fnuz": "fp8", "float8_e5m2fnuz": "fp8",
    "e4m3": "fp8", "e5m2": "fp8", "uint8": "int8", "float4_e2m1fn_x2": "int8", "float8_e8m0fnu": "int8", "long": "int64",
    "int": "int32", "short": "int16", "uint16": "int16", "uint32": "int32", "uint64": "int64", "cfloat": "complex64",
}  # fmt: skip
"""PyTorch's and other names. An element of float4_e2m1fn_x2 is a byte that holds two numbers."""


def dtype_of(name: str | Dtype) -> Dtype:
    """Return the element type called `name`: ours ("bf16") or PyTorch's ("torch.bfloat16", "c10::BFloat16").

    Raises:
        ArgumentError: it is no name.
        UnknownNameError: there is none; the hint lists what there is.
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
    """Return whether a GPU multiplies in a type all the same, though its data sheet states no peak: no other roof holds for it.

    Args:
        precision: roof, as a data sheet names it.
        compute_capability: "8.7"; None for what is no GPU.
    """
    if precision != Precision.TENSOR_TF32.value or compute_capability is None:
        return False
    return tuple(map(int, compute_capability.split("."))) >= _TF32_SINCE


def wider(first: Dtype, second: Dtype) -> Dtype:
    """Return the type that a product of both is made in: the one with more bits, the first where they are equal."""
    return second if second.bits > first.bits else first
