"""The machine code of a kernel as a report holds it: an ELF image, whose debug sections name folders of the machine that built it.

Source: Tool Interface Standard, "Executable and Linking Format" (ELF-64 headers); NVIDIA names its own sections `.nv_debug…`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

from ncuroof.ingest.wire import WireError

_IMAGE_64 = b"\x7fELF\x02"
_NO_BITS = 8
_SECTION_HEADER = struct.Struct("<IIQQQQ")
_PLAIN_PATH = re.compile(rb"(?<![\w/\\])(?:[A-Za-z]:[\\/]+|/)[\w.+@~-][\w.+@~ \\/-]{2,}")
_SOURCE_NAME = re.compile(rb"[^\\/]+\.(?:cu|cuh|h|hh|hpp|hxx|inl|inc|c|cc|cpp|cxx|py|ptx|jl|rs)$")
_NO_SEPARATOR = re.compile(rb"[^\\/:]")


def without_debug_paths(image: bytes, needles: Iterable[bytes]) -> bytes:
    """Return the code with folders and needles in its debug sections overwritten by as many x; instructions are not touched.

    What is no ELF image of 64 bits has no such sections and stays as it is.

    Raises:
        WireError: the image is cut or malformed.
    """
    if not image.startswith(_IMAGE_64):
        return image
    try:
        (table,) = struct.unpack_from("<Q", image, 0x28)
        size, n_sections, names_at = struct.unpack_from("<HHH", image, 0x3A)
        sections = [_SECTION_HEADER.unpack_from(image, table + number * size) for number in range(n_sections)]
        names = image[sections[names_at][4] :]
    except (struct.error, IndexError) as error:
        raise WireError("the code of a kernel is no whole ELF image") from error
    new = bytearray(image)
    for name_at, kind, _, _, offset, length in sections:
        if kind != _NO_BITS and names[name_at:].startswith((b".debug", b".nv_debug")):
            section = _PLAIN_PATH.sub(_masked_folders, image[offset : offset + length])
            for needle in needles:
                section = section.replace(needle, b"x" * len(needle))
            new[offset : offset + len(section)] = section
    return bytes(new)


def _masked_folders(match: re.Match[bytes]) -> bytes:
    path = match.group()
    name = _SOURCE_NAME.search(path)
    folder = path[: name.start()] if name else path
    return _NO_SEPARATOR.sub(b"x", folder) + path[len(folder) :]
