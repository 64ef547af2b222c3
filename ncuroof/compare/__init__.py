"""Two analyses → what changed: matching of kernels, significance, explanations, gates, baselines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from ncuroof.compare.baseline import read_baseline, write_baseline
from ncuroof.compare.comparable import Comparable
from ncuroof.compare.comparison import Comparison, compare, matched_change, run_change, run_obstacle, total_ns
from ncuroof.compare.deltas import Delta
from ncuroof.compare.explanations import Change
from ncuroof.compare.gates import Gate, parse_gate
from ncuroof.compare.judgement import GateResult, judge
from ncuroof.compare.line_changes import LineChange
from ncuroof.compare.matched_groups import WORK_WORDS, is_other_work
from ncuroof.compare.matching import How, Match, Matching, Sureness
from ncuroof.compare.noise import is_beyond
from ncuroof.compare.side import BUILDS, Recording, Side, distinct, group_side, line_shares, run_side

__all__ = [
    "BUILDS",
    "WORK_WORDS",
    "Change",
    "Comparable",
    "Comparison",
    "Delta",
    "Gate",
    "GateResult",
    "How",
    "LineChange",
    "Match",
    "Matching",
    "Recording",
    "Side",
    "Sureness",
    "compare",
    "distinct",
    "group_side",
    "is_beyond",
    "is_other_work",
    "judge",
    "line_shares",
    "matched_change",
    "parse_gate",
    "read_baseline",
    "run_change",
    "run_obstacle",
    "run_side",
    "total_ns",
    "write_baseline",
]


class _Room(ModuleType):
    """The verb `ncuroof.compare(before, after)` has the name of this room, which takes its place once it is loaded."""

    def __call__(self, before: Any, after: Any) -> Comparison:
        """As `ncuroof.reading.compare`."""
        verb: Callable[[Any, Any], Comparison] = import_module("ncuroof.reading").compare  # it reads, which no room may
        return verb(before, after)


sys.modules[__name__].__class__ = _Room
