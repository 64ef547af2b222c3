"""Kernel names without what changes from build to build: numbers of generated code, hashes, template arguments, tile sizes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ncuroof.metrics.names import GENERIC, ascii_classes
from ncuroof.ncu.kernel_names import UNNAMED

_LIBRARY_VERSION = ascii_classes(r"\b(?:CUB|THRUST|_V)_\d\d\d\d\d\d\w*::|\b__\d+::")
"""Inline namespaces of NVIDIA's CCCL: version and architectures of CUB and Thrust (`CUB_200200_800_900_NS`, `CUB_300001_SM_900`,
`_V_300304_SM_890`: cub/util_namespace.cuh), version of libcu++'s ABI (`cuda::std::__4`). A toolkit or `-arch` more has others."""

_PARAMETERS = r"\((?:[^()]|\([^()]*\))*\)\s*(?:\[clone [^\]]*\])?$"
_TRITON_ARGUMENTS = r"_0d1d\w*$"
_HASH = r"_?\b[0-9a-f]*\d[0-9a-f]*[a-f][0-9a-f]{5,}\b|_0x[0-9a-f]{16,}|_[0-9a-f]{8,}$"
_HASH_WITHIN = r"_[0-9a-f]{8}(_cuda_kernel_(?:forward|backward))$|^(__omp_offloading)_[0-9a-f]+_[0-9a-f]+"
"""Of Warp, of a kernel's source (`wp.Kernel.get_mangled_name`); of Clang, device and inode of the file that was compiled."""

_NUMBERS_OF_NVFUSER = r"_f\d+_c\d+_r\d+_g\d+$"
_LAST_NUMBER = r"(?:[._]{0,2}v?\d+)+$"
_LINE = ascii_classes(
    r"(__omp_offloading_\w*_l)\d+(?:_\d+)?$"  # Clang: the line of the target region, and which of several that a macro put there
    r"|(_F)\d+L\d+_\d+_?$|_\d+(_gpu(?:__red)?)$"  # NVIDIA's HPC compilers: OpenMP's nvkernel_main_F1L34_2, OpenACC's main_34_gpu
    r"|(\$ck_L)\d+_\d+((?:_cce[\w$]*)?)$"  # Cray: main_$ck_L34_2
)
"""The line of the source that a compiler makes a part of a kernel's name."""

_NUMBERED = ascii_classes(
    r"^triton_[a-z]{3}_fused_\w*\d$|^triton_(?:softmax|gemm)\w*$"  # PyTorch's Inductor; XLA
    r"|(?:^|_)fusion(?:_[a-z]+)*(?:[._]+\d+)*$|^wrapped_[a-z_]+\d*$"  # XLA, the first of a name without a number
    r"|^__myl_\w+$|(?:^|::)nvfuser_\w+_g\d+\b|^julia_\w+_\d+\b"  # TensorRT's Myelin; nvFuser; Julia
    r"|[.$]_omp_fn[.$]\d+$"  # GCC, OpenMP and OpenACC
)
"""Names that a compiler numbers as it goes: a kernel more or less moves the numbers of all that follow."""

_NUMBER_OF_LAMBDA = ascii_classes(
    r"(\(instance )\d+\)|(\{lambda\([^()]*\)#)\d+\}|(\b__nv_h?dl_tag<[^;]*?\(unsigned int\))\d+"
)
"""Of which lambda of a function it is, as NVIDIA's, GNU's and nvcc's names have it."""

_PYTORCH = ascii_classes(r"\bat::")
"""There a lambda's number says for which type it is, and stays as it is from run to run."""

_NUMBER = r"\d+"
_ARGUMENTS = r"<.*>"
_OF_A_GENERIC = ascii_classes(rf"^(?:\w+::)*{GENERIC}<")
_TYPE = ascii_classes(
    r"\b(?:c10::(?:BFloat16|Half|Float8_\w+)|cutlass::(?:half_t|b?float\w*_t|tfloat32_t)|__half2?|__nv_bfloat162?|bf16|fp16|"
    r"u?int\d*_t|size_t|true|false|(?:float|double|u?(?:char|short|int|long|longlong))[1-4]?|"
    r"(?:unsigned |signed )?(?:char|short|int|long long|long)|bool)\b"
)


def without_versions(names: pl.Expr) -> pl.Expr:
    """Return names without the namespaces that say for what and of which version CUB, Thrust and libcu++ were compiled."""
    return names.str.replace_all(_LIBRARY_VERSION, "")


def texts_without_versions(names: Sequence[str]) -> list[str]:
    """Return texts as `without_versions` does columns."""
    table = pl.DataFrame({"name": names}, schema={"name": pl.String})
    return table.select(without_versions(pl.col("name")))["name"].to_list()


def without_parameters(names: pl.Expr) -> pl.Expr:
    """Return names without versions of libraries, unnamed namespaces, parameters, and that nothing is returned."""
    return (
        without_versions(names)
        .str.replace_all(UNNAMED.pattern, "")
        .str.replace(_PARAMETERS, "")
        .str.replace(r"^void\s+", "")
    )


def renamed(names: pl.Expr) -> pl.Expr:
    """Return names without unnamed namespaces, parameters, hashes, lines of the source and a number or version at the end.

    "triton_poi_fused_add_7" and "…_12" are one.
    """
    base = (
        without_parameters(names)
        .str.replace(_TRITON_ARGUMENTS, "")
        .str.replace(_HASH_WITHIN, "$1$2")
        .str.replace(_LINE, "$1$2$3$4$5")
        .str.replace_all(_HASH, "")
        .str.replace(_NUMBERS_OF_NVFUSER, "")
        .str.strip_chars()
    )
    without = pl.when(_is_of_lambda(names)).then(base.str.replace_all(_NUMBER_OF_LAMBDA, "$1$2$3")).otherwise(base)
    return without.str.replace(_LAST_NUMBER, "")


def numbered(names: pl.Expr) -> pl.Expr:
    """Return whether a compiler numbered what has the name, or named it by a line: an equal number is no evidence."""
    plain = names.str.replace(r"\(\)$", "")
    return (
        plain.str.replace(_TRITON_ARGUMENTS, "").str.contains(_NUMBERED)
        | plain.str.contains(_LINE)
        | _is_of_lambda(names)
    )


def _is_of_lambda(names: pl.Expr) -> pl.Expr:
    return names.str.contains(_NUMBER_OF_LAMBDA) & ~names.str.contains(_PYTORCH)


def variant(names: pl.Expr) -> pl.Expr:
    """Return names without template arguments and any number: tiles, types by width, autotuned variants are one.

    Of a template that says how it runs, such as `vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>`, the arguments say what
    it computes, and stay but for types.
    """
    whole = renamed(names)
    without = whole.str.replace(_ARGUMENTS, "").str.replace_all(_NUMBER, "#")
    return pl.when(whole.str.contains(_OF_A_GENERIC)).then(_without_sizes(whole)).otherwise(without)


def with_arguments(names: pl.Expr) -> pl.Expr:
    """Return names as `variant`, with template arguments but for numbers and types: the rest may say what is computed."""
    return _without_sizes(renamed(names))


def _without_sizes(names: pl.Expr) -> pl.Expr:
    return names.str.replace_all(_TYPE, "").str.replace_all(r"\s+", " ").str.replace_all(_NUMBER, "#")


def range_path(nvtx: pl.Expr) -> pl.Expr:
    """Return the NVTX ranges of a launch as one text, their numbers left out: iterations of a loop are one; "" outside any."""
    return nvtx.list.join(" › ").fill_null("").str.replace_all(_NUMBER, "#")
