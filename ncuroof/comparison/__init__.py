"""Two analyses → what changed: matching of kernels, significance, explanations, gates, baselines."""

from ncuroof.comparison.baseline import baseline_json, read_baseline
from ncuroof.comparison.chosen_pairs import ChosenPair, parse_pair
from ncuroof.comparison.code_changes import Code, CodeChange
from ncuroof.comparison.comparison import Comparison, compare, matched_change, run_change, run_obstacle, total_ns
from ncuroof.comparison.deltas import Delta, Outcome
from ncuroof.comparison.distinct_names import with_distinct_labels
from ncuroof.comparison.explanations import QuantityChange
from ncuroof.comparison.finding_changes import FindingChange, LineChange
from ncuroof.comparison.gates import Gate, GateResult, judge, parse_gate
from ncuroof.comparison.matched_groups import WORK_WORDS, is_other_work
from ncuroof.comparison.matching import How, Match, Matching, Sureness
from ncuroof.comparison.noise import is_beyond
from ncuroof.comparison.obstacles import Comparable, are_of_other_steps, n_units, steps_remark
from ncuroof.comparison.run import BUILDS, Run, Setup, distinct, launch_groups, line_shares, run_of
from ncuroof.comparison.unprofiled import CountedOnly, unclear_ns

__all__ = [
    "BUILDS",
    "WORK_WORDS",
    "ChosenPair",
    "Code",
    "CodeChange",
    "Comparable",
    "Comparison",
    "CountedOnly",
    "Delta",
    "FindingChange",
    "Gate",
    "GateResult",
    "How",
    "LineChange",
    "Match",
    "Matching",
    "Outcome",
    "QuantityChange",
    "Run",
    "Setup",
    "Sureness",
    "are_of_other_steps",
    "baseline_json",
    "compare",
    "distinct",
    "is_beyond",
    "is_other_work",
    "judge",
    "launch_groups",
    "line_shares",
    "matched_change",
    "n_units",
    "parse_gate",
    "parse_pair",
    "read_baseline",
    "run_change",
    "run_obstacle",
    "run_of",
    "steps_remark",
    "total_ns",
    "unclear_ns",
    "with_distinct_labels",
]
