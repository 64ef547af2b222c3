"""The modules of the suite lie beside its programs, and run there without this package."""

from __future__ import annotations

import sys
from pathlib import Path

SUITE = Path(__file__).resolve().parents[2] / "fixtures" / "suite"
sys.path.insert(0, str(SUITE))
