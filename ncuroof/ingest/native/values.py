"""Decodes counters into numbers and texts: doubles with encodings of equal size in one call, everything else one by one.

Source: Nsight Compute Customization Guide, "Report File Format": ProfileMetricResult and ProfileMetricValue; Protocol Buffers
documentation, "Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from ncuroof.ingest.native.annotations import c_text
from ncuroof.ingest.native.schema import messages
from ncuroof.ingest.raw_report import instances_text
from ncuroof.ingest.wire import WireError

Value = float | str | None
Place = tuple[int, int]
"""A counter's index among the counters of a result, and the bytes that its name takes, which is where its value begins."""

_NAME_TAG, _VALUE_TAG = b"\x08", 0x12
_LONGEST_SHORT_VALUE = 0x7F
DOUBLE = b"\x12\x09\x19"
"""Encoding of a value (field 2) of nine bytes that is a double (field 3, fixed 64 bits), up to the double itself."""

DOUBLE_BYTES = 8
_SHORT_BYTES, _N_CACHED_VALUES = 32, 1 << 14

_unpack_double = struct.Struct("<d").unpack_from


class Decoder:
    """Decodes the same counters of one result after another.

    Args:
        places: where the wanted counters are in a result.
        first: all encoded counters of one of the results. Counters that are doubles here are expected to be doubles in the others.
        instances: for counters whose instance values are wanted, by index into `places`: prefixes of the instance names to keep.

    Attributes:
        order: indices into `places`, in the order in which values are returned.
        doubles: places of the counters that are doubles in `first`; their values are returned first.
        others: places of the rest.
    """

    def __init__(
        self, places: Sequence[Place], first: Sequence[bytes], instances: Mapping[int, tuple[str, ...]] | None = None
    ) -> None:
        instances = instances or {}
        size = {index: len(first[position]) for index, (position, _) in enumerate(places)}
        plain = [
            index
            for index, (position, start) in enumerate(places)
            if index not in instances and _is_double(first[position], start)
        ]
        plain.sort(key=size.__getitem__)
        self.order = plain + sorted(set(size).difference(plain))
        self._alike = [
            _Doubles([places[index] for index in indices]) for _, indices in groupby(plain, key=size.__getitem__)
        ]
        self.doubles, self.others = ([places[index] for index in part] for part in (plain, self.order[len(plain) :]))
        self._others = _Repeated(self.others, [instances.get(index) for index in self.order[len(plain) :]])

    def values(self, metrics: Sequence[bytes]) -> list[Value]:
        """Return the values of a result's wanted counters, in the order of `order`.

        Args:
            metrics: all encoded counters of the result.

        Raises:
            WireError, DecodeError: a counter is malformed.
        """
        values: list[Value] = []
        for doubles in self._alike:
            values += doubles.values(metrics)
        values += self._others.values(tuple(metrics[position] for position, _ in self.others))
        return values

    def is_as_expected(self, metrics: Sequence[bytes]) -> bool:
        """Return whether all counters in `doubles` are encoded as doubles in a result."""
        return all(_is_double(metrics[position], start) for position, start in self.doubles)

    def values_of_others(self, encoded: tuple[bytes, ...]) -> list[Value]:
        """Return the values of the counters in `others`.

        Args:
            encoded: these counters, in that order.

        Raises:
            WireError, DecodeError: a counter is malformed.
        """
        return self._others.values(encoded)


class _Repeated:
    """Counters of any encoding; only those that changed since the previous result are decoded.

    Most do not change: device attributes, the launch shape.
    """

    def __init__(self, places: list[Place], instances: list[tuple[str, ...] | None]) -> None:
        self._decoders: list[Callable[[bytes], Value]] = [
            partial(_decoded, start=start) if prefixes is None else partial(_instances, prefixes=prefixes)
            for (_, start), prefixes in zip(places, instances, strict=True)
        ]
        self._encoded: tuple[bytes, ...] = (b"",) * len(places)
        self._values: list[Value] = [None] * len(places)

    def values(self, encoded: tuple[bytes, ...]) -> list[Value]:
        if encoded != self._encoded:
            values = [
                value if now == before else decoded(now)
                for now, before, value, decoded in zip(
                    encoded, self._encoded, self._values, self._decoders, strict=True
                )
            ]
            self._encoded, self._values = encoded, values
        return self._values.copy()


