"""The machine code in a report, by module, and the kernels that were compiled for debugging, without optimisation.

Code is stored once and referenced by each kernel of the module.

Source: Nsight Compute Customization Guide, "Report File Format": SourceData, ProfileResult.Source. `nvcc --help`, --device-debug:
"turns off all optimizations. Don't use for profiling; use -lineinfo instead."
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ncuroof.ingest.code.elf import Image, is_image
from ncuroof.ingest.file_content import Content, part
from ncuroof.ingest.framing import Framing
from ncuroof.ingest.native.schema import messages
from ncuroof.ingest.wire import WireError

REGISTERS_OF_VARIABLES = b".nv_debug_info_reg_sass"
"""A section that ptxas writes for `nvcc -G`, but not for `-lineinfo` or `-G -dopt=on`."""


_VERSION = re.compile(rb"release \d{1,4}\.\d{1,4}, V(\d{1,4}(?:\.\d{1,6}){1,3})")
"""Version in the note of an image that names its tools: "Cuda compilation tools, release 13.0, V13.0.88"."""


@dataclass(eq=False)
class CodeModule:
    """A code module, compared and hashed by identity, so that it can be a dictionary key.

    Attributes:
        code: its ELF image; empty if the report omits the code.
        address_by_function: load address of each function, by mangled name.
        files: encoded SourceFiles messages of imported source files.
    """

    code: bytes = b""
    address_by_function: dict[bytes, int] = field(default_factory=dict)
    files: list[bytes] = field(default_factory=list)

    def add(self, source: Any) -> None:
        """Add a `Source` message about the module: the first message has the image, each has load addresses."""
        self.code = self.code or source.code
        self.files += [source.files] if source.files else []
        self.address_by_function |= {each.name: each.address for each in source.loaded.functions if each.address}

    @cached_property
    def image(self) -> Image | None:
        """The parsed code, after the last `add`; None if there is none, or it is not a whole 64-bit ELF image."""
        with contextlib.suppress(WireError):
            if is_image(self.code):
                return Image(self.code)
        return None


def code_modules(content: Content, framing: Framing) -> dict[int, CodeModule]:
    """Return the modules that a report stores, by the reference number that kernels use; malformed ones are left out."""
    modules: dict[int, CodeModule] = {}
    for block in framing.blocks:
        for span in block.sources:
            source = decoded("Source", content, span)
            if source is not None:
                modules.setdefault(source.reference, CodeModule()).add(source)
    return modules


def located(
    content: Content, span: tuple[int, int], modules: Mapping[int, CodeModule]
) -> tuple[CodeModule, bytes] | None:
    """Return the module of the kernel at `span`, and the mangled name of its function in it; None if it has no module.

    A kernel refers to a stored module or, in old reports, contains the code itself.
    """
    kernel = decoded("KernelSource", content, span)
    if kernel is None:
        return None
    if not kernel.source.code:
        referred = modules.get(kernel.source.reference)
        return None if referred is None else (referred, kernel.mangled)
    module = CodeModule()
    module.add(kernel.source)
    return module, kernel.mangled


def module_of(content: Content, span: tuple[int, int], modules: Mapping[int, CodeModule]) -> CodeModule | None:
    """Return the module of the kernel at `span`; None if it has none."""
    kernel = located(content, span, modules)
    return None if kernel is None else kernel[0]


def kernel_spans(framing: Framing) -> Iterator[tuple[int, int] | None]:
    """Yield for each workload, in file order, its span if it is a kernel, else None."""
    return (span if kind == "kernel" else None for kind, span in framing.results)


def decoded(message: str, content: Content, span: tuple[int, int]) -> Any:
    """Return the message of type `message` at `span`, decoded; None if it is malformed."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    try:
        return messages()[message].FromString(bytes(part(content, *span)))
    except DecodeError:
        return None


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


def compiler_version(image: Image) -> str | None:
    """Return the version of ptxas that compiled an image, such as "13.0.88"; None if the image lacks it, as before ptxas 13."""
    found = _VERSION.search(image.content(b".note.nv.tkinfo"))
    return None if found is None else found[1].decode("ascii")


def is_debug_build(image: Image) -> bool:
    """Return whether code was compiled for debugging, without optimisation."""
    return any(section.name == REGISTERS_OF_VARIABLES for section in image.sections)


def _known(module: CodeModule, builds: Mapping[CodeModule, bool | None]) -> bool | None:
    return builds[module] if module in builds else _build(module)


def _build(module: CodeModule) -> bool | None:
    return None if module.image is None else is_debug_build(module.image)
