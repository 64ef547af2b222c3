"""Reports that are damaged where it goes deep: bits flipped, or messages changed with every length right.

Changes of messages duplicate, drop, reorder and nest blocks, results and fields, attack the table of names, and set values that no
counter has. Both are decided by a seed.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from ncuroof.ingest import wire
from ncuroof.ingest.framing import LENGTH, PAYLOAD_SIZE, walk
from tests.support.wire_encoder import varint

_COUNT_BY_KIND = {"source": 1, "kernel": 2, "range": 7, "cmdlist": 8, "graph": 9}
_NAMES = 4
"""Field of BlockHeader with the block's part of the table of names."""

_INTEGERS = (0, 1, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
_NUMBERS = (math.nan, math.inf, -math.inf, -5.0, -1e-300, -0.0, 5e-324, 1e-310, 1e300, 1.7e308, 2.0**64)
_TEXTS = (
    b"", b"\xff\xfe", b"\x00", b"x" * 70_000, "\u202e\u200b=1+1".encode(), b"::error::x", b"\x1b]8;;http://x\x07", b"a/b/../c",
    b"</script><script>", b"nan", b"gpu__time_duration.sum", b"1e400", b"\xed\xa0\x80",
)  # fmt: skip
_DEEPEST = 200
"""Levels of a message that is put into itself."""


@dataclass
class _Field:
    number: int
    wire_type: int
    value: int | bytes

    def encoded(self) -> bytes:
        tag = varint(self.number << 3 | self.wire_type)
        if isinstance(self.value, int):
            return tag + varint(self.value)
        return tag + (varint(len(self.value)) if self.wire_type == wire.LENGTH else b"") + self.value


@dataclass
class _Block:
    header: list[_Field]
    entries: list[tuple[str, bytes]] = field(default_factory=list)

    def encoded(self) -> bytes:
        payload = b"".join(LENGTH.pack(len(content)) + content for _, content in self.entries)
        kinds = [kind for kind, _ in self.entries]
        counts = {number: kinds.count(kind) for kind, number in _COUNT_BY_KIND.items()} | {PAYLOAD_SIZE: len(payload)}
        kept = [each for each in self.header if each.number not in counts]
        header = _encoded([*kept, *(_Field(number, wire.VARINT, count) for number, count in counts.items() if count)])
        return LENGTH.pack(len(header)) + header + payload


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Return a report with random bits flipped: one in half of the cases, else up to a thousand."""
    changed = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 10, 100, 1000])):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def restructured(content: bytes, chance: random.Random) -> bytes:
    """Return a report with one to eight changes of its messages, and every length right."""
    framing = walk(content)
    blocks = [
        _Block(
            _fields(block.header) or [],
            [(kind, content[slice(*span)]) for kind, span in zip(block.kinds, block.spans, strict=True)],
        )
        for block in framing.blocks
    ]
    begin = content[: framing.blocks[0].header_offset - LENGTH.size]
    for _ in range(chance.choice([1, 1, 1, 2, 4, 8])):
        chance.choice([_change_order, _change_names, *[_change_message] * 6])(blocks, chance)
    return begin + b"".join(block.encoded() for block in blocks)


def _change_order(blocks: list[_Block], chance: random.Random) -> None:
    """Duplicate, drop or exchange blocks, or results of a block."""
    block = chance.choice(blocks)
    many: list[object] = chance.choice([blocks, block.entries])  # type: ignore[list-item]
    if many:
        _rearrange(many, chance)


def _change_names(blocks: list[_Block], chance: random.Random) -> None:
    """Rearrange the table of names, or set one."""
    tables = [each for block in blocks for each in block.header if each.number == _NAMES]
    if not tables:
        return
    table = chance.choice(tables)
    names = _fields(table.value)
    if names:
        if chance.random() < 0.5:
            _rearrange(names, chance)
        else:
            chance.choice(names).value = chance.choice(_TEXTS)
        table.value = _encoded(names)


def _change_message(blocks: list[_Block], chance: random.Random) -> None:
    """Change a field at a random depth of a header or a result."""
    block = chance.choice(blocks)
    if chance.random() < 0.1 or not block.entries:
        block.header = _fields(_changed(_encoded(block.header), chance)) or block.header
        return
    place = chance.randrange(len(block.entries))
    kind, content = block.entries[place]
    block.entries[place] = kind, _changed(content, chance)


def _changed(content: bytes, chance: random.Random) -> bytes:
    """Return a message with one field changed, in it or in a message that it holds."""
    fields = _fields(content)
    if not fields:
        return chance.choice(_TEXTS)
    chosen = chance.choice(fields)
    if chosen.wire_type == wire.LENGTH and chance.random() < 0.7:
        chosen.value = _changed(chosen.value, chance) if isinstance(chosen.value, bytes) else chosen.value
    else:
        chance.choice([_set_value, _set_value, _set_value, _renumber, _nest, _rearrange_around])(fields, chosen, chance)
    return _encoded(fields)


def _set_value(fields: list[_Field], chosen: _Field, chance: random.Random) -> None:
    if chosen.wire_type == wire.VARINT:
        chosen.value = chance.choice(_INTEGERS)
    elif chosen.wire_type == wire.FIXED64:
        chosen.value = struct.pack("<d", chance.choice(_NUMBERS))
    elif chosen.wire_type == wire.FIXED32:
        chosen.value = struct.pack("<f", max(min(chance.choice(_NUMBERS), 3e38), -3e38))
    else:
        chosen.value = chance.choice(_TEXTS)


def _renumber(fields: list[_Field], chosen: _Field, chance: random.Random) -> None:
    chosen.number = chance.choice([1, 2, 3, chosen.number + 1, chance.choice(fields).number, 2**29 - 1])


def _nest(fields: list[_Field], chosen: _Field, chance: random.Random) -> None:
    """Put the message into a field of itself, up to `_DEEPEST` times."""
    inner = _encoded(fields)
    for _ in range(chance.choice([1, 2, _DEEPEST])):
        inner = _Field(chosen.number, wire.LENGTH, inner).encoded()
    fields.append(_Field(chosen.number, wire.LENGTH, inner))


def _rearrange_around(fields: list[_Field], chosen: _Field, chance: random.Random) -> None:
    _rearrange(fields, chance)


def _rearrange(many: list[_Field] | list[object], chance: random.Random) -> None:
    """Duplicate, drop or exchange some of a list, or turn it round."""
    one, other = chance.randrange(len(many)), chance.randrange(len(many))
    acts: list[Callable[[], object]] = [
        lambda: many.insert(other, many[one]),  # type: ignore[arg-type]
        lambda: many.extend(many[one : one + 1] * chance.choice([1, 5, 50])),  # type: ignore[arg-type]
        lambda: many.pop(one),
        lambda: many.insert(other, many.pop(one)),  # type: ignore[arg-type]
        many.reverse,
    ]
    chance.choice(acts)()


def _fields(content: int | bytes) -> list[_Field] | None:
    """Return the fields of a message; None if it is none."""
    try:
        return [
            _Field(number, wire_type, value if isinstance(value, int) else bytes(value))
            for number, wire_type, value in wire.fields(content if isinstance(content, bytes) else b"")
        ]
    except wire.WireError:
        return None


def _encoded(fields: list[_Field]) -> bytes:
    return b"".join(each.encoded() for each in fields)
