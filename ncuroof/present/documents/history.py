"""The document `ncuroof.history/1`: many runs, and the time of each kernel in every one."""

from __future__ import annotations

from ncuroof.comparison import run_obstacle, total_ns
from ncuroof.comparison.history import History
from ncuroof.present.analysed import Document
from ncuroof.present.documents.json_text import TOOL

SCHEMA = "ncuroof.history/1"


def history_document(found: History) -> Document:
    """Return the document `ncuroof.history/1`; trends that moved the most time first."""
    return {
        "schema": SCHEMA,
        "tool": TOOL,
        "runs": [
            {
                "label": run.label,
                "gpus": list(run.setup.gpus),
                "duration_ns": total_ns(run),
                "n_kernels": run.n_kernels,
                "damage": list(run.damage),
            }
            for run in found.runs
        ],
        "comparable": [
            {
                "time": step.comparable.is_time_comparable,
                "reasons": list(step.comparable.reasons),
                "obstacle": run_obstacle(step) if step.comparable.is_time_comparable else None,
            }
            for step in found.steps
        ],
        "trends": [
            {
                "name": trend.name,
                "mean_ns": trend.mean_ns,
                "change_frac": trend.change_frac,
                "jumps": [{"run": run, "change_frac": change} for run, change in sorted(trend.jumps.items())],
            }
            for trend in found.trends
        ],
    }
