"""The machines that a model is held against: GPUs of `profiles/gpus`, and others that exist for models alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from ncuroof import resources
from ncuroof.errors import ArgumentError, ProfileError
from ncuroof.roofline.gpu_names import profile_by_name
from ncuroof.words import MemoryLevel, Precision

_TEXTS = ("id", "name", "vendor", "architecture")
_KEYS_BY_TABLE = {
    "bandwidth_bytes_per_s": frozenset(level.value for level in MemoryLevel),
    "peak_flop_per_s": frozenset(precision.value for precision in Precision),
}


class Machine(Protocol):
    """What a model asks of a machine; GPU profiles have it."""

    @property
    def id(self) -> str:
        """Short name."""

    @property
    def name(self) -> str:
        """The maker's name."""

    @property
    def bandwidth_bytes_per_s(self) -> Mapping[str, float]:
        """By memory level."""

    @property
    def peak_flop_per_s(self) -> Mapping[str, float]:
        """By precision, dense."""

    @property
    def l2_bytes(self) -> int | None:
        """Capacity of L2, or None."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A machine that no report comes from: a file of `profiles/accelerators`, or numbers of one's own.

    Attributes:
        id: short name, e.g. "tpu-v5e".
        name: the maker's name.
        bandwidth_bytes_per_s: by memory level.
        peak_flop_per_s: by precision, dense.
        l2_bytes: None: models of these machines know no cache.
        compute_capability: of a GPU whose data sheet it was made of, e.g. "9.0"; None for what is none.
        sources: document by table of numbers.
        notes: remark by what it is about.
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
    """Return the machines of `profiles/accelerators`, ordered by id.

    Raises:
        ProfileError: a file is malformed.
    """
    folder = resources.folder("profiles") / "accelerators"
    return tuple(read_accelerator(path) for path in sorted(folder.glob("*.toml")))


def machine_by_name(name: str) -> Machine:
    """Return the accelerator whose id is `name`, else the GPU called so.

    Raises:
        UnknownNameError: neither is there, or several GPUs fit.
        ProfileError: a file is malformed.
    """
    wanted = name.strip().lower()
    found = next((each for each in accelerators() if each.id == wanted), None)
    return found or profile_by_name(name)


def machine_of(machine: Machine | str) -> Machine:
    """Return a machine as it is, or the one that a name names.

    Raises:
        ArgumentError: it is neither.
        UnknownNameError: no machine is called so, or several GPUs are.
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
    """Return the machine with one peak for every precision, or one bandwidth of device memory, in place of the data sheet's.

    Raises:
        ArgumentError: `machine` is neither a machine nor a name.
        UnknownNameError: no machine is called so.
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
    """Return the machine in the TOML file at `path`.

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
        bandwidth_bytes_per_s=resources.Stated(document["bandwidth_bytes_per_s"]),
        peak_flop_per_s=resources.Stated(document["peak_flop_per_s"]),
        sources=resources.Stated(sources),
        notes=resources.Stated(notes),
    )


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
