"""Which kernels were compiled for debugging, without optimisation: their machine code, which the report holds, says so.

Source: `nvcc --help`, --device-debug: "turns off all optimizations. Don't use for profiling; use -lineinfo instead.";
Nsight Compute Customization Guide, "Report File Format": SourceData, ProfileResult.Source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ncuroof.ingest.container import Block, Container
from ncuroof.ingest.kernel_code import is_debug_build
from ncuroof.ingest.native_schema import messages
from ncuroof.ingest.stored import Content, part
from ncuroof.ingest.wire import WireError


def debug_builds(content: Content, container: Container, n_read: int) -> tuple[bool | None, ...]:
    """Return whether the code of each workload is a debug build; None where the report does not say.

    Empty where it says so of none, or results are lost: which, is not known.

    Args:
        content: the report's bytes.
        container: its blocks.
        n_read: workloads that the reader gave.
    """
    if container.n_workloads != n_read:
        return ()
    builds: dict[int, bool | None] = {}
    for reference, build in _sources(content, container):  # code is stored once and may be mentioned again without it
        builds[reference] = build if build is not None else builds.get(reference)
    if set(builds.values()) == {None}:
        return ()  # all code was left out
    if set(builds.values()) == {False}:  # as a rule; which kernel has which code need not be asked
        rows = [False if is_kernel else None for block in container.blocks for is_kernel in _are_kernels(block)]
    else:
        rows = [build for block in container.blocks for build in _of_block(content, block, builds)]
    return tuple(rows) if any(row is not None for row in rows) else ()


def _sources(content: Content, container: Container) -> Iterator[tuple[int, bool | None]]:
    """Yield reference and build of each piece of code that kernels share."""
    for block in container.blocks:
        for span in block.spans[: block.n_sources]:
            source = _decoded("Source", content, span)
            if source is not None:
                yield source.reference, _build(source.code)


def _of_block(content: Content, block: Block, builds: Mapping[int, bool | None]) -> Iterator[bool | None]:
    """Yield the build of each workload's code, which it holds itself or refers to."""
    for is_kernel, span in zip(_are_kernels(block), block.spans[block.n_sources :], strict=False):
        kernel = _decoded("KernelSource", content, span) if is_kernel else None
        if kernel is None:
            yield None
        else:
            source = kernel.source
            yield _build(source.code) if source.code else builds.get(source.reference)


def _are_kernels(block: Block) -> Iterator[bool]:
    yield from [True] * block.n_results
    yield from [False] * (block.n_workloads - block.n_results)


def _build(code: bytes) -> bool | None:
    try:
        return is_debug_build(code)
    except WireError:
        return None


def _decoded(message: str, content: Content, span: tuple[int, int]) -> Any:
    """Return a message, or None where it is malformed."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    try:
        return messages()[message].FromString(bytes(part(content, *span)))
    except DecodeError:
        return None
