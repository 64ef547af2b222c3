"""From measurements and roofline to verdicts, findings, and sums over the run."""

from ncuroof.diagnosis.actions import LATE_LAUNCHES, Action, of_step, rank_actions
from ncuroof.diagnosis.launch_diagnosis import Diagnosis, diagnose, kernel_table
from ncuroof.diagnosis.potential import Outlook, outlook
from ncuroof.diagnosis.rules import Rules, load_rules
from ncuroof.diagnosis.selection import Selection, restricted, select
from ncuroof.diagnosis.summary import (
    Share,
    Summary,
    break_down,
    group_launches,
    known_sum,
    n_launches,
    summarise,
    total_work,
    with_weights,
)
from ncuroof.diagnosis.vendor import vendor_verdict
from ncuroof.diagnosis.wall_time import WallTime, load_parts
from ncuroof.diagnosis.weights import (
    LEAST_TIMED_FRAC,
    UNEVEN,
    UnprofiledLaunches,
    Weighting,
    of_part,
    uneven_frac,
    unit_weights,
    weigh,
)

__all__ = [
    "LATE_LAUNCHES",
    "LEAST_TIMED_FRAC",
    "UNEVEN",
    "Action",
    "Diagnosis",
    "Outlook",
    "Rules",
    "Selection",
    "Share",
    "Summary",
    "UnprofiledLaunches",
    "WallTime",
    "Weighting",
    "break_down",
    "diagnose",
    "group_launches",
    "kernel_table",
    "known_sum",
    "load_parts",
    "load_rules",
    "n_launches",
    "of_part",
    "of_step",
    "outlook",
    "rank_actions",
    "restricted",
    "select",
    "summarise",
    "total_work",
    "uneven_frac",
    "unit_weights",
    "vendor_verdict",
    "weigh",
    "with_weights",
]
