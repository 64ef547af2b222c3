"""Strip from kernel names what changes from build to build: numbers, hashes, template arguments, tile sizes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from ncuroof.metrics.names import GENERIC, ascii_classes
from ncuroof.ncu.kernel_names import UNNAMED

_LIBRARY_VERSION = ascii_classes(r"\b(?:CUB|THRUST|_V)_\d\d\d\d\d\d\w*::|\b__\d+::")
"""Inline namespaces of NVIDIA's CCCL, which change with toolkit and `-arch`: those of CUB and Thrust (`CUB_200200_800_900_NS`,
`CUB_300001_SM_900`, `_V_300304_SM_890`: cub/util_namespace.cuh), and the ABI version of libcu++ (`cuda::std::__4`)."""

_PARAMETERS = r"\((?:[^()]|\([^()]*\))*\)\s*(?:\[clone [^\]]*\])?$"
_TRITON_ARGUMENTS = r"_0d1d\w*$"
_HASH = r"_?\b[0-9a-f]*\d[0-9a-f]*[a-f][0-9a-f]{5,}\b|_0x[0-9a-f]{16,}|_[0-9a-f]{8,}$"
_HASH_WITHIN = r"_[0-9a-f]{8}(_cuda_kernel_(?:forward|backward))$|^(__omp_offloading)_[0-9a-f]+_[0-9a-f]+"
"""Warp: hash of a kernel's source (`wp.Kernel.get_mangled_name`). Clang: device and inode of the compiled file."""

_NUMBERS_OF_NVFUSER = r"_f\d+_c\d+_r\d+_g\d+$"
_LAST_NUMBER = r"(?:[._]{0,2}v?\d+)+$"
_LINE = ascii_classes(
    r"(__omp_offloading_\w*_l)\d+(?:_\d+)?$"  # Clang: line of the target region, number within a macro
    r"|(_F)\d+L\d+_\d+_?$|_\d+(_gpu(?:__red)?)$"  # NVIDIA's HPC compilers: OpenMP's nvkernel_main_F1L34_2, OpenACC's main_34_gpu
    r"|(\$ck_L)\d+_\d+((?:_cce[\w$]*)?)$"  # Cray: main_$ck_L34_2
)
"""The source line, as compilers put it into kernel names."""

_NUMBERED = ascii_classes(
    r"^triton_[a-z]{3}_fused_\w*\d$|^triton_(?:softmax|gemm)\w*$"  # PyTorch's Inductor; XLA
    r"|(?:^|_)fusion(?:_[a-z]+)*(?:[._]+\d+)*$|^wrapped_[a-z_]+\d*$"  # XLA, the first of a name without a number
    r"|^__myl_\w+$|(?:^|::)nvfuser_\w+_g\d+\b|^julia_\w+_\d+\b"  # TensorRT's Myelin; nvFuser; Julia
    r"|[.$]_omp_fn[.$]\d+$"  # GCC, OpenMP and OpenACC
)
"""Names that a compiler numbers in order: a kernel more or less changes the numbers of all later ones."""

_NUMBER_OF_LAMBDA = ascii_classes(
    r"(\(instance )\d+\)|(\{lambda\([^()]*\)#)\d+\}|(\b__nv_h?dl_tag<[^;]*?\(unsigned int\))\d+"
)
"""The number of a lambda within its function, as NVIDIA, GNU and nvcc write it."""

_PYTORCH = ascii_classes(r"\bat::")
"""In PyTorch, the number of a lambda stands for its type, and does not change from run to run."""

_NUMBER = r"\d+"
_ARGUMENTS = r"<.*>"
_OF_A_GENERIC = ascii_classes(rf"^(?:\w+::)*{GENERIC}<")
_TYPE = ascii_classes(
    r"\b(?:c10::(?:BFloat16|Half|Float8_\w+)|cutlass::(?:half_t|b?float\w*_t|tfloat32_t)|__half2?|__nv_bfloat162?|bf16|fp16|"
    r"u?int\d*_t|size_t|true|false|(?:float|double|u?(?:char|short|int|long|longlong))[1-4]?|"
    r"(?:unsigned |signed )?(?:char|short|int|long long|long)|bool)\b"
)


def without_versions(names: pl.Expr) -> pl.Expr:
    """Return names without the namespaces for versions and architectures of CUB, Thrust and libcu++."""
    return names.str.replace_all(_LIBRARY_VERSION, "")


def texts_without_versions(names: Sequence[str]) -> list[str]:
    """Apply `without_versions` to texts."""
    table = pl.DataFrame({"name": names}, schema={"name": pl.String})
    return table.select(without_versions(pl.col("name")))["name"].to_list()


def without_parameters(names: pl.Expr) -> pl.Expr:
    """Return names without library versions, unnamed namespaces, parameters and the return type void."""
    return (
        without_versions(names)
        .str.replace_all(UNNAMED.pattern, "")
        .str.replace(_PARAMETERS, "")
        .str.replace(r"^void\s+", "")
    )


def renamed(names: pl.Expr) -> pl.Expr:
    """Return names without unnamed namespaces, parameters, hashes, source lines and a number or version at the end.

    "triton_poi_fused_add_7" and "triton_poi_fused_add_12" become the same name.
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
    """Return whether a compiler put a number or a source line into a name, so that equal numbers are no evidence."""
    plain = names.str.replace(r"\(\)$", "")
    return (
        plain.str.replace(_TRITON_ARGUMENTS, "").str.contains(_NUMBERED)
        | plain.str.contains(_LINE)
        | _is_of_lambda(names)
    )


def _is_of_lambda(names: pl.Expr) -> pl.Expr:
    return names.str.contains(_NUMBER_OF_LAMBDA) & ~names.str.contains(_PYTORCH)


def variant(names: pl.Expr) -> pl.Expr:
    """Return names without template arguments and numbers: tile sizes, type widths and autotuned variants become the same name.

    Generic templates, such as `vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>`, keep their arguments except types,
    because the arguments say what is computed.
    """
    whole = renamed(names)
    without = whole.str.replace(_ARGUMENTS, "").str.replace_all(_NUMBER, "#")
    return pl.when(whole.str.contains(_OF_A_GENERIC)).then(_without_sizes(whole)).otherwise(without)


def with_arguments(names: pl.Expr) -> pl.Expr:
    """Return names as `variant` does, but keep template arguments other than numbers and types: they may say what is computed."""
    return _without_sizes(renamed(names))


def _without_sizes(names: pl.Expr) -> pl.Expr:
    return names.str.replace_all(_TYPE, "").str.replace_all(r"\s+", " ").str.replace_all(_NUMBER, "#")


def range_path(nvtx: pl.Expr) -> pl.Expr:
    """Return the NVTX ranges of a launch as one text, without numbers, so that iterations of a loop agree; "" without ranges."""
    return nvtx.list.join(" › ").fill_null("").str.replace_all(_NUMBER, "#")
