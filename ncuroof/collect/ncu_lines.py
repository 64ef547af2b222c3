"""What ranks print without ncu's lines of progress, which come on the same streams: several ncu cannot write one log."""

from __future__ import annotations

from dataclasses import dataclass

_MARK = b"==PROF== "


@dataclass(slots=True)
class WithoutProgress:
    """Takes whole lines of ncu's progress out of a stream that comes in pieces; what else stands there comes at once."""

    _held: bytes = b""
    _is_inside: bool = False
    """The line at hand has begun to be passed on."""

    def pass_on(self, chunk: bytes) -> bytes:
        """Return what of the stream is not ncu's, up to here."""
        *lines, rest = (self._held + chunk).split(b"\n")
        passed = b""
        for line in lines:
            passed += b"" if self._is_progress(line) else line + b"\n"
            self._is_inside = False
        if not self._is_inside and (self._is_progress(rest) or _MARK.startswith(rest)):
            self._held = rest
            return passed
        self._held, self._is_inside = b"", True
        return passed + rest

    def end(self) -> bytes:
        """Return what was held back at the stream's end."""
        return b"" if self._is_progress(self._held) else self._held

    def _is_progress(self, line: bytes) -> bool:
        return not self._is_inside and line.startswith(_MARK)
