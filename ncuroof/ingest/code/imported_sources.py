"""The source files that a report carries, where it was recorded with --import-source.

Source: Nsight Compute Customization Guide, "Report File Format": SourceData.SourceFiles.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from ncuroof.ingest.code.line_tables import without_folder
from ncuroof.ingest.native.annotations import c_text
from ncuroof.ingest.native.schema import messages

_MOST_CHARACTERS = 200


class ImportedSources:
    """The lines of the files of one module.

    Args:
        encoded: its files, message by message; malformed ones are left out.
    """

    def __init__(self, encoded: Iterable[bytes]) -> None:
        self._content_by_file: dict[str, bytes | None] = {}
        for file in _files(encoded):
            name = without_folder(c_text(file.name))
            same = self._content_by_file.setdefault(name, file.content) == file.content
            if not same:
                self._content_by_file[name] = None  # of two folders: which one is meant, is not known
        self._lines_by_file: dict[str, list[bytes]] = {}

    def line(self, file: str, number: int) -> str | None:
        """Return a line, counted from 1, without blanks around it and cut where it is long; None where it is not known."""
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
