"""Builds machine code as it is in reports: an ELF image with named sections."""

from __future__ import annotations

import struct
from collections.abc import Mapping


def elf(*names: str) -> bytes:
    """Return a 64-bit ELF image with empty sections of these names, plus the name table."""
    return elf_with(dict.fromkeys(names, b""))


def elf_with(content_by_name: Mapping[str, bytes]) -> bytes:
    """Return a 64-bit ELF image: an unnamed section, the given ones, numbered from 1, and the name table.

    Source: Tool Interface Standard, "Executable and Linking Format": e_shoff at 0x28, e_shentsize, e_shnum, e_shstrndx at 0x3A.
    """
    names = ["", *content_by_name, ".shstrtab"]
    table = b"\0".join(name.encode() for name in names) + b"\0"
    contents = [b"", *content_by_name.values(), table]
    header = bytearray(64)
    header[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", header, 0x28, 64)
    struct.pack_into("<HHH", header, 0x3A, 64, len(names), len(names) - 1)
    position, name_at = 64 + 64 * len(names), 0
    sections = []
    for name, content in zip(names, contents, strict=True):
        sections.append(struct.pack("<IIQQQQ", name_at, 1, 0, 0, position, len(content)).ljust(64, b"\0"))
        position += len(content)
        name_at += len(name.encode()) + 1
    return bytes(header) + b"".join(sections) + b"".join(contents)
