"""Fast path for repeated launches: if a launch stores its counters like an earlier one, they are all decoded in one call.

A program launches the same few kernels over and over. The encoded counters of a repeated launch have the same names and sizes as
before and differ only in the bits of their values. So they are compared with those of the earlier launch as one long integer under
a mask, and the wanted doubles are unpacked with a single call. Launches that do not match are read counter by counter.
"""

from __future__ import annotations

import operator
import struct
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any

from ncuroof.ingest import wire
from ncuroof.ingest.native.values import DOUBLE, DOUBLE_BYTES, Decoder, Value
from ncuroof.ingest.wire import varint

_COUNTERS = 13
"""Number of the field of a kernel's result that holds a counter."""

_COUNTERS_TAG = varint(_COUNTERS << 3 | wire.LENGTH)
_N_FOR_IMPRINT = 3
"""Launches after which an imprint is made: it costs about as much as reading three launches counter by counter."""

_MAX_IMPRINTS = 64
"""Imprints kept at a time; each takes twice the memory of the counters."""

_N_SHORT_BYTES = 16
"""Bytes compared of a counter longer than twice as many; the rest, the values of its instances, is skipped."""


def counters_start(result: bytes) -> int | None:
    """Return the offset of the first counter in a kernel's result; None if there is none or a field before it is malformed."""
    return wire.start_of(result, _COUNTERS)


class Imprint:
    """The bits of a launch's encoded counters that every repetition of it has in common.

    Args:
        counters: the encoded counters of the launch.
        decoder: decodes the wanted ones; all its doubles must be doubles in this launch.
        n_prefix: leading bytes of each counter that hold its name.
        listings: positions of counters whose values have to match too.

    Attributes:
        n_bytes: size of all counters together, including tags and lengths.
    """

    def __init__(self, counters: Sequence[bytes], decoder: Decoder, n_prefix: int, listings: Collection[int]) -> None:
        sizes = list(map(len, counters))
        tag_by_size = {size: _COUNTERS_TAG + varint(size) for size in set(sizes)}
        tags = [tag_by_size[size] for size in sizes]
        ends = list(accumulate(len(tag) + size for tag, size in zip(tags, sizes, strict=True)))
        starts = list(map(operator.sub, ends, sizes))
        self.n_bytes = ends[-1]
        self._last = starts[-1] - 1
        self._encoded = b"".join(chain.from_iterable(zip(tags, counters, strict=True)))

        mask_by_size = {size: _mask(len(tag), min(n_prefix, size), size) for size, tag in tag_by_size.items()}
        masks = [mask_by_size[size] for size in sizes]
        for position in listings:
            masks[position] = b"\xff" * len(masks[position])
        mask = bytearray().join(masks)
        doubles = [starts[position] + n_name for position, n_name in decoder.doubles]
        for start in doubles:
            mask[start : start + len(DOUBLE)] = b"\xff" * len(DOUBLE)
        passed_over = [
            (start + _N_SHORT_BYTES, end)
            for position, (start, end) in enumerate(zip(starts, ends, strict=True))
            if end - start > 2 * _N_SHORT_BYTES and position not in listings
        ]
        self._compared = _ranges_without(passed_over, self.n_bytes)
        self._mask = int.from_bytes(b"".join(self._compared(mask, 0)), "little")
        self._fixed = self._number(self._encoded, 0) & self._mask
        self._unpack = _doubles_at([start + len(DOUBLE) for start in doubles])
        self._others = _ranges([(starts[position], ends[position]) for position, _ in decoder.others])
        self._decoder = decoder

    def is_of(self, result: bytes, start: int) -> bool:
        """Return whether a result contains exactly the counters of this imprint at `start`, contiguously."""
        return result.startswith(self._encoded, start)

    def without_counters(self, result: bytes, start: int) -> bytes:
        """Return a fitting result without its counters, which begin at `start`."""
        return result[:start] + result[start + self.n_bytes :]

    def fits(self, result: bytes, start: int) -> bool:
        """Return whether the counters at `start` of a result differ from those of this imprint only in the bits of their values."""
        if len(result) < start + self.n_bytes or result[start + self._last] != self._encoded[self._last]:
            return False  # quick check at the expected start of the last counter, which rejects nearly all misfits
        return self._number(result, start) & self._mask == self._fixed

    def values(self, result: bytes, start: int) -> list[Value]:
        """Return the wanted values of a fitting result, in the order of the decoder.

        Raises:
            WireError, DecodeError: a counter is malformed.
        """
        return [*self._unpack(result, start), *self._decoder.values_of_others(self._others(result, start))]

    def _number(self, encoded: bytes, start: int) -> int:
        return int.from_bytes(b"".join(self._compared(encoded, start)), "little")


