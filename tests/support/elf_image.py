"""Machine code as reports hold it, without the code: an ELF image with named sections."""

from __future__ import annotations

import struct


def elf(*names: str) -> bytes:
    """Return an ELF image of 64 bits with empty sections of these names, and the one that holds the names.

    Source: Tool Interface Standard, "Executable and Linking Format": e_shoff at 0x28, e_shentsize, e_shnum, e_shstrndx at 0x3A.
    """
    table = b"\0".join(name.encode() for name in (*names, ".shstrtab")) + b"\0"
    starts = [table.index(f"{name}\0".encode()) for name in (*names, ".shstrtab")]
    header = bytearray(64)
    header[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", header, 0x28, 64)
    struct.pack_into("<HHH", header, 0x3A, 64, len(starts), len(starts) - 1)
    names_at = 64 + 64 * len(starts)
    sections = [struct.pack("<IIQQQQ", start, 1, 0, 0, names_at, len(table)).ljust(64, b"\0") for start in starts]
    return bytes(header) + b"".join(sections) + table
