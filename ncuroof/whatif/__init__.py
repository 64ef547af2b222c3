"""Estimate the time of a run on a different GPU, or after a change that nobody has written yet."""

from ncuroof.whatif.changes import Change, change, concerned, parse_change, parse_changes
from ncuroof.whatif.fusion import against_order, fuse, parse_fusion
from ncuroof.whatif.peak_ratios import (
    Target,
    parse_target,
    parse_targets,
    profile_of_whole,
    ratios,
    recorded_dram,
    with_recorded_dram,
)
from ncuroof.whatif.projection import WAITING, most_shared_bytes_per_block, project
from ncuroof.whatif.unit_times import RESOURCES, busy_times
from ncuroof.whatif.what_if import by_kernel, by_target, tried

__all__ = [
    "RESOURCES",
    "WAITING",
    "Change",
    "Target",
    "against_order",
    "busy_times",
    "by_kernel",
    "by_target",
    "change",
    "concerned",
    "fuse",
    "most_shared_bytes_per_block",
    "parse_change",
    "parse_changes",
    "parse_fusion",
    "parse_target",
    "parse_targets",
    "profile_of_whole",
    "project",
    "ratios",
    "recorded_dram",
    "tried",
    "with_recorded_dram",
]
