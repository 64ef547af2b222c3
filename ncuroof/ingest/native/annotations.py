"""What a result says besides its counters: the sections that were collected, NVIDIA's rules, and the open NVTX ranges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ncuroof.ingest.native.schema import messages

_RULE_TYPES = ("none", "ok", "warning", "error", "optimization")
_SCOPES = {1: "local", 2: "global"}
_N_CACHED_STATES = 256
"""Launches follow each other within the same ranges."""

_FIRST_FIELD_IS_TEXT, _LONGEST_ONE_BYTE_LENGTH = 0x0A, 0x7F


def text(encoded: bytes) -> str:
    """Return text of a report, with U+FFFD where it is no UTF-8."""
    return encoded.decode("utf-8", "replace")


def c_text(encoded: bytes) -> str:
    """Return text that other readers take for a C string: what follows a zero byte is not part of it."""
    return text(encoded.partition(b"\0")[0])


def section_identifiers(sections: Iterable[bytes], schema: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the identifier of each encoded section, encoded.

    Raises:
        DecodeError: a section is malformed.
    """
    for section in sections:
        # The identifier is written first: the charts behind it, some kilobytes in each result, need not be decoded.
        if len(section) > 1 and section[0] == _FIRST_FIELD_IS_TEXT and section[1] <= _LONGEST_ONE_BYTE_LENGTH:
            yield section[2 : 2 + section[1]]
        else:
            yield schema["Section"].FromString(section).identifier


@lru_cache(maxsize=_N_CACHED_STATES)
def open_ranges(state: bytes, thread: int) -> tuple[str, ...]:
    """Return the names of the NVTX ranges that were open at a launch: pushed ones outermost first, then started ones.

    Args:
        state: the encoded NVTX state.
        thread: that launched; what others have pushed is not open for it.

    Raises:
        DecodeError: the state is malformed.
    """
    nvtx = messages()["Nvtx"].FromString(state)
    pushed = next((each.pushed for each in nvtx.threads if each.id == thread), ())
    found: list[str] = []
    for kept in (pushed, nvtx.started):
        ranges_by_domain = {
            each.domain: each.ranges for each in reversed(kept)
        }  # of one that is there twice the first counts
        found += [text(item.name) for domain in nvtx.domains for item in ranges_by_domain.get(domain.id, ())]
    return tuple(found)


def rule_rows(row: int, rules: Iterable[Any]) -> Iterator[tuple[object, ...]]:
    """Yield a row of RAW_RULES for each message of the rules; an item of a rule that says nothing has no row."""
    for rule in rules:
        identifier, section = text(rule.identifier), text(rule.section)
        for item in rule.body.items:
            message, speedup = item.message, item.speedup
            percent = speedup.percent if item.HasField("speedup") else None
            yield (
                row,
                identifier,
                section,
                text(message.title),
                text(message.text),
                _RULE_TYPES[message.type] if 0 <= message.type < len(_RULE_TYPES) else "none",
                percent / 100 if percent is not None and math.isfinite(percent) else None,
                _SCOPES.get(speedup.scope),
            )
