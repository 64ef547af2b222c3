"""What source files are called: without their folders, but those of Julia's own packages with the package.

Julia inlines nearly all of Base into a kernel, and its line tables name no callers (JuliaGPU/CUDA.jl, issue 1115), so that `+` in
int.jl has much of a kernel's samples. Files of Base have no folder but "." (issue 2460), those of an installed package have
packages/NAME/SLUG/src in theirs (Pkg's documentation, "Glossary": depot), those of one in development NAME/src.
"""

from __future__ import annotations

import re

_SUFFIX = ".jl"
_BASE, _FOLDERS_OF_BASE = "Base", ("", ".")
_NAMES = "(CUDA|CUDACore|CUDAnative|GPUArrays|GPUCompiler|KernelAbstractions|LLVM)"
"""The packages of JuliaGPU that have what kernels call: nobody changes them to make a kernel faster."""

_PACKAGE = re.compile(
    rf"[/\\](?:packages[/\\]{_NAMES}[/\\][0-9A-Za-z]{{4,5}}[/\\]src|{_NAMES}(?:\.jl)?[/\\]src[/\\](?:device|host|interop))(?:[/\\]|$)"
)


def source_name(path: str, package: str = "") -> str:
    """Return the name of a file without its folder, on one line; behind its package if it is one of Julia's own: "Base/int.jl".

    Args:
        path: of any operating system.
        package: `julia_package` of the folder that a path without folder is in.
    """
    start = max(path.rfind("/"), path.rfind("\\")) + 1
    name = path[start:].replace("\n", " ")
    package = julia_package(path[:start]) if start else package
    return f"{package}/{name}" if package and name.endswith(_SUFFIX) else name


def julia_package(folder: str) -> str:
    """Return which of Julia's own packages the .jl files in a folder belong to; empty if to none."""
    if folder.rstrip("/\\") in _FOLDERS_OF_BASE:
        return _BASE
    found = _PACKAGE.search(folder)
    return found[1] or found[2] if found else ""
