"""Decodes what a result contains besides counters: collected sections, messages of NVIDIA's rules, and open NVTX ranges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ncuroof.ingest.native.schema import messages
from ncuroof.ingest.raw_report import RULE_SCOPES

_RULE_TYPES = ("none", "ok", "warning", "error", "optimization")
_N_CACHED_STATES = 256
"""Decoded NVTX states kept: successive launches are usually within the same ranges."""

_FIRST_FIELD_IS_TEXT, _LONGEST_ONE_BYTE_LENGTH = 0x0A, 0x7F


def text(encoded: bytes) -> str:
    """Return text of a report; bytes that are not UTF-8 become U+FFFD."""
    return encoded.decode("utf-8", "replace")


def c_text(encoded: bytes) -> str:
    """Return text up to the first zero byte, as readers that treat it as a C string see it."""
    return text(encoded.partition(b"\0")[0])


def section_identifiers(sections: Iterable[bytes], schema: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the identifier of each encoded section, as bytes.

    Raises:
        DecodeError: a section is malformed.
    """
    for section in sections:
        # The identifier comes first, so the charts after it, some kilobytes in each result, need not be decoded.
        if len(section) > 1 and section[0] == _FIRST_FIELD_IS_TEXT and section[1] <= _LONGEST_ONE_BYTE_LENGTH:
            yield section[2 : 2 + section[1]]
        else:
            yield schema["Section"].FromString(section).identifier


@lru_cache(maxsize=_N_CACHED_STATES)
def open_ranges(state: bytes, thread: int) -> tuple[str, ...]:
    """Return the names of the NVTX ranges that were open at a launch: push/pop ranges outermost first, then start/end ranges.

    Args:
        state: the encoded NVTX state.
        thread: id of the launching thread; push/pop ranges of other threads do not count.

    Raises:
        DecodeError: the state is malformed.
    """
    nvtx = messages()["Nvtx"].FromString(state)
    pushed = next((each.pushed for each in nvtx.threads if each.id == thread), ())
    found: list[str] = []
    for kept in (pushed, nvtx.started):
        ranges_by_domain = {
            each.domain: each.ranges for each in reversed(kept)
        }  # reversed: if a domain occurs twice, the first entry wins
        found += [text(item.name) for domain in nvtx.domains for item in ranges_by_domain.get(domain.id, ())]
    return tuple(found)


def rule_rows(row: int, rules: Iterable[Any]) -> Iterator[tuple[object, ...]]:
    """Yield a row of RAW_RULES for each item in the decoded `rules` of the workload in row `row`."""
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
                RULE_SCOPES.get(speedup.scope),
            )
