"""Reads and rewrites the protobuf wire format without protobuf: the fields of one encoded message, in order.

Reports are untrusted input, so every length is checked against the buffer before it is used. Values are not
copied: a length-delimited or fixed-width field is a view into the message. The caller decides what a field
number means, and ignores the numbers it does not know.

A message is rewritten by a treatment for each of its length-delimited fields (strings, bytes, submessages); whatever is kept
unchanged keeps its exact bytes. The caller's `unknown` treatment applies to fields without a description; redaction drops those,
because an unknown field may hold anything. Numeric fields are always kept, known or not.

Source: Protocol Buffers documentation, "Encoding" (tags, varints, length prefixes, fixed widths).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

VARINT = 0
FIXED64 = 1
LENGTH = 2
FIXED32 = 5

Bytes = bytes | bytearray | memoryview
Field = tuple[int, int, int | memoryview]

_WIDTH_BYTES_BY_WIRE_TYPE = {FIXED64: 8, FIXED32: 4}
_MAX_VARINT_BYTES = 10
_LAST_OF_ONE_BYTE = 0x7F
_MAX_FIELD_NUMBER = (1 << 29) - 1

Pass = TypeVar("Pass")
"""The state that treatments share and update during one pass over a report."""

Treatment = Callable[[bytes, Pass], "bytes | None"]
"""Maps the content of a field to its new content; None drops the field."""


class WireError(ValueError):
    """The bytes are not a well-formed message. Raised and handled inside `ingest`; users never see it."""


def fields(message: Bytes) -> Iterator[Field]:
    """Yield `(number, wire type, value)` of each field of an encoded message.

    Args:
        message: one encoded message, without a length prefix.

    Yields:
        The value is an int (0..2**64 - 1) for `VARINT`, and a view of the raw bytes for the other wire types.

    Raises:
        WireError: the iteration reached a malformed or truncated field; the fields before it have been yielded.
    """
    view = memoryview(message)
    n_bytes = len(view)
    position = 0
    while position < n_bytes:
        tag = view[position]
        position += 1
        if tag > _LAST_OF_ONE_BYTE:
            tag, position = _varint(view, position - 1)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number <= _MAX_FIELD_NUMBER:
            raise WireError(f"field number {number} at offset {position}")
        if wire_type == VARINT:
            value, position = _varint(view, position)
            yield number, wire_type, value
            continue
        if wire_type == LENGTH:
            width, position = _varint(view, position)
        else:
            width = _WIDTH_BYTES_BY_WIRE_TYPE.get(wire_type, -1)
        if width < 0:
            raise WireError(f"wire type {wire_type} at offset {position}")
        if width > n_bytes - position:
            raise WireError(
                f"field {number} needs {width} bytes at offset {position}, only {n_bytes - position} are left"
            )
        yield number, wire_type, view[position : position + width]
        position += width


def start_of(message: bytes, wanted: int) -> int | None:
    """Return the offset of the first field with number `wanted`; None if there is none or a field before it is malformed.

    Takes half the time of `placed_fields`, because the fields in between are skipped without building values.
    """
    view = memoryview(message)
    position = 0
    try:
        while position < len(view):
            start = position
            tag, position = _varint(view, position)
            number, wire_type = tag >> 3, tag & 7
            if number == wanted:
                return start
            if not 0 < number <= _MAX_FIELD_NUMBER:
                return None
            if wire_type == VARINT:
                _, position = _varint(view, position)
            elif wire_type == LENGTH:
                size, position = _varint(view, position)
                position += size
            elif wire_type in _WIDTH_BYTES_BY_WIRE_TYPE:
                position += _WIDTH_BYTES_BY_WIRE_TYPE[wire_type]
            else:
                return None
    except WireError:
        pass
    return None


def placed_fields(message: Bytes) -> Iterator[tuple[int, int, int | None, int]]:
    """Yield `(number, start, content start, end)` of each field of an encoded message, as offsets into it.

    The content start is None unless the field is length-delimited.

    Raises:
        WireError: the iteration reached a malformed or truncated field; the fields before it have been yielded.
    """
    view = memoryview(message)
    position = 0
    for number, wire_type, value in fields(view):
        start = position
        if isinstance(value, int):
            position = _after_varint(view, _after_varint(view, start))
        elif wire_type == LENGTH:
            position = _after_varint(view, _after_varint(view, start)) + len(value)
        else:
            position = _after_varint(view, start) + len(value)
        yield number, start, position - len(value) if wire_type == LENGTH else None, position  # type: ignore[arg-type]


def as_text(value: int | memoryview) -> str:
    """Return a string field as text; bytes that are not UTF-8 become U+FFFD.

    Raises:
        WireError: the field is a varint.
    """
    return bytes(_view(value)).decode("utf-8", errors="replace")


def as_int(value: int | memoryview) -> int:
    """Return an integer field.

    Raises:
        WireError: the field is not a varint.
    """
    if not isinstance(value, int):
        raise WireError(f"expected an integer, found a field of {len(value)} bytes")
    return value


def as_float(value: int | memoryview) -> float:
    """Return the value of a `FIXED64` (double) or `FIXED32` (single-precision) field.

    Raises:
        WireError: the field has neither width.
    """
    view = _view(value)
    if len(view) == 8:
        return float(struct.unpack("<d", view)[0])
    if len(view) == 4:
        return float(struct.unpack("<f", view)[0])
    raise WireError(f"expected a float of 4 or 8 bytes, found {len(view)}")


def _view(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise WireError(f"expected bytes, found the integer {value}")
    return value


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    """Return the varint at `position` and the position after it.

    Bits above the 64th are dropped, as in protobuf.
    """
    if position < len(view) and (value := view[position]) <= _LAST_OF_ONE_BYTE:
        return value, position + 1
    value = 0
    for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
        if position >= len(view):
            raise WireError(f"a varint is truncated at offset {position}")
        byte = view[position]
        position += 1
        value |= (byte & _LAST_OF_ONE_BYTE) << shift
        if byte <= _LAST_OF_ONE_BYTE:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
    raise WireError(f"a varint longer than {_MAX_VARINT_BYTES} bytes ends at offset {position}")


def _after_varint(view: memoryview, position: int) -> int:
    """Return the position after a varint that is known to be well-formed."""
    while view[position] > _LAST_OF_ONE_BYTE:
        position += 1
    return position + 1


def rewritten(
    encoded: Bytes, treatment_by_field: Mapping[int, Treatment[Pass]], passing: Pass, unknown: Treatment[Pass]
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
    for number, start, body, stop in placed_fields(view):
        if body is None:
            parts.append(view[start:stop])
            continue
        old = bytes(view[body:stop])
        new = treatment_by_field.get(number, unknown)(old, passing)
        if new is not None:
            parts.append(view[start:stop] if new == old else field(number, new))
    return b"".join(parts)


def with_number(encoded: Bytes, number: int, value: int) -> bytes:
    """Return the message with its fields of number `number`, if it has any and they are numeric, set to the varint `value`.

    Raises:
        WireError: the message is malformed.
    """
    view = memoryview(encoded)
    parts = []
    for found, start, body, stop in placed_fields(view):
        is_it = found == number and body is None
        parts.append(varint(number << 3) + varint(value) if is_it else bytes(view[start:stop]))
    return b"".join(parts)


def field(number: int, content: bytes) -> bytes:
    """Return an encoded length-delimited field."""
    return varint(number << 3 | LENGTH) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """Return a non-negative integer encoded as a varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
