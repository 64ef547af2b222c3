"""What sums over a run are weighted by, as part of the document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl

from ncuroof.diagnosis import UNEVEN, Weighting
from ncuroof.present.analysed import Analysed

STANDS_FOR = ("n_represented", "weight", "counted_average_ns", "counted_shortest_ns", "counted_longest_ns")
"""Of each kernel, where launches were counted."""


def weighting_document(analysed: Analysed) -> dict[str, Any]:
    """Return it under its key; nothing where each launch stands for itself."""
    weighting = analysed.weighting
    if weighting is None:
        return {}
    return {
        "weighting": {
            "n_launches": weighting.n_launches,
            "duration_ns": weighting.duration_ns,
            "covered_frac": weighting.covered_frac,
            "not_recorded": [asdict(each) for each in weighting.not_recorded],
            "uneven_frac": _uneven_frac(analysed, weighting),
            "n_unmatched": weighting.n_unmatched,
            "computation_frac": weighting.computation_frac,
            "wall_times": [time.to_dict() for time in weighting.wall_times],
        }
    }


def _uneven_frac(analysed: Analysed, weighting: Weighting) -> float | None:
    """Return the share of the counted time that is of kernels whose launches differ; None where no time was counted."""
    if not weighting.duration_ns:
        return None
    uneven = analysed.diagnosis.verdicts.filter(pl.col("caveats").list.contains(UNEVEN))
    stood_for = analysed.measurements.kernels.select("id", "duration_ns").join(weighting.weights, on="id")
    uneven_ns = (
        stood_for.join(uneven, on="id", how="semi").select(pl.col("duration_ns") * pl.col("weight")).sum().item()
    )
    return float(uneven_ns / weighting.duration_ns)
