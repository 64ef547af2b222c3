"""Ratios of the peaks of two GPUs: the factors that turn busy times on one GPU into busy times on the other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from ncuroof.enums import MemoryLevel, capability_text
from ncuroof.errors import ArgumentError, WhatIfError
from ncuroof.resources import FrozenMapping
from ncuroof.roofline import GpuProfile, profile_by_name
from ncuroof.tables import KERNELS, check
from ncuroof.whatif.schemas import BUSY_TIMES
from ncuroof.whatif.unit_times import ARITHMETIC, RESOURCES, WGMMA

KEYS = ("device", "tensor_precision", "to_precision", "dominant_precision")
RATIOS = pl.Schema(
    {
        "device": pl.UInt32(),
        **dict.fromkeys(KEYS[1:], pl.String()),
        **{f"ratio.{name}": pl.Float64() for name in RESOURCES},
        "ratio.dominant": pl.Float64(),  # of the dominant precision
        "ratio.clock": pl.Float64(),  # of boost clocks
        "sm_count_there": pl.Float64(),  # null for the same GPU
        "is_l2_assumed": pl.Boolean(),  # whether L2 is assumed to grow with SMs and clock, because no document states it
        "is_other_generation": pl.Boolean(),  # whether wgmma ran here, but does not exist on the target
        **{f"clock.{name}": pl.Float64() for name in (*ARITHMETIC, "dominant")},  # of the clocks that the peaks hold at
        "is_l2_clock_own": pl.Boolean(),  # whether the clock of L2 does not follow the SM clock, according to data sheets
        "tensor_lack": pl.String(),  # what is missing for the ratio of tensor peaks, in words
    }
)
"""One row per device and combination of types: peak of the recording GPU over peak of the target; null if one is unknown."""

_SAME = "same"
_TENSOR = "tensor"
_TENSOR_OF_UNKNOWN_TYPE = "tensor_fp16"
"""Assumed type of tensor work whose type was not recorded. Some data sheets do not state its peak (GB10, Thor, Orin)."""
_CLOCK = re.compile(r"^(?P<gpu>.+?)(?:@\s*(?P<clock>\d+(?:\.\d+)?)\s*(?P<unit>[MG])Hz)?$", re.IGNORECASE)

Profiles = Mapping[int, "GpuProfile | None"]


@dataclass(frozen=True, slots=True)
class Target:
    """A GPU, and perhaps an SM clock, to project to.

    Attributes:
        profile: data sheet of the GPU; None for the GPU that each launch was recorded on.
        sm_clock_hz: SM clock there; None for the same share of the boost clock as when recorded.
    """

    profile: GpuProfile | None = None
    sm_clock_hz: float | None = None

    @property
    def label(self) -> str:
        """Its name: "h100-sxm", "h100-sxm@1500MHz", "same"."""
        name = _SAME if self.profile is None else self.profile.id
        return name if self.sm_clock_hz is None else f"{name}@{self.sm_clock_hz / 1e6:g}MHz"


def parse_target(text: str) -> Target:
    """Parse a target: a GPU, or "same", and perhaps an SM clock: "h100-sxm", "same@1.98GHz".

    Raises:
        ArgumentError: `text` is not a string.
        UnknownNameError: no GPU has the name, or several do.
        WhatIfError: the clock is invalid.
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"expected the name of a GPU, found {type(text).__name__}",
            hint='pass one or more names: whatif("b200", "h100-sxm")',
        )
    found = _CLOCK.match(text.strip())
    if found is None or "@" in found["gpu"]:
        raise WhatIfError(f"not a GPU: {text!r}", hint="write a GPU like h100-sxm, h100-sxm@1500MHz or same@1.98GHz")
    clock = float(found["clock"]) * {"m": 1e6, "g": 1e9}[found["unit"].lower()] if found["clock"] else None
    if clock == 0:
        raise WhatIfError(f"{text!r}: expected a clock above zero", hint="for example h100-sxm@1500MHz")
    return Target(None if found["gpu"].lower() == _SAME else profile_by_name(found["gpu"]), clock)


def parse_targets(texts: Sequence[str]) -> list[Target]:
    """Parse targets, each once; the same GPU if there are no texts.

    Raises:
        ArgumentError: a text is not a string.
        UnknownNameError: no GPU has the name, or several do.
        WhatIfError: a clock is invalid.
    """
    found = [parse_target(text) for text in texts or (_SAME,)]
    return list({each.label: each for each in found}.values())


