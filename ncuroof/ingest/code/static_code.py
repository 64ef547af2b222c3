"""What each kernel's machine code says without counters: indices that it never reads, arithmetic, uses of memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from ncuroof.ingest.code.adjacent_loads import adjacent_share
from ncuroof.ingest.code.arithmetic import operations_in
from ncuroof.ingest.code.async_copies import serial_copies
from ncuroof.ingest.code.local_accesses import local_share
from ncuroof.ingest.code.modules import CodeModule, kernel_spans, located
from ncuroof.ingest.code.shared_stores import unread_shared_stores
from ncuroof.ingest.code.thread_indices import unread_in
from ncuroof.ingest.framing import Framing
from ncuroof.ingest.stored import Content

_MOST_LOOKED_AT = 1_000
"""Launches analysed; of more, only the first ones."""

_MOST_BYTES = 1 << 26
"""Bytes of code searched, over all functions. A large kernel has 0.1 MB."""

_N_FUNCTIONS = 4_096
"""Functions whose result is cached for further launches."""


@dataclass(frozen=True, slots=True)
class StaticCode:
    """What the code of a kernel says; see RawReport for the attributes, each of which is None if not known."""

    unread_indices: frozenset[str] | None = None
    operations: Mapping[str, int] | None = None
    adjacent_loads: float | None = None
    local_accesses: float | None = None
    unread_shared_stores: int | None = None
    serial_copies: int | None = None


def static_code(
    content: Content, framing: Framing, modules: Mapping[int, CodeModule], rows: Iterable[int]
) -> list[StaticCode]:
    """Return what the code of each workload says; nothing is known of it if the report does not contain the code.

    Args:
        content: the report's bytes.
        framing: its blocks.
        modules: the code in the report, by reference.
        rows: workload rows, the most important first.
    """
    if modules and not any(module.code for module in modules.values()):
        return []
    spans = list(kernel_spans(framing))
    found = [StaticCode()] * len(spans)
    n_left = _MOST_BYTES

    @lru_cache(_N_FUNCTIONS)
    def code_of(module: CodeModule, function: bytes) -> StaticCode:
        nonlocal n_left
        image = module.image
        if image is None or n_left <= 0:
            return StaticCode()
        code = image.code(function)
        n_left -= len(code)
        target = image.compute_capability
        return StaticCode(
            unread_in(code, target),
            operations_in(code, target),
            adjacent_share(code, target),
            local_share(code, target),
            unread_shared_stores(code, target),
            serial_copies(code, target),
        )

    for row in islice(rows, _MOST_LOOKED_AT):
        span = spans[row]
        kernel = None if span is None else located(content, span, modules)
        if kernel is not None:
            found[row] = code_of(*kernel)
    return found
