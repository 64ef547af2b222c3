"""Which launches of a run an analysis covers: the block `selection` of the document's summary."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ncuroof.present.analysed import Analysed


def selection_document(analysed: Analysed) -> dict[str, Any]:
    """Return the block under its key `selection`; empty for a whole run."""
    return {} if analysed.selection is None else {"selection": asdict(analysed.selection)}
