"""Builds the document `ncuroof.model/1` of a study of an operation; every other format is made from it."""

from __future__ import annotations

from ncuroof.diagnosis import load_rules
from ncuroof.enums import MemoryLevel
from ncuroof.model import Distance, Operation, Residency
from ncuroof.model.study import Critical, Row, Study
from ncuroof.present.documents.json_text import TOOL
from ncuroof.present.schemas.model import (
    AskedEntry,
    CriticalEntry,
    CrossingEntry,
    DistanceEntry,
    ModelDocument,
    ModelRowEntry,
    ResidencyEntry,
)

SCHEMA = "ncuroof.model/1"

_LONG_ENOUGH = "long_enough"
"""Node of the decision tree whose threshold, in nanoseconds, is about the cost of a launch: shorter kernels are overhead-bound."""


def model_document(
    study: Study, *, achieved_flop_per_s: float | None = None, achieved_ns: float | None = None
) -> ModelDocument:
    """Return the document of a study, with a measured rate or time beside the predictions if given.

    Args:
        study: rows and critical sizes.
        achieved_flop_per_s: a measured rate, compared with every row.
        achieved_ns: a measured time, instead of a rate.
    """
    launch_ns = load_rules().threshold(_LONG_ENOUGH)
    distances = study.distance(achieved_flop_per_s=achieved_flop_per_s, achieved_ns=achieved_ns)
    return {
        "schema": SCHEMA,
        "tool": TOOL,
        "operation": {"name": study.request.model.name, "summary": study.request.model.summary},
        "swept": list(study.request.swept),
        "rows": [_row(row, found, launch_ns) for row, found in zip(study.rows, distances, strict=True)],
        "critical": [_critical(each) for each in study.critical],
        "crossing": [_crossing(rows) for rows in study.crossing],
    }


def _row(row: Row, found: Distance | None, launch_ns: float) -> ModelRowEntry:
    prediction, operation = row.prediction, row.prediction.operation
    return {
        "sizes": dict(row.sizes),
        "options": {name: value for name, value in operation.sizes.items() if name not in row.sizes},
        "dtype": row.dtype,
        "machine": {"id": prediction.machine.id, "name": prediction.machine.name},
        **_asked(operation),
        "precision": prediction.precision,
        "peak_flop_per_s": prediction.peak_flop_per_s,
        "bandwidth_bytes_per_s": prediction.machine.bandwidth_bytes_per_s.get(MemoryLevel.DRAM.value),
        "l2_bandwidth_bytes_per_s": prediction.machine.bandwidth_bytes_per_s.get(MemoryLevel.L2.value),
        "ridge_flop_per_byte": prediction.ridge_flop_per_byte,
        "compute_ns": prediction.compute_ns,
        "other_compute_ns": prediction.other_compute_ns,
        "dram_ns": prediction.dram_ns,
        "l2_ns": prediction.l2_ns,
        "network_ns": prediction.network_ns,
        "bound": prediction.bound,
        "memory_level": prediction.memory_level,
        "side": None if prediction.side is None else prediction.side.value,
        "least_ns": prediction.least_ns,
        "most_ns": prediction.most_ns,
        "attainable_flop_per_s": prediction.attainable_flop_per_s,
        "peak_frac": prediction.peak_frac,
        "is_shorter_than_a_launch": None if prediction.least_ns is None else prediction.least_ns < launch_ns,
        "l2": _residency(row.residency),
        "distance": None if found is None else _distance(found),
    }


def _asked(operation: Operation) -> AskedEntry:
    """Return the work and traffic that an operation needs on any machine."""
    return {
        "flop": operation.flop,
        "matrix_flop": operation.matrix_flop,
        "bytes": operation.bytes,
        "read_bytes": operation.read_bytes,
        "written_bytes": operation.written_bytes,
        "traffic": [
            {"tensor": each.tensor, "bytes": each.bytes, "is_written": each.is_written, "times": each.times}
            for each in operation.traffic
        ],
        "counted": operation.counted,
        "intensity_flop_per_byte": operation.intensity_flop_per_byte,
        "l2_read_bytes": operation.l2_bytes,
        "l2_intensity_flop_per_byte": operation.l2_intensity_flop_per_byte,
        "l2_hit_frac": operation.l2_hit_frac,
        "network_bytes": operation.network_bytes,
    }


def _residency(found: Residency) -> ResidencyEntry:
    return {
        "working_set_bytes": found.working_set_bytes,
        "capacity_bytes": found.l2_bytes,
        "does_fit": found.does_fit,
        "hit_frac": found.hit_frac,
        "bandwidth_bytes_per_s": found.bandwidth_bytes_per_s,
    }


def _distance(found: Distance) -> DistanceEntry:
    return {
        "limit_flop_per_s": found.limit_flop_per_s,
        "achieved_flop_per_s": found.achieved_flop_per_s,
        "efficiency_frac": found.efficiency_frac,
        "gap_factor": found.gap_factor,
        "grade": found.grade.value,
    }


def _critical(found: Critical) -> CriticalEntry:
    return {
        "machine": found.machine.id,
        "dtype": found.dtype,
        "size": found.size,
        "value": found.value,
        "of_large": found.of_large,
        "lacks": found.lacks,
    }


def _crossing(rows: tuple[Row, ...]) -> CrossingEntry:
    return {
        "sizes": dict(rows[0].sizes),
        "dtype": rows[0].dtype,
        "bound_by_machine": {row.prediction.machine.id: row.prediction.bound for row in rows},
    }
