"""The source files embedded in a report that was recorded with --import-source.

Source: Nsight Compute Customization Guide, "Report File Format": SourceData.SourceFiles.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from ncuroof.ingest.code.source_names import source_name
from ncuroof.ingest.native.annotations import c_text
from ncuroof.ingest.native.schema import messages

_MOST_CHARACTERS = 200


class ImportedSources:
    """The source lines of one module.

    Args:
        encoded: encoded SourceFiles messages; malformed ones are ignored.
    """

    def __init__(self, encoded: Iterable[bytes]) -> None:
        self._content_by_file: dict[str, bytes | None] = {}
        for file in _files(encoded):
            name = source_name(c_text(file.name))
            if self._content_by_file.setdefault(name, file.content) != file.content:
                self._content_by_file[name] = None  # two folders have different files of this name: ambiguous
        self._lines_by_file: dict[str, list[bytes]] = {}

    def line(self, file: str, number: int) -> str | None:
        """Return line `number` (from 1) of a file, stripped and truncated if long; None if not known or blank."""
        if file not in self._lines_by_file:
            self._lines_by_file[file] = (self._content_by_file.get(file) or b"").split(b"\n")
        lines = self._lines_by_file[file]
        text = c_text(lines[number - 1]).strip() if 0 < number <= len(lines) else ""
        return text[:_MOST_CHARACTERS] or None


def _files(encoded: Iterable[bytes]) -> Iterator[Any]:
    from google.protobuf.message import DecodeError  # noqa: PLC0415  only reading needs protobuf

    for each in encoded:
        with contextlib.suppress(DecodeError):
            yield from messages()["SourceFiles"].FromString(each).files
