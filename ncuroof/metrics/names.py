"""Kernel names for people: short enough for a table, telling enough to find the kernel again, and whose code it is."""

from __future__ import annotations

import polars as pl

_GENERIC = (
    r"^(Kernel2?|kernel|device_kernel|[a-z_]*elementwise_kernel\w*|reduce_kernel|distribution_\w+|cunn_\w+|"
    r"DeviceReduce\w*|DeviceScan\w*|DeviceRadixSort\w*|_kernel_agent)$"
)
"""Names that say how a kernel runs and not what it computes: a template argument says that."""

_TELLING = r"(cutlass_\w+|\w*[Ff]unctor\w*|\w+_kernel_cuda|\w*(?:Mean|Sum|Max|Min|Norm|Arg)\w*Ops|\w+_functor)"

_FAMILIES = (
    ("pytorch", r"at::(native|cuda)|^void (at|c10|torch)::|pytorch_flash|fmha_cutlass|multi_tensor_apply"),
    ("triton", r"^triton_|^_?\w+_kernel_0d1d|_0d1d"),
    (
        "library",
        r"cublas|cudnn|^(sm\d\d|ampere|volta|turing|maxwell|hopper|ada)_\w*(gemm|xmma|conv|scudnn|sgemm|fprop|dgrad|wgrad)"
        r"|^void (cutlass|cub|thrust|cask)|nchwToNhwc|^nccl|ncclKernel|ncclDevKernel|gemvNSP|gemv2|splitKreduce"
        r"|winograd|cusparse|cufft|regular_fft|vector_fft",
    ),
)
"""Families by a pattern of the demangled name, the first match wins; everything else is the user's own code."""


def short_name(function: pl.Expr, demangled: pl.Expr) -> pl.Expr:
    """Return the function's name, with the telling template argument where the name alone says nothing."""
    telling = demangled.str.extract(_TELLING)
    is_generic = function.str.contains(_GENERIC) & telling.is_not_null() & (telling != function)
    return pl.when(is_generic).then(pl.format("{}<{}>", function, telling)).otherwise(function)


def family(demangled: pl.Expr) -> pl.Expr:
    """Return whose code a kernel is: "pytorch", "triton", "library" or "user"."""
    expression = pl.lit("user")
    for name, pattern in reversed(_FAMILIES):
        expression = pl.when(demangled.str.contains(pattern)).then(pl.lit(name)).otherwise(expression)
    return expression