_Range = tuple[int, int]
_Take = Callable[[bytes | bytearray, int], tuple[bytes, ...]]
"""Takes encoded bytes and an offset, and returns fixed ranges of the bytes after this offset."""


def _ranges_without(passed_over: Sequence[_Range], n_bytes: int) -> _Take:
    """Return a function that takes all of `n_bytes` except the ranges `passed_over`, which are in ascending order."""
    starts = [0, *(end for _, end in passed_over)]
    ends = [*(start for start, _ in passed_over), n_bytes]
    return _ranges(list(zip(starts, ends, strict=True)))


def _ranges(ranges: Sequence[_Range]) -> _Take:
    """Return a function that takes the given ranges, in the given order."""
    return _unpacked(ranges, [f"{end - start}s" for start, end in ranges])


def _doubles_at(starts: Sequence[int]) -> Callable[[bytes, int], tuple[float, ...]]:
    """Return a function that unpacks the doubles at the given offsets from a start, in the given order."""
    return _unpacked([(start, start + DOUBLE_BYTES) for start in starts], ["d"] * len(starts))


def _unpacked(ranges: Sequence[_Range], formats: Sequence[str]) -> Callable[..., tuple[Any, ...]]:
    """Return a function that unpacks ranges of bytes after an offset, each by its format of `struct`, in the given order."""
    order = sorted(range(len(ranges)), key=ranges.__getitem__)
    layout, position = "<", 0
    for place in order:
        start, end = ranges[place]
        layout += f"{start - position}x{formats[place]}"
        position = end
    unpack = struct.Struct(layout).unpack_from
    if order == list(range(len(ranges))):
        return unpack
    pick = itemgetter(*sorted(range(len(order)), key=order.__getitem__))
    return lambda encoded, start: pick(unpack(encoded, start))


def _mask(n_tag: int, n_name: int, size: int) -> bytes:
    """Return the comparison mask of one counter: ones over its tag, length and name, zeros over its value.

    Args:
        n_tag: bytes of tag and length.
        n_name: leading bytes of the counter that hold its name.
        size: bytes of the counter, without tag and length.
    """
    return b"\xff" * (n_tag + n_name) + bytes(size - n_name)


class Repeats:
    """The imprints kept so far.

    A program tends to launch kernels in the same order, so the imprint that followed the last one before is tried first.
    """

    def __init__(self) -> None:
        self._imprints: list[Imprint] = []
        self._n_seen: Counter[int] = Counter()
        self._last: Imprint | None = None
        self._next: dict[Imprint | None, Imprint] = {}

    def find(self, result: bytes, start: int) -> Imprint | None:
        """Return an imprint that fits the counters at `start` of a result, or None."""
        before, expected = self._last, self._next.get(self._last)
        if expected is not None and expected.fits(result, start):
            self._last = expected
            return expected
        self._last = next((imprint for imprint in self._imprints if imprint.fits(result, start)), None)
        if self._last is not None:
            self._next[before] = self._last
        return self._last

    def is_due(self, kind: int) -> bool:
        """Count a result that fits no imprint, and return whether to make one of it: it is the third of its kind."""
        self._n_seen[kind] += 1
        return self._n_seen[kind] == _N_FOR_IMPRINT and len(self._imprints) < _MAX_IMPRINTS

    def keep(self, imprint: Imprint) -> None:
        """Add an imprint, made of the latest result."""
        self._imprints.insert(0, imprint)
        self._last = imprint
