"""Launches that repeat: counters that are stored as in an earlier launch are taken all at once.

A program launches the same few kernels again and again. The counters of such a launch have the names and sizes that they had
before, and differ in the bits of their values alone. So its encoded counters, taken for one long number under a mask, are compared
with those of the earlier launch, and the wanted doubles are unpacked with one call. What differs is read counter by counter.
"""

from __future__ import annotations

import contextlib
import struct
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from operator import itemgetter

from ncuroof.ingest import wire
from ncuroof.ingest.native_values import DOUBLE, DOUBLE_BYTES, Decoder, Value
from ncuroof.ingest.wire_rewriting import varint

_NAMES, _COUNTERS = (5, 6, 7), 13
"""Fields of a kernel's result."""

_COUNTERS_TAG = varint(_COUNTERS << 3 | wire.LENGTH)
_N_FOR_IMPRINT = 3
"""An imprint costs about as much as reading three launches counter by counter."""

_MAX_IMPRINTS = 64
"""Held at a time; each takes twice the memory of the counters."""


@dataclass(frozen=True, slots=True)
class Head:
    """What stands before the counters of a kernel's result: its names, encoded, and how many bytes it is."""

    names: tuple[bytes, ...]
    n_bytes: int


def head_of(result: bytes) -> Head | None:
    """Return what stands before the counters of a kernel's result; None where there are none, or what is there is malformed."""
    names: list[bytes] = []
    with contextlib.suppress(wire.WireError):
        for number, start, body, end in wire.placed_fields(result):
            if number == _COUNTERS:
                return Head(tuple(names), start)
            if number in _NAMES and body is not None:
                names.append(result[body:end])
    return None


class Imprint:
    """What the encoded counters of a launch share with those of another one that repeats it.

    Args:
        counters: of the launch, encoded one by one.
        decoder: gives the values of those that are wanted; all its doubles are doubles in this launch.
        n_prefix: bytes at the beginning of each counter that hold its name.
        listings: positions of counters whose values must be the same, too.

    Attributes:
        n_bytes: of all counters, encoded together.
    """

    def __init__(self, counters: Sequence[bytes], decoder: Decoder, n_prefix: int, listings: Collection[int]) -> None:
        starts, masks = [], []
        end = 0
        for position, counter in enumerate(counters):
            n_before = len(_COUNTERS_TAG) + len(varint(len(counter)))
            n_fixed = len(counter) if position in listings else min(n_prefix, len(counter))
            masks.append(b"\xff" * (n_before + n_fixed) + bytes(len(counter) - n_fixed))
            starts.append(end + n_before)
            end += n_before + len(counter)
        mask = bytearray(b"".join(masks))
        doubles = [starts[position] + n_name for position, n_name in decoder.doubles]
        for start in doubles:
            mask[start : start + len(DOUBLE)] = b"\xff" * len(DOUBLE)
        self.n_bytes = end
        self._last = starts[-1] - 1
        self._encoded = b"".join(_COUNTERS_TAG + varint(len(counter)) + counter for counter in counters)
        self._mask = int.from_bytes(mask, "little")
        self._fixed = int.from_bytes(self._encoded, "little") & self._mask
        self._unpack = _doubles_at([start + len(DOUBLE) for start in doubles])
        self._decoder = decoder
        self._others = {
            position: (starts[position], starts[position] + len(counters[position])) for position, _ in decoder.others
        }

    def is_of(self, result: bytes, start: int) -> bool:
        """Return whether a result holds the very counters that this was made of at `start`, and one behind the other."""
        return result.startswith(self._encoded, start)

    def without_counters(self, result: bytes, start: int) -> bytes:
        """Return a result that fits, the counters at `start` left out."""
        return result[:start] + result[start + self.n_bytes :]

    def fits(self, result: bytes, start: int) -> bool:
        """Return whether the counters at `start` of a result differ from those that this was made of in bits of values alone."""
        if len(result) < start + self.n_bytes or result[start + self._last] != self._encoded[self._last]:
            return False  # nearly all that do not fit are told by where the last counter begins
        return int.from_bytes(result[start : start + self.n_bytes], "little") & self._mask == self._fixed

    def values(self, result: bytes, start: int) -> list[Value]:
        """Return the wanted values of a result that fits, in the order of the decoder.

        Raises:
            WireError, DecodeError: a counter is malformed.
        """
        others = {position: result[start + first : start + end] for position, (first, end) in self._others.items()}
        return [*self._unpack(result, start), *self._decoder.values_of_others(others)]


def _doubles_at(starts: Sequence[int]) -> Callable[[bytes, int], tuple[float, ...]]:
    """Return what unpacks the doubles at some offsets behind a start, in the order of these."""
    ordered = sorted(starts)
    gaps = [start - end for start, end in zip(ordered, [0, *(start + DOUBLE_BYTES for start in ordered)], strict=False)]
    unpack = struct.Struct("<" + "".join(f"{gap}xd" for gap in gaps)).unpack_from
    if len(starts) < 2:
        return unpack
    rank = {start: index for index, start in enumerate(ordered)}
    pick = itemgetter(*(rank[start] for start in starts))
    return lambda encoded, start: pick(unpack(encoded, start))


class Repeats:
    """The imprints of the launches of some kernels, by their names."""

    def __init__(self) -> None:
        self._imprints: dict[tuple[bytes, ...], list[Imprint]] = {}
        self._n_imprints = 0
        self._n_seen: Counter[tuple[tuple[bytes, ...], int]] = Counter()

    def find(self, result: bytes, head: Head) -> Imprint | None:
        """Return the imprint that the counters of a result fit, or None."""
        return next((each for each in self._imprints.get(head.names, ()) if each.fits(result, head.n_bytes)), None)

    def is_due(self, result: bytes, head: Head) -> bool:
        """Count a result that fits no imprint; return whether to make one of it: it is the third of its kernel and size."""
        kind = (head.names, len(result))
        self._n_seen[kind] += 1
        return self._n_seen[kind] == _N_FOR_IMPRINT and self._n_imprints < _MAX_IMPRINTS

    def keep(self, imprint: Imprint, head: Head) -> None:
        """Keep the imprint of a result."""
        self._imprints.setdefault(head.names, []).append(imprint)
        self._n_imprints += 1