class _Doubles:
    """Counters that are doubles with encodings of equal size, so that a single call unpacks all of them."""

    def __init__(self, places: list[Place]) -> None:
        self._places = places
        self._start = places[0][1]
        head = self._start + len(DOUBLE)
        self._stride = head + DOUBLE_BYTES
        self._unpack = struct.Struct("<" + f"{head}xd" * len(places)).unpack
        self._marks = [bytes([byte]) * len(places) for byte in DOUBLE]
        self._pick: Callable[[Sequence[bytes]], Any] = itemgetter(*(position for position, _ in places))

    def values(self, metrics: Sequence[bytes]) -> Sequence[Value]:
        if len(self._places) == 1:
            return decode(metrics, self._places)
        picked = self._pick(metrics)
        joined = b"".join(picked)
        is_alike = set(map(len, picked)) == {self._stride} and all(
            joined[offset :: self._stride] == mark for offset, mark in enumerate(self._marks, start=self._start)
        )
        return self._unpack(joined) if is_alike else decode(metrics, self._places)


def _is_double(metric: bytes, start: int) -> bool:
    """Return whether a counter is its name, which takes `start` bytes, and a double."""
    return len(metric) == start + len(DOUBLE) + DOUBLE_BYTES and metric.startswith(DOUBLE, start)


def decode(metrics: Sequence[bytes], places: Iterable[Place]) -> list[Value]:
    """Return the values of the counters at the given places of a result, decoded one by one.

    Raises:
        WireError, DecodeError: a counter is malformed.
    """
    return [_decoded(metrics[position], start) for position, start in places]


def _decoded(metric: bytes, start: int) -> Value:
    if metric.startswith(DOUBLE, start) and len(metric) >= start + len(DOUBLE) + DOUBLE_BYTES:
        return float(_unpack_double(metric, start + len(DOUBLE))[0])
    return _short_value(metric, start) if len(metric) <= _SHORT_BYTES else _value(metric, start)


def _value(metric: bytes, start: int) -> Value:
    """Return the value of a counter; None if it has only instances."""
    if len(metric) > start + 1 and metric[start] == _VALUE_TAG and metric[start + 1] <= _LONGEST_SHORT_VALUE:
        end = start + 2 + metric[start + 1]
        if end <= len(metric):
            return _one_value(metric[start + 2 : end])
    whole = messages()["Metric"].FromString(metric)
    return _one_value(whole.value) if whole.HasField("value") else None


_short_value = lru_cache(maxsize=_N_CACHED_VALUES)(_value)
"""`_value` with a cache: device attributes are the same in every result, and many launches resemble the previous one."""


def _instances(metric: bytes, prefixes: tuple[str, ...]) -> str | None:
    """Return the values of a counter's instances whose names begin with one of `prefixes`, as text; None if they are malformed."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    try:
        elements = messages()["Instances"].FromString(metric).elements
    except DecodeError:
        return None
    named = ((c_text(each.name.text), _number(each.value)) for each in elements)
    return instances_text((name, value) for name, value in named if name.startswith(prefixes) and value is not None)


def _number(value: Any) -> float | None:
    found = _of_message(value)
    return found if isinstance(found, float) else None


def _one_value(encoded: bytes) -> Value:
    """Return the decoded value; integers become floats."""
    return _of_message(messages()["Value"].FromString(encoded))


def _of_message(value: Any) -> Value:
    for kind in ("long", "double", "single", "short"):
        if value.HasField(kind):
            return float(getattr(value, kind))
    return c_text(value.text) if value.HasField("text") else None


def name_id(metric: bytes, n_prefix: int) -> tuple[int, int]:
    """Return the identifier of a counter's name (its index into the string table), and the bytes it takes, including its tag.

    Args:
        metric: the encoded counter.
        n_prefix: the most bytes that tag and identifier may take.

    Raises:
        WireError: the counter does not begin with its name, or the name takes more bytes.
    """
    identifier = 0
    if metric[:1] != _NAME_TAG:
        raise WireError("a counter does not begin with its name")
    for index, byte in enumerate(metric[1:n_prefix]):
        identifier |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return identifier, 2 + index
    raise WireError("the name of a counter is truncated or too long")
