"""Removes ncu's progress from the output of ranks: several ncu cannot share one log file, so they print to the ranks' streams.

ncu starts a line for each kernel and extends it as passes end. What ranks print meanwhile lands on that line, and ncu's next
message on a later one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARK = b"==PROF== "
_WHOLE = re.compile(rb"==PROF== (?:Connected|Disconnected|Report)\b[^\n]*\n")
_BEGIN = re.compile(rb'==PROF== Profiling "[^\n]*?"[^":\n]*: ')
_FIRST_PERCENT = re.compile(rb"\d{1,3}%")
_PERCENT = re.compile(rb"\.{4}\d{1,3}%")
_PASSES = re.compile(rb" - \d+ pass(?:es)?\r?\n")
_MAY_BECOME_FIRST = re.compile(rb"\d{0,3}")
_MAY_BECOME_SCRAP = re.compile(rb"\.{0,3}|\.{4}\d{0,3}| -? ?| - \d+ ?p?a?s?s?e?s?\r?")


@dataclass(slots=True)
class WithoutProgress:
    """Removes ncu's progress from a stream that arrives in chunks, and holds back only what may still turn out to be progress."""

    _held: bytes = b""
    _is_inside: bool = False
    """Part of the current line has been passed on: the rest of it is not ncu's."""

    _is_after_ncu: bool = False
    """Something of ncu's was removed from the current line, and nothing was passed on."""

    _is_after_begin: bool = False
    """The last thing removed was the start of a kernel's line, up to its name."""

    _n_unfinished: int = 0
    """Kernels for which ncu has not yet printed the number of passes."""

    def pass_on(self, chunk: bytes) -> bytes:
        """Return what can be passed on once this chunk has arrived."""
        rest, passed = self._held + chunk, b""
        while rest:
            if not self._is_inside:
                n_ncus = self._n_ncus(rest)
                if n_ncus:
                    rest = rest[n_ncus:]
                    continue
                if self._may_become_ncus(rest):
                    break
            line, end, rest = rest.partition(b"\n")
            passed += line + end
            self._is_inside, self._is_after_ncu, self._is_after_begin = not end, False, False
        self._held = rest
        return passed

    def end(self) -> bytes:
        """Return what is still held back, at the end of the stream."""
        return self.pass_on(b"\n")[:-1] if self._held else b""

    def _n_ncus(self, rest: bytes) -> int:
        """Return how many bytes at the start of `rest` are ncu's, and update the state by them."""
        if match := _WHOLE.match(rest):
            self._is_after_ncu = self._is_after_begin = False
        elif match := _BEGIN.match(rest):
            self._is_after_ncu = self._is_after_begin = True
            self._n_unfinished += 1
        elif self._n_unfinished and (match := _PASSES.match(rest)):
            self._is_after_ncu = self._is_after_begin = False
            self._n_unfinished -= 1
        elif match := self._percent(rest):
            self._is_after_ncu, self._is_after_begin = True, False
        elif self._is_after_ncu and rest.startswith(b"\n"):
            self._is_after_ncu = self._is_after_begin = False
            return 1
        return match.end() if match else 0

    def _percent(self, rest: bytes) -> re.Match[bytes] | None:
        if self._is_after_begin and (match := _FIRST_PERCENT.match(rest)):
            return match
        return _PERCENT.match(rest) if self._n_unfinished else None

    def _may_become_ncus(self, rest: bytes) -> bool:
        if b"\n" in rest:
            return False
        return (
            rest.startswith(_MARK)
            or _MARK.startswith(rest)
            or (self._is_after_begin and _MAY_BECOME_FIRST.fullmatch(rest) is not None)
            or (self._n_unfinished > 0 and _MAY_BECOME_SCRAP.fullmatch(rest) is not None)
        )
