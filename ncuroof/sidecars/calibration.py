"""Calibrations: the roofs that a GPU was measured to reach, in the file that `ncuroof calibrate` writes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ncuroof.errors import CalibrationError, found_json
from ncuroof.json_files import read_document

SCHEMA = "ncuroof.calibration/1"
_HINT = "create one on the machine with the GPU: ncuroof calibrate -o FILE"


@dataclass(frozen=True, slots=True)
class ReachedRoof:
    """A rate that was measured repeatedly.

    Attributes:
        kind: "bandwidth" or "compute".
        name: memory level or precision.
        per_s: median of the repeats, in byte/s or flop/s.
        spread_frac: difference of the 90th and 10th percentile of the repeats, divided by the median.
        n_repeats: number of measurements.
        how: description of the work that was timed.
        sm_clock_hz: median SM clock during the measurement, which matrix products lower and copies do not; None if never readable.
    """

    kind: str
    name: str
    per_s: float
    spread_frac: float
    n_repeats: int
    how: str
    sm_clock_hz: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one GPU reaches.

    Attributes:
        gpu: its name, as the driver gives it.
        compute_capability: e.g. "9.0".
        sm_count: streaming multiprocessors.
        torch_version, cuda_version: versions of PyTorch and its CUDA.
        roofs: the measured roofs, several per memory level possible.
        not_measured: names of measurements that failed, each with the reason.
    """

    gpu: str
    compute_capability: str
    sm_count: int
    torch_version: str
    cuda_version: str | None
    roofs: tuple[ReachedRoof, ...]
    not_measured: tuple[tuple[str, str], ...]


def best_roofs(calibration: Calibration) -> dict[tuple[str, str], ReachedRoof]:
    """Return the highest roof by kind and name: of several ways to move bytes, the fastest."""
    best: dict[tuple[str, str], ReachedRoof] = {}
    for roof in calibration.roofs:
        key = (roof.kind, roof.name)
        if key not in best or roof.per_s > best[key].per_s:
            best[key] = roof
    return best


def calibration_json(calibration: Calibration) -> bytes:
    """Return the document `ncuroof.calibration/1`."""
    return (json.dumps({"schema": SCHEMA} | asdict(calibration), indent=1, ensure_ascii=False) + "\n").encode()


def read_calibration(path: str | os.PathLike[str]) -> Calibration:
    """Return the calibration in a file.

    Raises:
        CalibrationError: the file cannot be read, is not a calibration, has a different schema, or is damaged.
    """
    path = Path(path)
    try:
        return read_document(
            path, _calibration, schema=SCHEMA, what="a calibration", error=CalibrationError, hint=_HINT
        )
    except OSError as error:
        raise CalibrationError(f"{path}: {error.strerror or error}", hint=_HINT) from error


def _calibration(content: dict[str, Any]) -> Calibration:
    found = Calibration(**_with_keys_of(Calibration, content))
    absent = tuple((str(name), str(reason)) for name, reason in found.not_measured)
    return replace(found, roofs=tuple(map(_roof, content["roofs"])), not_measured=absent)


def _roof(entry: Any) -> ReachedRoof:
    roof = ReachedRoof(**_with_keys_of(ReachedRoof, entry))
    if roof.kind not in ("bandwidth", "compute"):
        raise ValueError(f"{roof.name}: expected the kind bandwidth or compute, found {roof.kind!r}")
    if not isinstance(roof.per_s, (int, float)) or not 0 < roof.per_s < float("inf"):
        raise ValueError(f"{roof.kind} {roof.name}: expected a positive rate, found {roof.per_s!r}")
    return roof


def _with_keys_of(kind: type[Calibration | ReachedRoof], entry: Any) -> dict[str, Any]:
    """Return the entry if its keys are the attributes of `kind`.

    Raises:
        ValueError: a key is missing or unknown.
    """
    names = {field.name for field in fields(kind)}
    if not isinstance(entry, dict):
        raise ValueError(f"expected a JSON object, found {found_json(entry)}")
    if missing := names - entry.keys():
        raise ValueError(f"{min(missing)!r} is missing")
    if unknown := entry.keys() - names:
        raise ValueError(f"{min(unknown)!r} is not known")
    return entry
