from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncuroof.ingest import wire
from tests.support import wire_encoder


def test_varint_field_has_its_number_and_value() -> None:
    # The example of protobuf's documentation: tag 0x08 is field 1, wire type 0; 0x16 + (0x01 << 7) = 150.
    assert list(wire.fields(b"\x08\x96\x01")) == [(1, wire.VARINT, 150)]


def test_text_field_is_a_view_of_the_message() -> None:
    # Also from the documentation: tag 0x12 = field 2, wire type 2; seven bytes.
    message = b"\x12\x07testing"
    ((number, wire_type, value),) = wire.fields(message)
    assert (number, wire_type, wire.as_text(value)) == (2, wire.LENGTH, "testing")
    assert isinstance(value, memoryview)
    assert value.obj is message


def test_fixed_width_fields_are_floats() -> None:
    # 1.5 is 0x3FF8000000000000 in double and 0x3FC00000 in single precision; both are stored little-endian.
    message = b"\x09\x00\x00\x00\x00\x00\x00\xf8\x3f" + b"\x15\x00\x00\xc0\x3f"
    assert [(number, wire.as_float(value)) for number, _, value in wire.fields(message)] == [
        (1, 1.5),
        (2, 1.5),
    ]


def test_widest_varint_is_the_largest_64_bit_integer() -> None:
    ((_, _, value),) = wire.fields(b"\x08" + b"\xff" * 9 + b"\x01")
    assert value == 2**64 - 1


def test_empty_message_has_no_fields() -> None:
    assert list(wire.fields(b"")) == []


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"\x80", id="tag cut"),
        pytest.param(b"\x08", id="varint missing"),
        pytest.param(b"\x08\x80", id="varint cut"),
        pytest.param(b"\x08" + b"\x80" * 10 + b"\x01", id="varint of eleven bytes"),
        pytest.param(b"\x12\x08testing", id="length beyond the end"),
        pytest.param(b"\x12" + b"\xff" * 9 + b"\x01", id="length of 2**64 - 1"),
        pytest.param(b"\x09\x00\x00\x00", id="double cut"),
        pytest.param(b"\x0d\x00", id="float cut"),
        pytest.param(b"\x0b\x0c", id="group"),
        pytest.param(b"\x0f", id="wire type 7"),
        pytest.param(b"\x02\x00", id="field number 0"),
    ],
)
def test_malformed_field_raises_after_the_fields_before_it(message: bytes) -> None:
    found = wire.fields(b"\x08\x01" + message)
    assert next(found) == (1, wire.VARINT, 1)
    with pytest.raises(wire.WireError):
        next(found)


@given(st.binary(max_size=64))
def test_any_bytes_decode_or_raise_wire_error(message: bytes) -> None:
    try:
        decoded = list(wire.fields(message))
    except wire.WireError:
        return
    assert all(isinstance(value, int | memoryview) for _, _, value in decoded)


@pytest.mark.long
@given(st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1), st.text(), st.floats(allow_nan=False))
def test_encoded_fields_are_read_back(number: int, value: int, string: str, real: float) -> None:
    message = b"".join(
        (
            wire_encoder.integer(number, value),
            wire_encoder.text(number, string),
            wire_encoder.double(number, real),
        )
    )
    (first, a), (second, b), (third, c) = ((found, value) for found, _, value in wire.fields(message))
    assert (first, second, third) == (number, number, number)
    assert (wire.as_int(a), wire.as_text(b), wire.as_float(c)) == (value, string, real)


def test_text_that_is_not_utf8_is_marked_and_kept() -> None:
    assert wire.as_text(memoryview(b"a\xffb")) == "a\N{REPLACEMENT CHARACTER}b"


def test_value_of_a_different_kind_raises_wire_error() -> None:
    with pytest.raises(wire.WireError):
        wire.as_text(7)
    with pytest.raises(wire.WireError):
        wire.as_int(memoryview(b"abcd"))
    with pytest.raises(wire.WireError):
        wire.as_float(7)
    with pytest.raises(wire.WireError):
        wire.as_float(memoryview(b"abc"))


_NUMBERS = st.integers(1, 20)
_FIELDS = st.one_of(
    st.builds(wire_encoder.integer, _NUMBERS, st.integers(0, 2**64 - 1)),
    st.builds(wire_encoder.text, _NUMBERS, st.text(max_size=200)),
    st.builds(wire_encoder.double, _NUMBERS, st.floats()),
    st.builds(wire_encoder.float32, _NUMBERS, st.just(1.5)),
    st.binary(max_size=3),
)


@given(st.lists(_FIELDS, max_size=8).map(b"".join), _NUMBERS)
def test_a_field_begins_where_reading_all_fields_finds_it(message: bytes, wanted: int) -> None:
    after_the_last, expected = 0, None
    try:
        for number, start, _, end in wire.placed_fields(message):
            if number == wanted:
                expected = start
                break
            after_the_last = end
    except wire.WireError:  # what is cut may be the field itself
        assert wire.start_of(message, wanted) in {None, after_the_last}
    else:
        assert wire.start_of(message, wanted) == expected
