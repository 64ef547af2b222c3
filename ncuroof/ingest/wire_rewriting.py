"""Rewrites encoded protobuf messages by an allow-list of fields; whatever is kept unchanged keeps its exact bytes.

A message is described by a treatment for each of its length-delimited fields (strings, bytes, submessages). The caller's `unknown`
treatment applies to fields without a description; redaction drops those, because an unknown field may hold anything. Numeric fields
are always kept, known or not.

Source: Protocol Buffers documentation, "Encoding" (tags, varints, length prefixes, fixed widths).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ncuroof.ingest import wire

Pass = TypeVar("Pass")
"""The state that treatments share and update during one pass over a report."""

Treatment = Callable[[bytes, Pass], "bytes | None"]
"""Maps the content of a field to its new content; None drops the field."""


def rewritten(
    encoded: wire.Bytes, treatment_by_field: Mapping[int, Treatment[Pass]], passing: Pass, unknown: Treatment[Pass]
) -> bytes:
    """Return a message with the treatment of each length-delimited field applied.

    Args:
        encoded: one message, without a length prefix.
        treatment_by_field: treatments by field number.
        passing: state passed to every treatment.
        unknown: treatment of all other length-delimited fields.

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
    """Return the message with its fields of number `number`, if it has any and they are numeric, set to the varint `value`.

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
    """Return a non-negative integer encoded as a varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
