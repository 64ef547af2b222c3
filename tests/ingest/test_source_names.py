"""Names of source files: without folders, but with the package where that is one of Julia's own."""

from __future__ import annotations

import pytest

from ncuroof.ingest.code.line_tables import julia_package, source_name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/me/gemm.cu", "gemm.cu"),
        (r"C:\code\gemm.cu", "gemm.cu"),
        ("gemm.cu", "gemm.cu"),
        ("/home/me/a\nb.cu", "a b.cu"),
        ("./int.jl", "Base/int.jl"),
        ("/home/me/int.jl", "int.jl"),
        ("./gemm.cu", "gemm.cu"),
        ("/home/me/.julia/packages/LLVM/WjSQG/src/interop/base.jl", "LLVM/base.jl"),
        (r"C:\Users\me\.julia\packages\CUDA\2kjXI\src\device\array.jl", "CUDA/array.jl"),
        ("/home/me/.julia/packages/CUDA/DfvRa/src/device/cuda.h", "cuda.h"),
        ("", ""),
    ],
)
def test_a_path_has_the_name_of_its_file(path: str, name: str) -> None:
    assert source_name(path) == name


def test_a_path_without_folder_is_of_the_package_of_its_folder() -> None:
    assert source_name("int.jl", "Base") == "Base/int.jl"
    assert source_name("int.jl") == "int.jl"
    assert source_name("/home/me/int.jl", "Base") == "int.jl"  # it has a folder of its own
    assert source_name("a.cu", "Base") == "a.cu"


@pytest.mark.parametrize(
    ("folder", "package"),
    [
        (".", "Base"),
        ("./", "Base"),
        ("", "Base"),
        ("/home/me/.julia/packages/CUDA/DfvRa/src/device/intrinsics", "CUDA"),
        ("/home/me/.julia/packages/LLVM/DnFH/src", "LLVM"),
        ("/home/me/.julia/packages/LLVM/abc/src", ""),  # no slug is so short
        ("/home/me/.julia/packages/LLVM/abcdef/src", ""),
        ("/home/me/.julia/dev/CUDA/src/device", "CUDA"),
        ("/home/me/CUDA.jl/src/device/intrinsics", "CUDA"),
        ("/home/me/CUDA/src", ""),  # a folder of somebody's own that is called so
        ("/home/me/CUDA/tests/src", ""),
        ("/home/me/.julia/packages/Oceananigans/DfvRa/src", ""),
        ("/home/me/myCUDA/src/device", ""),
        ("/home/me/CUDA/src/devices", ""),
        ("/home/me", ""),
    ],
)
def test_julias_own_packages_are_known_by_their_folders(folder: str, package: str) -> None:
    assert julia_package(folder) == package
