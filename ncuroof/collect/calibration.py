"""Roofs that a GPU was seen to reach: the file that `ncuroof calibrate` writes, and the best roof of each name."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ncuroof.errors import CalibrationError, found_json

SCHEMA = "ncuroof.calibration/1"
_HINT = "create one on the machine with the GPU: ncuroof calibrate -o FILE"


@dataclass(frozen=True, slots=True)
class ReachedRoof:
    """A rate that was reached again and again.

    Attributes:
        kind: "bandwidth" or "compute".
        name: memory level or precision.
        per_s: median of the repeats, in byte/s or flop/s.
        spread_frac: between the 10th and the 90th percentile of the repeats, over the median.
        n_repeats: how often it was measured.
        how: by what.
        sm_clock_hz: median of the SM clocks meanwhile: products make a GPU slow down, copies do not; None where none could be read.
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
        torch_version, cuda_version: of what measured it.
        roofs: what was reached.
        not_measured: what could not be measured, and why.
    """

    gpu: str
    compute_capability: str
    sm_count: int
    torch_version: str
    cuda_version: str | None
    roofs: tuple[ReachedRoof, ...]
    not_measured: tuple[tuple[str, str], ...]


def best_roofs(calibration: Calibration) -> dict[tuple[str, str], ReachedRoof]:
    """Return the highest roof of each kind and name: of several ways to move bytes, the one that moved the most."""
    best: dict[tuple[str, str], ReachedRoof] = {}
    for roof in calibration.roofs:
        key = (roof.kind, roof.name)
        if key not in best or roof.per_s > best[key].per_s:
            best[key] = roof
    return best


def write_calibration(calibration: Calibration) -> bytes:
    """Return the file of a calibration."""
    return (json.dumps({"schema": SCHEMA} | asdict(calibration), indent=1, ensure_ascii=False) + "\n").encode()


def read_calibration(path: str | os.PathLike[str]) -> Calibration:
    """Return the calibration in a file.

    Raises:
        CalibrationError: the file cannot be read, is none, of another schema, or damaged.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CalibrationError(f"{path}: {error.strerror or error}", hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        raise CalibrationError(f"{path}: expected a calibration, found a file that is not JSON", hint=_HINT) from error
    if not isinstance(content, dict) or "schema" not in content:
        raise CalibrationError(f"{path}: expected a calibration, found {found_json(content)}", hint=_HINT)
    if (schema := content.pop("schema")) != SCHEMA:
        raise CalibrationError(f"{path}: expected schema {SCHEMA}, found {schema}", hint=_HINT)
    try:
        roofs = tuple(_roof(entry) for entry in content.pop("roofs"))
        absent = tuple((str(name), str(reason)) for name, reason in content.pop("not_measured"))
        return Calibration(**content, roofs=roofs, not_measured=absent)
    except (KeyError, TypeError, ValueError) as error:
        raise CalibrationError(f"{path}: the calibration is damaged: {error}", hint=_HINT) from error


def _roof(entry: dict[str, Any]) -> ReachedRoof:
    roof = ReachedRoof(**entry)
    if roof.kind not in ("bandwidth", "compute") or not 0 < roof.per_s < float("inf"):
        raise ValueError(f"{roof.kind} {roof.name}: expected a positive rate, found {roof.per_s!r}")
    return roof
