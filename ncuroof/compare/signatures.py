"""Kernel names without what changes from build to build: numbers of generated code, hashes, template arguments, tile sizes."""

from __future__ import annotations

import polars as pl

from ncuroof.collect.kernel_names import UNNAMED
from ncuroof.metrics.names import GENERIC, ascii_classes

_PARAMETERS = r"\((?:[^()]|\([^()]*\))*\)\s*(?:\[clone [^\]]*\])?$"
_TRITON_ARGUMENTS = r"_0d1d\w*$"
_HASH = r"_?\b[0-9a-f]*\d[0-9a-f]*[a-f][0-9a-f]{5,}\b|_[0-9a-f]{8,}$"
_LAST_NUMBER = r"(?:_?v?\d+)+$"
_NUMBER = r"\d+"
_ARGUMENTS = r"<.*>"
_OF_A_GENERIC = ascii_classes(rf"^(?:\w+::)*{GENERIC}<")
_TYPE = ascii_classes(
    r"\b(?:c10::(?:BFloat16|Half|Float8_\w+)|__half|__nv_bfloat16|bf16|fp16|float|double|bool|(?:unsigned |signed )?"
    r"(?:char|short|int|long long|long))\b"
)


def renamed(names: pl.Expr) -> pl.Expr:
    """Return names without unnamed namespaces, parameters, hashes and a number or version at the end.

    "triton_poi_fused_add_7" and "…_12" are one.
    """
    base = (
        names.str.replace_all(UNNAMED.pattern, "")
        .str.replace(_PARAMETERS, "")
        .str.replace(r"^void\s+", "")
        .str.replace(_TRITON_ARGUMENTS, "")
        .str.replace_all(_HASH, "")
        .str.strip_chars()
    )
    return base.str.replace(_LAST_NUMBER, "")


def variant(names: pl.Expr) -> pl.Expr:
    """Return names without template arguments and any number: tiles, types by width, autotuned variants are one.

    Of a template that says how it runs, such as `vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>`, the arguments say what
    it computes, and stay but for types.
    """
    whole = renamed(names)
    without = whole.str.replace(_ARGUMENTS, "")
    return (
        pl.when(whole.str.contains(_OF_A_GENERIC))
        .then(whole.str.replace_all(_TYPE, "").str.replace_all(r"\s+", " "))
        .otherwise(without)
        .str.replace_all(_NUMBER, "#")
    )


def range_path(nvtx: pl.Expr) -> pl.Expr:
    """Return the NVTX ranges of a launch as one text, their numbers left out: iterations of a loop are one; "" outside any."""
    return nvtx.list.join(" › ").fill_null("").str.replace_all(_NUMBER, "#")
