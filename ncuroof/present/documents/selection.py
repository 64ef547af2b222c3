"""Which launches of a run an analysis covers: the block `selection` of the document's summary."""

from __future__ import annotations

from dataclasses import asdict

from ncuroof.present.analysed import Analysed, Document


def selection_document(analysed: Analysed) -> Document:
    """Return the block under its key `selection`; empty for a whole run."""
    return {} if analysed.selection is None else {"selection": asdict(analysed.selection)}
