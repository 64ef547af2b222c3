"""How sums over a run are weighted: the block `weighting` of the document's summary."""

from __future__ import annotations

from dataclasses import asdict

from ncuroof.diagnosis import uneven_frac
from ncuroof.present.analysed import Analysed, Document

STANDS_FOR = ("n_represented", "weight", "counted_average_ns", "counted_shortest_ns", "counted_longest_ns")
"""Columns of WEIGHTS in each kernel's entry, where a counting run exists."""


def weighting_document(analysed: Analysed) -> Document:
    """Return the block under its key `weighting`; empty without a counting run, where each launch represents only itself."""
    weighting = analysed.weighting
    if weighting is None:
        return {}
    return {
        "weighting": {
            "n_launches": weighting.n_launches,
            "duration_ns": weighting.duration_ns,
            "covered_frac": weighting.covered_frac,
            "not_recorded": [asdict(each) for each in weighting.not_recorded],
            "uneven_frac": uneven_frac(weighting, analysed.measurements.kernels, analysed.diagnosis.verdicts),
            "n_unmatched": weighting.n_unmatched,
            "computation_frac": weighting.computation_frac,
            "uncounted_frac": weighting.uncounted_frac,
            "timed_frac": weighting.timed_frac,
            "foreign": list(weighting.foreign),
            "wall_times": [time.to_dict() for time in weighting.wall_times],
        }
    }
