"""The allow-list of redaction: what is kept of a report, message by message. Text, messages and bytes not named here are removed.

A kernel's machine code is an ELF image; its debug sections (`.debug…`, and NVIDIA's own `.nv_debug…`) are redacted.

Source: Nsight Compute Customization Guide, "Report File Format": numbers and meanings of the fields.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ncuroof.ingest import wire
from ncuroof.ingest.code.elf import BITS, HEADER_BYTES, NO_BITS, SECTION_BYTES, SECTION_HEADER, STRINGS, Image, is_image
from ncuroof.ingest.code.modules import REGISTERS_OF_VARIABLES, is_debug_build
from ncuroof.ingest.redaction.secrets import base_name, homes_in, masked, without_folders
from ncuroof.ingest.wire import Treatment, rewritten

UNKNOWN = "unknown fields"

_PLAIN_PATH = re.compile(rb"(?<![\w/\\])(?:[A-Za-z]:[\\/]+|/)[\w.+@~-][\w.+@~ \\/-]{2,}")
_SOURCE_NAME = re.compile(rb"[^\\/]+\.(?:cu|cuh|h|hh|hpp|hxx|inl|inc|c|cc|cpp|cxx|py|ptx|jl|rs)$")
_NO_SEPARATOR = re.compile(rb"[^\\/:]")


@dataclass(slots=True)
class Cleaning:
    """The state of one redaction pass over a report: what to remove, what was removed, and what remains.

    Attributes:
        needles: strings to overwrite in texts and to search for in everything else.
        keep: kinds of code to keep, out of "sass", "ptx" and "source".
        command_line: the redacted command line.
        removed: number of items removed or rewritten, by kind.
        left: occurrences of needles in what is kept, by needle and place.
        hits_by_content: cache of the needles in a kept content, one entry per occurrence.
        homes: home folders, each with its user's name, in texts that are kept at least in part.
        texts: the texts already searched for home folders.
    """

    needles: tuple[bytes, ...]
    keep: frozenset[str]
    command_line: bytes
    removed: Counter[str] = field(default_factory=Counter)
    left: Counter[tuple[bytes, str]] = field(default_factory=Counter)
    hits_by_content: dict[bytes, tuple[bytes, ...]] = field(default_factory=dict)
    homes: set[tuple[bytes, bytes]] = field(default_factory=set)
    texts: set[bytes] = field(default_factory=set)

    def find_homes(self, content: bytes) -> None:
        """Record the home folders in a single text; its end is known, so that a folder at the very end is found too."""
        if content not in self.texts:
            self.texts.add(content)
            self.homes.update(homes_in(content))

    def look(self, content: bytes, place: str) -> None:
        """Record the needles in a kept content; cached, because most contents of a report are repeated for every kernel."""
        hits = self.hits_by_content.get(content)
        if hits is None:
            small = content.lower()
            hits = tuple(needle for needle in self.needles for _ in range(small.count(needle)))
            self.hits_by_content[content] = hits
        for needle in hits:
            self.left[needle, place] += 1


Rule = Treatment[Cleaning]

_NUMBERS_ONLY = re.compile(
    rb"\x08[\x80-\xff]*[\x00-\x7f]"  # NameId
    rb"(?:\x12.%(number)b)?"  # MetricValue
    rb"(?:\x1a.(?:\x0a.%(number)b)?\x12.%(number)b)*"  # MetricValueList: CorrelationId, ElementValue
    rb"(?:\x20[\x00-\x7f])?" % {b"number": rb"(?:\x19.{8}|\x15.{4}|[\x20\x28][\x80-\xff]*[\x00-\x7f])?"},  # Category
    re.DOTALL,
)
"""Encoding of a counter without text, as Nsight Compute writes nearly all of them; nothing in it needs to be examined."""


def removed(kind: str) -> Rule:
    """Return the treatment that removes a field and counts it under `kind` unless it is empty."""

    def leave_out(content: bytes, cleaning: Cleaning) -> None:
        cleaning.removed[kind] += bool(content)

    return leave_out


def kept(place: str) -> Rule:
    """Return the treatment that keeps a field unchanged; needles in it are recorded under the name `place`."""

    def keep(content: bytes, cleaning: Cleaning) -> bytes:
        cleaning.find_homes(content)
        cleaning.look(content, place)
        return content

    return keep


def changed(kind: str, change: Callable[[bytes, Cleaning], bytes]) -> Rule:
    """Return the treatment that keeps a text as rewritten by `change`, and counts it under `kind` if that changes it."""

    def rewrite(content: bytes, cleaning: Cleaning) -> bytes:
        cleaning.find_homes(content)
        new = change(content, cleaning)
        cleaning.removed[kind] += new != content
        cleaning.look(new, kind)
        return new

    return rewrite


def message(fields: Mapping[int, Rule]) -> Rule:
    """Return the treatment of a message by an allow-list of its fields; a malformed message is removed."""

    def clean(content: bytes, cleaning: Cleaning) -> bytes | None:
        try:
            return rewritten(content, fields, cleaning, unknown)
        except wire.WireError:
            cleaning.removed["malformed messages"] += 1
            return None

    return clean


def where_kept(choice: str, kind: str, rule: Rule) -> Rule:
    """Return the treatment of code: `rule` if the user keeps code of kind `choice`, else removal, counted under `kind`."""
    leave_out = removed(kind)
    return lambda content, cleaning: (rule if choice in cleaning.keep else leave_out)(content, cleaning)


unknown = removed(UNKNOWN)
_text = changed("paths and names in messages", lambda text, cleaning: masked(without_folders(text), cleaning.needles))
_label = changed("names in labels", lambda label, cleaning: masked(label, cleaning.needles))
_program = changed("program folders", lambda path, cleaning: masked(base_name(path), cleaning.needles))
_file = changed("source folders", lambda path, _: base_name(path))
_definition = kept("section definitions")
_kernel_name = kept("kernel names")
_numbers = message({})


def _metric(content: bytes, cleaning: Cleaning) -> bytes | None:
    return content if _NUMBERS_ONLY.fullmatch(content) else _metric_with_text(content, cleaning)


_value = message({1: kept("counter texts")})
_metric_with_text = message({2: _value, 3: message({1: _value, 2: _value})})

_system = message(
    {
        1: kept("operating system name"),
        2: removed("operating system builds"),
        3: kept("processor name"),
        4: kept("architecture"),
        5: removed("host names"),
        7: removed("addresses"),
    }
)
_settings = message(
    {
        4: kept("profiler settings"),
        5: removed("kernel filters"),
        6: message({2: kept("profiler settings")}),
        7: kept("profiler settings"),
        8: kept("profiler settings"),
        9: _numbers,
        11: kept("profiler settings"),
        13: _numbers,
    }
)
_session = message(
    {
        3: _system,
        4: _system,
        5: removed("device properties"),
        6: message({2: kept("GPU name"), 3: message({1: kept("device attributes"), 2: _value})}),
        7: removed("comments"),
        8: message({1: kept("versions"), 2: kept("versions")}),
        9: removed("program paths, arguments and environments"),
        10: _settings,
        11: changed("command lines", lambda _, cleaning: cleaning.command_line),
    }
)

BLOCK_HEADER = message(
    {3: _session, 4: message({1: kept("counter names")}), 6: message({2: removed("host names"), 3: _program})}
)

_nvtx_attributes = message({3: _numbers, 4: message({8: removed("NVTX payloads")}), 5: message({2: _label})})
_nvtx_strings = message({2: _label})
_nvtx = message(
    {
        1: message({2: _label, 3: _nvtx_strings, 4: removed("NVTX thread and device names")}),
        2: message({2: message({3: message({1: _label, 2: _nvtx_attributes})})}),
        3: message({3: message({2: _label, 3: _nvtx_attributes})}),
    }
)
_drawing = kept("rule tables and charts")
_focus = message({2: kept("counter names"), 5: _text})
_rule = message(
    {
        1: kept("rule names"),
        2: kept("rule names"),
        3: message(
            {
                1: message(
                    {
                        1: message({1: _text, 4: _text}),
                        **dict.fromkeys((2, 3, 4, 5, 7, 9, 11), _drawing),
                        6: message({1: kept("rule names")}),
                        8: _focus,
                        10: _numbers,
                    }
                )
            }
        ),
        4: kept("section names"),
        5: message({4: _text, 6: where_kept("source", "source file names", _file)}),
    }
)


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


_code = changed("paths in machine code", lambda code, cleaning: without_debug_paths(code, cleaning.needles))


def _machine_code(image: bytes, cleaning: Cleaning) -> bytes | None:
    is_kept = "sass" in cleaning.keep
    cleaning.removed["machine code (SASS)"] += not is_kept and bool(image)
    try:
        return _code(image, cleaning) if is_kept else outline(image)
    except wire.WireError:
        cleaning.removed["malformed messages"] += 1
        return None


_comments, _call_stack = removed("comments"), removed("call stacks")
_symbols = message({1: _kernel_name})


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


_SOURCE: Mapping[int, Rule] = {
    2: where_kept("source", "source code", kept("source code")),
    3: where_kept("ptx", "PTX code", changed("paths in PTX code", lambda ptx, cleaning: masked(ptx, cleaning.needles))),
    4: _machine_code,
    8: where_kept("source", "source files", message({1: message({1: _file, 2: kept("source code")})})),
    9: where_kept("sass", "machine code symbols", message({1: _symbols, 2: _symbols})),
}

KERNEL: Mapping[int, Rule] = {
    **dict.fromkeys((5, 6, 7), _kernel_name),
    **dict.fromkeys((9, 10, 11, 25), _numbers),
    12: _comments,
    13: _metric,
    15: message(_SOURCE),
    17: _definition,
    18: _comments,
    19: _rule,
    21: _nvtx,
    24: message({2: _label}),
    26: _label,
    27: _label,
    28: _call_stack,
}

_RANGE_ALIKE: Mapping[int, Rule] = {3: _comments, 4: _metric, 7: _definition, 8: _comments, 10: _nvtx}

_RANGE: Mapping[int, Rule] = {**_RANGE_ALIKE, 12: _numbers, 13: _label, 14: _call_stack, 15: kept("references")}

_GRAPH: Mapping[int, Rule] = {
    **_RANGE_ALIKE,
    13: _numbers,
    14: _label,
    15: _label,
    16: _call_stack,
    17: kept("references"),
}

_COMMAND_LIST: Mapping[int, Rule] = {**_GRAPH, 18: _kernel_name, 20: message({1: _numbers, 2: _numbers}), 21: _rule}

ENTRY_BY_KIND: Mapping[str, Rule] = {
    "source": message(_SOURCE),
    "kernel": message(KERNEL),
    "range": message(_RANGE),
    "cmdlist": message(_COMMAND_LIST),
    "graph": message(_GRAPH),
}
"""The treatment of each kind of entry of a block."""


def left_by_place(left: Mapping[tuple[bytes, str], int]) -> Iterable[tuple[str, str, int]]:
    """Yield `(place, needle as text, number of occurrences)`, sorted."""
    for (needle, place), n_times in sorted(left.items(), key=lambda item: (item[0][1], item[0][0])):
        yield place, needle.decode("utf-8", "replace"), n_times
