"""What the page needs to try changes and other GPUs: peaks of one GPU over another's, and of each launch what scales with which."""

from __future__ import annotations

from typing import Any

from ncuroof import formatting
from ncuroof.present.charts.figures import rounded
from ncuroof.present.schemas.analysis import AnalysisDocument
from ncuroof.present.schemas.kernels import KernelEntry, ScalingEntry
from ncuroof.roofline import GpuProfile, load_profiles
from ncuroof.whatif import (
    RESOURCES,
    WAITING,
    most_shared_bytes_per_block,
    profile_of_whole,
    ratios,
    with_recorded_dram,
)

_DIGITS = 5

_Key = tuple[Any, "str | None", "str | None"]


def targets(document: AnalysisDocument) -> dict[str, Any]:
    """Return the GPUs to project to, and the ratios of peaks to each, by what a launch's own key (`scaling`) stands for.

    A row of ratios is that of `ncuroof.whatif.ratios`: resources, dominant precision, clock, SMs there, 1 for an assumed L2, and 1
    for other tensor instructions.
    The first row is for the same GPU.
    """
    profiles = {profile.id: profile for profile in load_profiles()}
    devices = document["devices"]
    sheets = {number: profiles.get(device["profile"] or "") for number, device in enumerate(devices)}
    recorded = {number: device["dram_bytes_per_s"] for number, device in enumerate(devices)}
    here = list(
        zip(with_recorded_dram(sheets, recorded).values(), (device["sm_count"] for device in devices), strict=True)
    )
    keys = {_key(kernel, known) for kernel in document["kernels"] if (known := kernel["scaling"])}
    return {
        "resources": {name: formatting.label(name) for name in RESOURCES},
        "gpus": list(profiles),
        "shared_bytes_per_block": [most_shared_bytes_per_block(profile) for profile in profiles.values()],
        "ratios": {
            _name(key): [_row(_profile(here, key[0], there), there, key) for there in (None, *profiles.values())]
            for key in sorted(keys, key=_name)
        },
    }


def scaling(kernel: KernelEntry, document: AnalysisDocument) -> list[Any] | None:
    """Return what `whatif.js` works with; None where it is not known.

    In order: key of the ratios, busy times in ns in the order of RESOURCES, duration in ns, reached share, whether it waits rather
    than works, blocks, resident blocks, SMs, shared memory of a block, the time for which tensor instructions read it, the time
    that L2's bytes take at DRAM's bandwidth, and the busy time of L2 as a whole with the reached share that it makes.
    """
    known = kernel["scaling"]
    if not known or known["reached_frac"] is None or kernel["duration_ns"] is None:
        return None
    device = kernel["device"]
    sms = document["devices"][device]["sm_count"] if device is not None else None
    busy = [_short(known["busy_ns"][name] or 0.0) for name in RESOURCES]
    shape = [known["n_blocks"], _short(known["n_resident_blocks"]), sms, known["shared_bytes_per_block"]]
    waits = kernel["verdict"] in WAITING
    operands = _short(known["busy_ns"]["operands"] or 0.0)
    reached, l2_as_dram = _short(known["reached_frac"]), _short(known["busy_ns"]["l2_as_dram"])
    whole_l2 = [_short(known["busy_ns"]["l2_whole"] or 0.0), _short(known["reached_by_whole_l2_frac"])]
    return [
        _name(_key(kernel, known)),
        busy,
        kernel["duration_ns"],
        reached,
        waits,
        *shape,
        operands,
        l2_as_dram,
        *whole_l2,
    ]


def _key(kernel: KernelEntry, known: ScalingEntry) -> _Key:
    return kernel["device"], known["tensor_precision"], kernel["dominant_precision"]


def _name(key: _Key) -> str:
    return "|".join("" if part is None else str(part) for part in key)


def _profile(
    here: list[tuple[GpuProfile | None, int | None]], device: int | None, there: GpuProfile | None
) -> GpuProfile | None:
    return None if device is None else profile_of_whole(*here[device], there)


def _row(here: GpuProfile | None, there: GpuProfile | None, key: _Key) -> list[float | None]:
    _, tensor, dominant = key
    return [_short(value) for value in ratios(here, there, tensor, tensor, dominant)]


def _short(value: float | None) -> float | None:
    return rounded(value, _DIGITS)
