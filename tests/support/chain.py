"""Runs the whole chain on a file that may be damaged, and checks what must hold for any content."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import ncuroof
from ncuroof.errors import NcuroofError

if TYPE_CHECKING:
    from pathlib import Path

    from ncuroof.analysis import Analysis


def outcome(path: Path) -> Analysis | NcuroofError:
    """Return the analysis of a file after checking that it can be written as JSON, or the named error, with message and hint."""
    try:
        analysis = ncuroof.read(path).analyse()
    except NcuroofError as refused:
        error = refused
    else:
        written = json.dumps(analysis.to_dict(), ensure_ascii=False, allow_nan=False).encode()
        assert len(json.loads(written)["kernels"]) == analysis.kernels.height > 0
        return analysis
    assert str(error)
    assert error.hint, error
    return error
