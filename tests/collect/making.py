"""Requests, plans and an ncu for tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ncuroof.collect.plan import Plan
from ncuroof.collect.request import Request

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "fixtures/simulated/h200-training-step.ncu-rep"
STAND_IN = ROOT / "tests/support/stand_in_ncu.py"

PLAN = Plan("quick", None, ("SpeedOfLight",), ("a.sum", "b.sum"), (8, 9))
COLLECTION = ["--section", "SpeedOfLight", "--metrics", "a.sum,b.sum"]


def request(**more: Any) -> Request:
    return Request(**{"words": ("./app",), "report": Path("run.ncu-rep"), **more})


def stand_in(folder: Path) -> Path:
    """Write an executable that behaves as ncu does, and return its path."""
    path = folder / "ncu"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path
