"""Kernel names for people: short enough for a table, specific enough to find the kernel again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

import polars as pl

from ncuroof.ncu.kernel_names import UNNAMED

_ASCII_CLASSES = {r"\w": "[0-9A-Za-z_]", r"\d": "[0-9]", r"\b": r"(?-u:\b)"}


def ascii_classes(pattern: str) -> str:
    """Return a regular expression whose classes match ASCII only, as in kernel names: Unicode classes take five times as long."""
    for name, characters in _ASCII_CLASSES.items():
        pattern = pattern.replace(name, characters)
    return pattern


def matches(names: pl.Expr, pattern: str) -> pl.Expr:
    """Return whether kernel names match a regular expression anywhere; its classes match ASCII only."""
    return names.str.contains(ascii_classes(pattern))


GENERIC = (
    r"(?:Kernel2?|kernel|device_kernel|"  # CUTLASS
    r"[a-z_]*elementwise_kernel\w*|reduce_kernel|distribution_\w+|cunn_\w+|"  # PyTorch
    r"DeviceReduce\w*|DeviceScan\w*|DeviceRadixSort\w*|Device[A-Z]\w*Kernel\w*|static_kernel|dynamic_kernel|"  # CUB
    r"transform_kernel|_kernel_agent|launch_closure_by_\w+|"  # CUB and Thrust
    r"cuda_parallel_launch_\w+_memory|"  # Kokkos, Kokkos_Cuda_KernelLaunch.hpp
    r"forallp?_cuda_kernel|CudaKernelLauncher\w*|launch_\w*global_fcn|"  # RAJA, policy/cuda
    r"launch_global|gpuKernel|CuKernel[123]D|TaskStrided[13]DLaunch|generic_kernel_\w+|"  # AMReX; alpaka; MFEM; VTK-m; Ginkgo
    r"EigenMetaKernel\w*|Vectorized(?:Elementwise|Broadcast)Kernel|"  # Eigen, of TensorFlow; PaddlePaddle
    r"k_bin_bcast\w*|unary_(?:gated_)?op_kernel)"  # ggml, of llama.cpp
)
"""Function names that say how a kernel runs; what it computes is in a template argument."""

_TELLING = r"(cutlass_\w+|\w*[Ff]unctor\w*|\w+_kernel_cuda|\w*(?:Mean|Sum|Max|Min|Norm|Arg)\w*Ops|\w+_functor)"


_OF_THRUST = r"\bcuda_cub::__(\w+)::functor\b"
"""What Thrust's own functor does: `cuda_cub::__uninitialized_copy::functor<…>`."""

_OF_LAMBDA = r"(\w+)(?:<[^<>()]*>)?\([^()]*\)::[\[{]lambda"
"""The function whose lambda an elementwise kernel of PyTorch runs: `at::native::GeluCUDAKernelImpl(…)::[lambda() (instance 2)]`."""

_WITH_LAMBDA = r"^(?:[a-z_]*elementwise_kernel\w*|distribution_\w+)$"

_CLASS = r"\b(?:Kernel2?|device_kernel|_kernel_agent)<(?:[\w:]*\benable_\w+<)?(?:\w+::)*(\w+)<"
"""The class that a kernel of CUTLASS or Thrust runs, maybe in one for an architecture: `enable_sm90<flash::FlashAttnFwdSm90<…`."""

_IN_NAMESPACE = r"(\w+::(?:Kernel2?|kernel|device_kernel))(?:[<(]|$)"
"""A function whose name is that of all kernels, with its namespace: cuBLAS has `internal::gemvx::kernel<int, int, double, …>`."""


def short_name(function: pl.Expr, demangled: pl.Expr) -> pl.Expr:
    """Return the function's name; where it is generic, with what says what the kernel computes.

    That is a template argument, "Kernel2<cutlass_80_gemm_f16>", or else, of a function called `kernel`, the namespace.
    """
    telling = pl.coalesce(demangled.str.extract(ascii_classes(pattern)) for pattern in (_OF_THRUST, _TELLING))
    of_lambda = pl.when(matches(function, _WITH_LAMBDA)).then(demangled.str.extract(ascii_classes(_OF_LAMBDA)))
    argument = pl.coalesce(telling, of_lambda, demangled.str.extract(ascii_classes(_CLASS)))
    named = demangled.str.replace_all(UNNAMED.pattern, "").str.extract(ascii_classes(_IN_NAMESPACE))
    is_generic = matches(function, f"^{GENERIC}$")
    return (
        pl.when(is_generic & (argument != function))
        .then(pl.format("{}<{}>", function, argument))
        .when(is_generic & named.str.ends_with(pl.format("::{}", function)))
        .then(named)
        .otherwise(function)
    )


_WORD = re.compile(r"-?\w+(?:::\w+)*\**")
"""A name with its namespaces, possibly followed by `*` (a pointer), or a number."""


def differences(names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the words by which each of several demangled names differs from the others; none for a single name.

    Names are grouped by the first word in which they differ, and names in the same group by the next such word, until all differ.
    Namespaces are omitted where the words differ without them.
    """
    found: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    groups = [list(found)]
    while groups:
        divided = _divided(groups.pop())
        last = {word: word.rsplit("::", maxsplit=1)[-1] for word in divided}
        for word, group in divided.items():
            shown = last[word] if len(set(last.values())) == len(last) else word
            for name in group:
                found[name] += (shown,) if word else ()
            groups.append(group)
    return found


def _divided(names: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the names grouped by the first word in which they differ; nothing if there is no such word."""
    for words in zip_longest(*map(_WORD.findall, names), fillvalue=""):
        if len(set(words)) > 1:
            groups: dict[str, list[str]] = defaultdict(list)
            for word, name in zip(words, names, strict=True):
                groups[word].append(name)
            return groups
    return {}
