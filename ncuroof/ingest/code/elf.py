"""Parses 64-bit ELF images: sections, symbols and relocations, as far as a kernel's machine code needs them.

Source: Tool Interface Standard, "Executable and Linking Format", and its 64-bit extension. Position of the
compute capability: images written by nvcc 11 to 13.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ncuroof.ingest.wire import WireError

_IMAGE_64 = b"\x7fELF\x02"
HEADER_BYTES, SECTION_BYTES = 64, 64
BITS, STRINGS, NO_BITS = 1, 3, 8
"""Section types PROGBITS, STRTAB and NOBITS."""

_ABI_VERSION, _FLAGS = 8, 0x30
_CUDA_13 = 8
"""From this ABI version on, the compute capability is the second byte of the flags; before, it is the first."""

_MOST_NAME_BYTES = 64
"""Longer section names, which kernels have, are truncated: in a damaged image a name may never end."""

SECTION_HEADER = struct.Struct("<IIQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ENTRY_BY_NAME = {b".rel": struct.Struct("<QQ"), b".rela": struct.Struct("<QQq")}


class Section(NamedTuple):
    """A section: number, truncated name, type, offset and size of its content, and offset of its name in the name table."""

    number: int
    name: bytes
    kind: int
    start: int
    length: int
    name_start: int


class Image:
    """A parsed ELF image.

    Attributes:
        sections: its sections, in file order.
        compute_capability: the target of the code, such as 86 for 8.6.

    Raises:
        WireError: it is truncated or malformed.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        try:
            (table,) = struct.unpack_from("<Q", content, 0x28)
            size, n_sections, names_at = struct.unpack_from("<HHH", content, 0x3A)
            if n_sections and size < SECTION_BYTES:  # overlapping headers would take far more memory than the image
                raise WireError(f"the code of a kernel has section headers of {size} bytes")
            headers = [SECTION_HEADER.unpack_from(content, table + number * size) for number in range(n_sections)]
            self._names_start = headers[names_at][4]
            self.compute_capability = content[_FLAGS + 1 if content[_ABI_VERSION] >= _CUDA_13 else _FLAGS]
        except (struct.error, IndexError, OverflowError) as error:
            raise WireError("the code of a kernel is not a whole ELF image") from error
        self.sections = [
            Section(number, self._name(at), kind, start, length, at)
            for number, (at, kind, _, _, start, length) in enumerate(headers)
        ]

    def content(self, name: bytes) -> bytes:
        """Return the content of the first section with this (truncated) name; empty if there is none."""
        return next((self._bytes_of(section) for section in self.sections if section.name == name), b"")

    def named(self, name: bytes) -> Section | None:
        """Return the first section with this full name, however long, or None."""
        for section in self.sections:
            full_name_start = self._names_start + section.name_start
            if name.startswith(section.name) and self._content.startswith(name + b"\0", full_name_start):
                return section
        return None

    def function(self, name: bytes) -> Section | None:
        """Return the section with a function's machine code, by the mangled name, or None."""
        return self.named(b".text." + name)

    def code(self, function: bytes) -> bytes:
        """Return the machine code of a function; empty if there is none."""
        section = self.function(function)
        return b"" if section is None else self._bytes_of(section)

    def relocated(self, function: bytes) -> set[int]:
        """Return the offsets in a function's machine code that hold an address which the linker or the loader fills in."""
        name = b".text." + function
        return {
            where
            for prefix, layout in _ENTRY_BY_NAME.items()
            if (section := self.named(prefix + name)) is not None
            for where, *_ in layout.iter_unpack(_whole(self._bytes_of(section), layout.size))
        }

    def relocations(self, name: bytes) -> Iterator[tuple[int, int, int]]:
        """Yield `(offset, target section, target offset)` for each address in section `name` that the loader fills in.

        `offset` is where the address is stored in the section. For `.rel` entries, which have no explicit addend, the value already
        stored there is not added.
        """
        symbols = self.content(b".symtab")
        for prefix, layout in _ENTRY_BY_NAME.items():
            entries = self.content(prefix + name)
            for where, info, *addend in layout.iter_unpack(_whole(entries, layout.size)):
                symbol = _SYMBOL.size * (info >> 32)
                if symbol + _SYMBOL.size <= len(symbols):
                    _, _, _, section, value, _ = _SYMBOL.unpack_from(symbols, symbol)
                    yield where, section, value + sum(addend)

    def _bytes_of(self, section: Section) -> bytes:
        return self._content[section.start : section.start + section.length]

    def _name(self, start: int) -> bytes:
        start += self._names_start
        return self._content[start : start + _MOST_NAME_BYTES].split(b"\0", 1)[0]


def _whole(content: bytes, size: int) -> bytes:
    """Return the content without an incomplete entry at its end; entries have `size` bytes."""
    return content[: len(content) // size * size]


def is_image(content: bytes) -> bool:
    """Return whether the bytes begin like a 64-bit ELF image."""
    return content.startswith(_IMAGE_64)
