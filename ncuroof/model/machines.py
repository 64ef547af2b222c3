"""The machines that models are evaluated on: GPUs of `profiles/gpus`, and accelerators that exist only for models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from ncuroof import resources
from ncuroof.enums import MemoryLevel, Precision
from ncuroof.errors import ArgumentError, ProfileError
from ncuroof.roofline.gpu_names import profile_by_name

_TEXTS = ("id", "name", "vendor", "architecture")
_KEYS_BY_TABLE = {
    "bandwidth_bytes_per_s": frozenset(level.value for level in MemoryLevel),
    "peak_flop_per_s": frozenset(precision.value for precision in Precision),
}


class Machine(Protocol):
    """What a model needs to know about a machine; GPU profiles satisfy it."""

    @property
    def id(self) -> str:
        """Short name, e.g. "h100-sxm"."""

    @property
    def name(self) -> str:
        """Vendor's name of the product."""

    @property
    def bandwidth_bytes_per_s(self) -> Mapping[str, float]:
        """Peak bandwidth by memory level."""

    @property
    def peak_flop_per_s(self) -> Mapping[str, float]:
        """Dense peak by precision."""

    @property
    def l2_bytes(self) -> int | None:
        """Capacity of L2; None if unknown."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A machine for models only: from a file of `profiles/accelerators`, or from numbers of your own.

    Attributes:
        id: short name, e.g. "tpu-v5e".
        name: vendor's name of the product.
        bandwidth_bytes_per_s: peak bandwidth by memory level.
        peak_flop_per_s: dense peak by precision.
        l2_bytes: capacity of L2; None for the files' machines, whose caches are not modelled.
        compute_capability: that of the GPU whose data sheet it is derived from, e.g. "9.0"; None if it is not a GPU.
        sources: source document by table of numbers.
        notes: remarks by subject.
    """

    id: str
    name: str
    bandwidth_bytes_per_s: Mapping[str, float] = field(hash=False)
    peak_flop_per_s: Mapping[str, float] = field(hash=False)
    l2_bytes: int | None = None
    compute_capability: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict, hash=False)
    notes: Mapping[str, str] = field(default_factory=dict, hash=False)


@cache
def accelerators() -> tuple[Accelerator, ...]:
    """Return the machines of `profiles/accelerators`, sorted by id.

    Raises:
        ProfileError: a file is malformed.
    """
    folder = resources.folder("profiles") / "accelerators"
    return tuple(read_accelerator(path) for path in sorted(folder.glob("*.toml")))


def machine_by_name(name: str) -> Machine:
    """Return the accelerator with the id `name`, or else the GPU of that name.

    Raises:
        UnknownNameError: there is neither, or several GPUs match.
        ProfileError: a file is malformed.
    """
    wanted = name.strip().lower()
    found = next((each for each in accelerators() if each.id == wanted), None)
    return found or profile_by_name(name)


def machine_of(machine: Machine | str) -> Machine:
    """Return a machine unchanged, or look it up by name.

    Raises:
        ArgumentError: `machine` is neither a machine nor a name.
        UnknownNameError: no machine has that name, or several GPUs match it.
        ProfileError: a file is malformed.
    """
    if isinstance(machine, str):
        return machine_by_name(machine)
    if not hasattr(machine, "peak_flop_per_s"):
        found = type(machine).__name__
        raise ArgumentError(f"expected a machine or its name, found {found}", hint='pass a name such as "h100-sxm"')
    return machine


def with_measured(
    machine: Machine | str, *, peak_flop_per_s: float | None = None, bandwidth_bytes_per_s: float | None = None
) -> Machine:
    """Return the machine with a measured peak or device-memory bandwidth in place of the data sheet's.

    Args:
        machine: a machine, or its name.
        peak_flop_per_s: peak to use for every precision; None keeps the data sheet's peaks.
        bandwidth_bytes_per_s: bandwidth of device memory; None keeps the data sheet's.

    Raises:
        ArgumentError: `machine` is neither a machine nor a name.
        UnknownNameError: no machine has that name, or several GPUs match it.
    """
    machine = machine_of(machine)
    if peak_flop_per_s is None and bandwidth_bytes_per_s is None:
        return machine
    peaks, bandwidths = dict(machine.peak_flop_per_s), dict(machine.bandwidth_bytes_per_s)
    if peak_flop_per_s is not None:
        peaks = dict.fromkeys((precision.value for precision in Precision), peak_flop_per_s)
    if bandwidth_bytes_per_s is not None:
        bandwidths[MemoryLevel.DRAM.value] = bandwidth_bytes_per_s
    capability = getattr(machine, "compute_capability", None)
    return Accelerator(f"{machine.id}, as given", machine.name, bandwidths, peaks, machine.l2_bytes, capability)


def read_accelerator(path: Path) -> Accelerator:
    """Return the machine described by the TOML file at `path`.

    Raises:
        ProfileError: a key is missing, unknown or of the wrong kind, or a table of numbers has no source.
    """
    document = resources.read_toml(path)
    texts: dict[str, Any] = document.get("accelerator", {})
    sources, notes = document.get("sources", {}), document.get("notes", {})
    if set(document) - {"accelerator", "sources", "notes", *_KEYS_BY_TABLE}:
        raise ProfileError(f"{path.name}: unknown table", hint="compare with another file of profiles/accelerators")
    if set(texts) != set(_TEXTS) or texts["id"] != path.stem:
        raise ProfileError(f"{path.name}: [accelerator] needs {', '.join(_TEXTS)}; the id must be the file's stem")
    for table, known in _KEYS_BY_TABLE.items():
        numbers = document.get(table, {})
        is_sound = numbers and set(numbers) <= known and all(_is_positive(value) for value in numbers.values())
        if not is_sound or not isinstance(sources.get(table), str):
            raise ProfileError(f"{path.name}: [{table}] needs positive numbers under known names, and a source")
    return Accelerator(
        id=texts["id"],
        name=texts["name"],
        bandwidth_bytes_per_s=resources.FrozenMapping(document["bandwidth_bytes_per_s"]),
        peak_flop_per_s=resources.FrozenMapping(document["peak_flop_per_s"]),
        sources=resources.FrozenMapping(sources),
        notes=resources.FrozenMapping(notes),
    )


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
