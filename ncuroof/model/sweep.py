"""Parsing sizes from the command line: a number, a list, or a range to sweep."""

from __future__ import annotations

from ncuroof.errors import ModelError

MOST_VALUES = 4096


def sizes_of(text: str) -> tuple[int, ...]:
    """Return the sizes that a text means, in its order.

    "4096" is one size, "1,8,32" a list; "1:4096" doubles from the first and ends with the last; "256:4096:256" goes in steps.

    Raises:
        ModelError: the text has another form, or means more than `MOST_VALUES` sizes.
    """
    try:
        if "," in text:
            return tuple(map(_whole, text.split(",")))
        parts = [_whole(part) for part in text.split(":")]
    except ValueError:
        parts = []
    if len(parts) == 1:
        return (parts[0],)
    if not 2 <= len(parts) <= 3 or not 1 <= parts[0] <= parts[1] or parts[-1] < 1:
        raise ModelError(
            f"{text!r} is not a size", hint="write 4096, 1,8,32, 1:4096 (doubling) or 256:4096:256 (in steps)"
        )
    first, last = parts[:2]
    values = _doubling(first, last) if len(parts) == 2 else range(first, last + 1, parts[2])
    if len(values) > MOST_VALUES:
        raise ModelError(
            f"{text!r} means {len(values)} sizes; at most {MOST_VALUES} are allowed", hint="use larger steps"
        )
    return tuple(values)


def _doubling(first: int, last: int) -> list[int]:
    values = [first]
    while values[-1] * 2 < last:
        values.append(values[-1] * 2)
    return values if last == first else [*values, last]


def _whole(text: str) -> int:
    """Return a whole number, written as 4096, 4_096 or 1e9."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)
