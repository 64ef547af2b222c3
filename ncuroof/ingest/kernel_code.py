"""The machine code of a kernel as a report holds it: an ELF image, with sections for debugging.

Source: Tool Interface Standard, "Executable and Linking Format" (ELF-64 headers); NVIDIA names its own sections `.nv_debug…`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

from ncuroof.ingest.wire import WireError

_IMAGE_64 = b"\x7fELF\x02"
_MOST_NAME_BYTES = 64
"""Longer names, those of kernels, are cut: a damaged image has no end of them."""

_HEADER_BYTES, _SECTION_BYTES = 64, 64
_BITS, _STRINGS, _NO_BITS = 1, 3, 8
REGISTERS_OF_VARIABLES = b".nv_debug_info_reg_sass"
"""A section that ptxas writes for `nvcc -G`, and neither for `-lineinfo` nor for `-G -dopt=on`."""

_SECTION_HEADER = struct.Struct("<IIQQQQ")
_PLAIN_PATH = re.compile(rb"(?<![\w/\\])(?:[A-Za-z]:[\\/]+|/)[\w.+@~-][\w.+@~ \\/-]{2,}")
_SOURCE_NAME = re.compile(rb"[^\\/]+\.(?:cu|cuh|h|hh|hpp|hxx|inl|inc|c|cc|cpp|cxx|py|ptx|jl|rs)$")
_NO_SEPARATOR = re.compile(rb"[^\\/:]")


def is_debug_build(image: bytes) -> bool | None:
    """Return whether code was compiled for debugging, without optimisation; None for what is no ELF image of 64 bits.

    Raises:
        WireError: the image is cut or malformed.
    """
    if not image.startswith(_IMAGE_64):
        return None
    return any(name == REGISTERS_OF_VARIABLES for name, *_ in _sections(image))


def outline(image: bytes) -> bytes | None:
    """Return an image without code, of which only tells whether it was a debug build; None for what is no ELF image of 64 bits.

    Raises:
        WireError: the image is cut or malformed.
    """
    is_debug = is_debug_build(image)
    if is_debug is None:
        return None
    names = b"\0.shstrtab\0" + (REGISTERS_OF_VARIABLES + b"\0" if is_debug else b"")
    sections = [(0, 0, 0), (names.index(b".shstrtab"), _STRINGS, len(names))]
    if is_debug:
        sections.append((names.index(REGISTERS_OF_VARIABLES), _BITS, 0))
    names_at = _HEADER_BYTES + _SECTION_BYTES * len(sections)
    header = bytearray(image[:_HEADER_BYTES])
    struct.pack_into("<QQQ", header, 0x18, 0, 0, _HEADER_BYTES)  # no entry, no segments, sections behind the header
    struct.pack_into("<HHHH", header, 0x38, 0, _SECTION_BYTES, len(sections), 1)
    rows = (_SECTION_HEADER.pack(name, kind, 0, 0, names_at, size) for name, kind, size in sections)
    return bytes(header) + b"".join(row.ljust(_SECTION_BYTES, b"\0") for row in rows) + names


def without_debug_paths(image: bytes, needles: Iterable[bytes]) -> bytes:
    """Return the code with folders and needles in its debug sections overwritten by as many x; instructions are not touched.

    What is no ELF image of 64 bits has no such sections and stays as it is.

    Raises:
        WireError: the image is cut or malformed.
    """
    if not image.startswith(_IMAGE_64):
        return image
    new = bytearray(image)
    for name, kind, offset, length in _sections(image):
        if kind != _NO_BITS and name.startswith((b".debug", b".nv_debug")):
            section = _PLAIN_PATH.sub(_masked_folders, image[offset : offset + length])
            for needle in needles:
                section = section.replace(needle, b"x" * len(needle))
            new[offset : offset + len(section)] = section
    return bytes(new)


def _sections(image: bytes) -> list[tuple[bytes, int, int, int]]:
    """Return name, type, offset and length of each section.

    Raises:
        WireError: the image is cut or malformed.
    """
    try:
        (table,) = struct.unpack_from("<Q", image, 0x28)
        size, n_sections, names_at = struct.unpack_from("<HHH", image, 0x3A)
        headers = [_SECTION_HEADER.unpack_from(image, table + number * size) for number in range(n_sections)]
        names = image[headers[names_at][4] :]
    except (struct.error, IndexError, OverflowError) as error:
        raise WireError("the code of a kernel is no whole ELF image") from error
    return [(_name(names, at), kind, offset, length) for at, kind, _, _, offset, length in headers]


def _name(names: bytes, start: int) -> bytes:
    return names[start : start + _MOST_NAME_BYTES].split(b"\0", 1)[0]


def _masked_folders(match: re.Match[bytes]) -> bytes:
    path = match.group()
    name = _SOURCE_NAME.search(path)
    folder = path[: name.start()] if name else path
    return _NO_SEPARATOR.sub(b"x", folder) + path[len(folder) :]
