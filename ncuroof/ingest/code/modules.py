"""The machine code in a report, by the module that kernels share: stored once, referred to by each of its kernels.

Source: Nsight Compute Customization Guide, "Report File Format": SourceData, ProfileResult.Source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ncuroof.ingest.container import Container
from ncuroof.ingest.native.schema import messages
from ncuroof.ingest.stored import Content, part


@dataclass(slots=True, eq=False)
class CodeModule:
    """A module, itself its key in a dictionary.

    Attributes:
        image: its ELF image; nothing where the report leaves the code out.
        address_by_function: where each function was loaded, by mangled name.
        files: the source files that were imported, encoded.
    """

    image: bytes = b""
    address_by_function: dict[bytes, int] = field(default_factory=dict)
    files: list[bytes] = field(default_factory=list)

    def add(self, source: Any) -> None:
        """Add what another mention of the module says: the image comes with the first, addresses with each kernel."""
        self.image = self.image or source.code
        self.files += [source.files] if source.files else []
        self.address_by_function |= {each.name: each.address for each in source.loaded.functions if each.address}


def code_modules(content: Content, container: Container) -> dict[int, CodeModule]:
    """Return the modules that a report stores, by reference; malformed ones are left out."""
    modules: dict[int, CodeModule] = {}
    for block in container.blocks:
        for span in block.spans[: block.n_sources]:
            source = decoded("Source", content, span)
            if source is not None:
                modules.setdefault(source.reference, CodeModule()).add(source)
    return modules


def located(
    content: Content, span: tuple[int, int], modules: Mapping[int, CodeModule]
) -> tuple[CodeModule, bytes] | None:
    """Return the module of the kernel at `span`, and the mangled name of its function there; None where it has no module.

    A kernel refers to its module or, in old reports, holds it itself.
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
    """Return the module of the kernel at `span`; None where it has none."""
    kernel = located(content, span, modules)
    return None if kernel is None else kernel[0]


def kernel_spans(container: Container) -> Iterator[tuple[int, int] | None]:
    """Yield where each workload lies that is a kernel, None for any other, in file order."""
    for block in container.blocks:
        yield from (span if kind == "kernel" else None for kind, span in block.results)


def decoded(message: str, content: Content, span: tuple[int, int]) -> Any:
    """Return a message, or None where it is malformed."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    try:
        return messages()[message].FromString(bytes(part(content, *span)))
    except DecodeError:
        return None
