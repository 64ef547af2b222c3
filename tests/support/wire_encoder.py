"""Writes the protobuf wire format without protobuf: one function per kind of field, returning its bytes.

Source: Protocol Buffers documentation, "Encoding".
"""

from __future__ import annotations

import struct

_DOUBLE = struct.Struct("<d").pack
_FLOAT32 = struct.Struct("<f").pack


def varint(value: int) -> bytes:
    """Return an unsigned integer of at most 64 bits as a varint."""
    if not 0 <= value < 1 << 64:
        raise ValueError(f"an unsigned 64-bit integer was wanted, {value} was found")
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + _DOUBLE(value)


def float32(number: int, value: float) -> bytes:
    return varint(number << 3 | 5) + _FLOAT32(value)


def message(number: int, *fields: bytes) -> bytes:
    """Return a field that contains a message of the given fields."""
    body = b"".join(fields)
    return varint(number << 3 | 2) + varint(len(body)) + body


def text(number: int, value: str) -> bytes:
    return message(number, value.encode())
