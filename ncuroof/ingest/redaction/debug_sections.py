"""Redacts a kernel's machine code, an ELF image with debug sections (`.debug…`, and NVIDIA's own `.nv_debug…`)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

from ncuroof.ingest.code.debug_builds import REGISTERS_OF_VARIABLES, is_debug_build
from ncuroof.ingest.code.elf import BITS, HEADER_BYTES, NO_BITS, SECTION_BYTES, SECTION_HEADER, STRINGS, Image, is_image
from ncuroof.ingest.redaction.secrets import masked

_PLAIN_PATH = re.compile(rb"(?<![\w/\\])(?:[A-Za-z]:[\\/]+|/)[\w.+@~-][\w.+@~ \\/-]{2,}")
_SOURCE_NAME = re.compile(rb"[^\\/]+\.(?:cu|cuh|h|hh|hpp|hxx|inl|inc|c|cc|cpp|cxx|py|ptx|jl|rs)$")
_NO_SEPARATOR = re.compile(rb"[^\\/:]")


def outline(image: bytes) -> bytes | None:
    """Return an image without code, which only shows whether the original was a debug build; None if it is not a 64-bit ELF image.

    Raises:
        WireError: the image is truncated or malformed.
    """
    if not is_image(image):
        return None
    is_debug = is_debug_build(Image(image))
    names = b"\0.shstrtab\0" + (REGISTERS_OF_VARIABLES + b"\0" if is_debug else b"")
    sections = [(0, 0, 0), (names.index(b".shstrtab"), STRINGS, len(names))]
    if is_debug:
        sections.append((names.index(REGISTERS_OF_VARIABLES), BITS, 0))
    names_at = HEADER_BYTES + SECTION_BYTES * len(sections)
    header = bytearray(image[:HEADER_BYTES])
    struct.pack_into("<QQQ", header, 0x18, 0, 0, HEADER_BYTES)  # no entry, no segments, sections after the header
    struct.pack_into("<HHHH", header, 0x38, 0, SECTION_BYTES, len(sections), 1)
    rows = (SECTION_HEADER.pack(name, kind, 0, 0, names_at, size) for name, kind, size in sections)
    return bytes(header) + b"".join(row.ljust(SECTION_BYTES, b"\0") for row in rows) + names


def without_debug_paths(image: bytes, needles: Iterable[bytes]) -> bytes:
    """Return the image with folders and needles in its debug sections overwritten by as many x; instructions are unchanged.

    Anything that is not a 64-bit ELF image has no such sections and is returned unchanged.

    Raises:
        WireError: the image is truncated or malformed.
    """
    if not is_image(image):
        return image
    new = bytearray(image)
    for section in Image(image).sections:
        if section.kind != NO_BITS and section.name.startswith((b".debug", b".nv_debug")):
            content = _PLAIN_PATH.sub(_masked_folders, image[section.start : section.start + section.length])
            content = masked(content, needles)
            new[section.start : section.start + len(content)] = content
    return bytes(new)


def _masked_folders(match: re.Match[bytes]) -> bytes:
    path = match.group()
    name = _SOURCE_NAME.search(path)
    folder = path[: name.start()] if name else path
    return _NO_SEPARATOR.sub(b"x", folder) + path[len(folder) :]
