"""Finds kernels that were compiled for debugging, without optimisation, from the machine code in the report.

Source: `nvcc --help`, --device-debug: "turns off all optimizations. Don't use for profiling; use -lineinfo instead."
"""

from __future__ import annotations

from collections.abc import Mapping

from ncuroof.ingest.code.elf import Image
from ncuroof.ingest.code.modules import CodeModule, kernel_spans, module_of
from ncuroof.ingest.framing import Framing
from ncuroof.ingest.stored import Content

REGISTERS_OF_VARIABLES = b".nv_debug_info_reg_sass"
"""A section that ptxas writes for `nvcc -G`, but not for `-lineinfo` or `-G -dopt=on`."""


def debug_builds(content: Content, framing: Framing, modules: Mapping[int, CodeModule]) -> tuple[bool | None, ...]:
    """Return for each workload whether its code is a debug build, None if the report does not say.

    The result is empty if the report says so for no workload.

    Args:
        content: the report's bytes.
        framing: its blocks.
        modules: the code in the report, by reference.
    """
    builds = {module: _build(module) for module in modules.values()}
    found = set(builds.values())
    if found == {None}:
        return ()  # the report omits all code
    spans = list(kernel_spans(framing))
    if found == {False}:  # the usual case: the kernels need not be matched to modules
        return tuple(None if span is None else False for span in spans)
    of_spans = (None if span is None else module_of(content, span, modules) for span in spans)
    rows = tuple(None if module is None else _known(module, builds) for module in of_spans)
    return rows if set(rows) - {None} else ()


def is_debug_build(image: Image) -> bool:
    """Return whether code was compiled for debugging, without optimisation."""
    return any(section.name == REGISTERS_OF_VARIABLES for section in image.sections)


def _known(module: CodeModule, builds: Mapping[CodeModule, bool | None]) -> bool | None:
    return builds[module] if module in builds else _build(module)


def _build(module: CodeModule) -> bool | None:
    return None if module.image is None else is_debug_build(module.image)
