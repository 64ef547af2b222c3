"""Expected against measured work and traffic as plain data: the block `expected` of the document."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ncuroof.present.analysed import Document

if TYPE_CHECKING:
    from ncuroof.expected import Expected


def expected_document(found: Expected) -> Document | None:
    """Return calls, operators, modules and MFU; None where no NVTX range names an operator with its shapes."""
    if found.calls.is_empty():
        return None
    return {
        "calls": found.calls.drop("call").to_dicts(),
        "operators": found.operators.to_dicts(),
        "modules": found.modules.to_dicts(),
        "utilisation": None if found.utilisation is None else asdict(found.utilisation),
    }
