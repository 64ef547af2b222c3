"""Rewrites encoded protobuf messages by an allow-list of their fields, and keeps the bytes of what stays as they are.

A message is described by what becomes of its length-delimited fields: texts, bytes, messages. One that is not described is left
out, because what is not known may be anything. Numbers stay, known or not.

Source: Protocol Buffers documentation, "Encoding" (tags, varints, length prefixes, fixed widths).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ncuroof.ingest import wire

Pass = TypeVar("Pass")
"""What a rewriting notes while it goes over a report."""

Treatment = Callable[[bytes, Pass], "bytes | None"]
"""What becomes of a field's content; None leaves the field out."""


def rewritten(
    encoded: wire.Bytes, treatment_by_field: Mapping[int, Treatment[Pass]], passing: Pass, unknown: Treatment[Pass]
) -> bytes:
    """Return a message with each length-delimited field treated.

    Args:
        encoded: one message, without a length prefix.
        treatment_by_field: by field number.
        passing: handed to every treatment.
        unknown: the treatment of fields that are not described.

    Raises:
        WireError: the message is malformed.
    """
    view = memoryview(encoded)
    parts: list[bytes | memoryview] = []
    for number, start, body, stop in wire.placed_fields(view):
        if body is None:
            parts.append(view[start:stop])
            continue
        old = bytes(view[body:stop])
        new = treatment_by_field.get(number, unknown)(old, passing)
        if new is not None:
            parts.append(view[start:stop] if new == old else field(number, new))
    return b"".join(parts)


def with_number(encoded: wire.Bytes, number: int, value: int) -> bytes:
    """Return the message with its varint field `number`, where it has one, set to `value`.

    Raises:
        WireError: the message is malformed.
    """
    view = memoryview(encoded)
    parts = []
    for found, start, body, stop in wire.placed_fields(view):
        is_it = found == number and body is None
        parts.append(varint(number << 3) + varint(value) if is_it else bytes(view[start:stop]))
    return b"".join(parts)


def field(number: int, content: bytes) -> bytes:
    """Return an encoded length-delimited field."""
    return varint(number << 3 | wire.LENGTH) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """Return a whole number, at least 0, as a varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