def above_boost(targets: Sequence[Target], profiles: Profiles) -> list[str]:
    """Return a remark for each target whose clock exceeds the boost clock of its GPU."""
    found = []
    for target in targets:
        gpus = profiles.values() if target.profile is None else (target.profile,)
        slowest = min(
            (each for each in gpus if each is not None), key=lambda each: each.sm_boost_clock_hz, default=None
        )
        if slowest is not None and (target.sm_clock_hz or 0.0) > slowest.sm_boost_clock_hz:
            boost = f"the boost clock of {slowest.id}, {slowest.sm_boost_clock_hz / 1e6:g} MHz"
            found.append(f"The clock of {target.label} is above {boost}: the GPU may not reach it.")
    return found


def peak_ratios(busy: pl.DataFrame, profiles: Profiles, there: GpuProfile | None) -> pl.DataFrame:
    """Return RATIOS from the GPUs that the launches were recorded on to a target.

    Args:
        busy: BUSY_TIMES.
        profiles: data sheet by device of the report; None for a GPU without one.
        there: data sheet of the target; None for the same GPU.

    Raises:
        SchemaError: a column is absent or has another type.
    """
    check(busy, BUSY_TIMES, table="BUSY_TIMES")
    keys = busy.select(*KEYS, "sm_count").unique(KEYS, maintain_order=True).iter_rows()
    rows = []
    for *key, sm_count in keys:
        here = profile_of_whole(profiles.get(key[0]), sm_count, there)
        clocks = _clock_ratios(here, there or here, *key[1:])
        lack = _tensor_lack(here, there or here, *key[1:3])
        rows.append((*key, *ratios(here, there, *key[1:]), *clocks, _is_l2_clock_own(there or here), lack))
    return pl.DataFrame(rows, schema=RATIOS, orient="row")


def recorded_dram(kernels: pl.DataFrame) -> dict[int, float]:
    """Return the DRAM bandwidth of each device, in byte/s, as its driver reports it: two transfers per memory clock and bus width.

    Data sheets state the same value. Counters report the clock during the launch, which is lower: by a few percent on GeForce
    cards, and by up to a tenth in short launches.

    Args:
        kernels: one row per launch, as `Analysis.kernels`.
    """
    check(kernels, KERNELS, table="KERNELS")
    known = kernels.select("device", "device.peak_dram_bytes_per_s").drop_nulls()
    return dict(known.unique("device", keep="first", maintain_order=True).iter_rows())


def with_recorded_dram(profiles: Profiles, recorded: Mapping[int, float | None]) -> dict[int, GpuProfile | None]:
    """Return the data sheets with the recorded DRAM bandwidths, because cards of one name are sold with different memories.

    A data sheet without a bus width keeps its bandwidth, because drivers disagree about that width.

    Args:
        profiles: data sheet by device of the report; None for a GPU without one.
        recorded: byte/s by device (`recorded_dram`).
    """
    found = dict(profiles)
    for device, profile in profiles.items():
        bytes_per_s = recorded.get(device)
        if profile is not None and bytes_per_s and profile.memory_bus_width_bits is not None:
            found[device] = _with_dram(profile, bytes_per_s)
    return found


def _with_dram(profile: GpuProfile, bytes_per_s: float) -> GpuProfile:
    bandwidths = {**profile.bandwidth_bytes_per_s, MemoryLevel.DRAM.value: bytes_per_s}
    return replace(profile, bandwidth_bytes_per_s=FrozenMapping(bandwidths))


def profile_of_whole(here: GpuProfile | None, sm_count: float | None, there: GpuProfile | None) -> GpuProfile | None:
    """Return the data sheet to project from; None for a part of a GPU (MIG), which has no data sheet.

    Args:
        here: data sheet of the GPU that recorded, if there is one.
        sm_count: SMs that a launch could use; None if unknown.
        there: data sheet of the target; None for the same GPU, where the peaks need not be known.
    """
    is_part = here is not None and sm_count is not None and sm_count < here.sm_count
    return None if is_part and there is not None else here


def ratios(
    here: GpuProfile | None, there: GpuProfile | None, tensor: str | None, to_tensor: str | None, dominant: str | None
) -> tuple[float | None, ...]:
    """Return the first columns of RATIOS after its keys.

    Args:
        here: data sheet of the GPU that recorded, if there is one.
        there: data sheet of the target; None for the same GPU.
        tensor: tensor type whose work takes longest.
        to_tensor: the same after a change.
        dominant: precision whose work takes longest.
    """
    if there is None:
        by_resource: dict[str, float | None] = dict.fromkeys(RESOURCES, 1.0)
        if tensor != to_tensor:
            by_resource[_TENSOR] = None if here is None else _flop_ratio(here, here, tensor, to_tensor)
        clock: float | None = 1.0
    elif here is None:
        by_resource, clock = dict.fromkeys(RESOURCES), None
    else:
        is_same = here.id == there.id  # even if the recorded card has a different memory
        by_resource = {name: 1.0 if is_same else _ratio(name, here, there) for name in RESOURCES}
        by_resource[_TENSOR] = _flop_ratio(here, there, tensor, to_tensor)
        clock = here.sm_boost_clock_hz / there.sm_boost_clock_hz
    sm_count = None if there is None else float(there.sm_count)
    peaks = (*by_resource.values(), by_resource.get(_resource(dominant)))
    return *peaks, clock, sm_count, _is_l2_assumed(here, there), _is_other_generation(here, there)


def _clock_ratios(
    here: GpuProfile | None, there: GpuProfile | None, tensor: str | None, to_tensor: str | None, dominant: str | None
) -> list[float | None]:
    """Return the ratio of the clocks that each arithmetic peak holds at; None if a data sheet does not state it."""
    if here is None or there is None:
        return [None] * (len(ARITHMETIC) + 1)
    types: dict[str, tuple[str | None, str | None]] = {name: (name, name) for name in ARITHMETIC}
    types |= {_TENSOR: (tensor, to_tensor)}
    if None in (here.peak_clock_hz("fp16"), there.peak_clock_hz("fp16")):
        types["fp16"] = types["fp32"]
    found = {
        name: _quotient(here.peak_clock_hz(_stated(here, was)), there.peak_clock_hz(_stated(there, becomes)))
        for name, (was, becomes) in types.items()
    }
    return [*found.values(), found.get(_resource(dominant))]


def _resource(precision: str | None) -> str:
    """Return the resource that work of a precision needs; "" without a precision."""
    return _TENSOR if (precision or "").startswith(_TENSOR) else precision or ""


def _stated(profile: GpuProfile, precision: str | None) -> str:
    """Return the key of a precision in a data sheet; None stands for tensor work of an unknown type."""
    return profile.stated_precision(precision or _TENSOR_OF_UNKNOWN_TYPE)


def _quotient(was: float | None, becomes: float | None) -> float | None:
    return was / becomes if was and becomes else None


def _ratio(resource: str, here: GpuProfile, there: GpuProfile) -> float | None:
    of_sms = here.sm_count * here.sm_boost_clock_hz / (there.sm_count * there.sm_boost_clock_hz)
    if resource in ("l1", "sm"):
        return of_sms
    if resource == "l2_slice":
        return here.sm_boost_clock_hz / there.sm_boost_clock_hz
    if resource in ("dram", "l2"):
        was, becomes = (profile.bandwidth_bytes_per_s.get(resource) for profile in (here, there))
        ratio = _quotient(was, becomes)
        # Few documents state the bandwidth of L2, which grows with the chip.
        return of_sms if resource == "l2" and ratio is None else ratio
    if resource == "fp16" and "fp16" not in (here.peak_flop_per_s.keys() & there.peak_flop_per_s.keys()):
        return _flop_ratio(here, there, "fp32", "fp32")
    return _flop_ratio(here, there, resource, resource)


def _is_l2_assumed(here: GpuProfile | None, there: GpuProfile | None) -> bool:
    """Return whether the L2 bandwidths of two GPUs are compared without a document that states both."""
    if here is None or there is None or here.id == there.id:
        return False
    return not all(profile.bandwidth_bytes_per_s.get("l2") for profile in (here, there))


def _is_l2_clock_own(there: GpuProfile | None) -> bool:
    """Return whether the data sheet of a GPU states an L2 clock, so that this clock does not follow the SM clock."""
    return there is not None and there.l2_clock_hz is not None


def _is_other_generation(here: GpuProfile | None, there: GpuProfile | None) -> bool:
    """Return whether the target lacks the recorded tensor instructions: wgmma, which reads shared memory, exists only on 9.0.

    Source: PTX ISA, "Target ISA notes" of wgmma.mma_async.
    """
    if here is None or there is None:
        return False
    return here.compute_capability == capability_text(WGMMA) != there.compute_capability


def _flop_ratio(here: GpuProfile, there: GpuProfile, before: str | None, after: str | None) -> float | None:
    return _quotient(here.peak_flop_per_s.get(_stated(here, before)), there.peak_flop_per_s.get(_stated(there, after)))


def _tensor_lack(
    here: GpuProfile | None, there: GpuProfile | None, before: str | None, after: str | None
) -> str | None:
    """Return which tensor peak a data sheet does not state, in words; None if both do, or if there is no data sheet."""
    for profile, precision in ((here, before), (there, after)):
        if profile is None:
            return None
        stated = _stated(profile, precision)
        if stated not in profile.peak_flop_per_s:
            has_any = any(name.startswith(_TENSOR) for name in profile.peak_flop_per_s)
            lack = f"the data sheet of {profile.id} states no {stated} peak"
            return lack if has_any else f"{profile.id} is not known to have tensor cores"
    return None
