"""Data sheets of NVIDIA GPUs: read `profiles/gpus/*.toml`, and find the profile of a device.

One file describes one GPU: what identifies it, the peaks that its documents state (dense, at boost clock), the rates per clock
from which the other peaks follow, and for every number the document that it comes from. To add a GPU, add a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from ncuroof import resources
from ncuroof.enums import SPARSE_SUFFIX, TENSOR_PREFIX, MemoryLevel, Precision
from ncuroof.errors import ProfileError
from ncuroof.resources import FrozenMapping

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

FP16_ACCUMULATE_SUFFIX = "_fp16_accumulate"
"""Suffix of the key of a rate that only FP16 accumulation reaches; the plain key is the rate with FP32 accumulation."""

FP16_ACCUMULATING = (Precision.TENSOR_FP16.value, Precision.TENSOR_FP8.value)
"""Input types whose products can be accumulated in FP16."""

_TEXTS = ("id", "name", "vendor", "architecture", "chip", "compute_capability")
_NUMBERS = ("sm_count", "sm_boost_clock_hz")
_OPTIONAL_NUMBERS = ("tensor_boost_clock_hz", "l2_clock_hz", "dram_bytes", "l2_bytes", "memory_bus_width_bits")
_LEVELS = [level.value for level in MemoryLevel]
_PRECISIONS = [
    *(precision.value for precision in Precision),
    *(precision + FP16_ACCUMULATE_SUFFIX for precision in FP16_ACCUMULATING),
    *(precision.value + SPARSE_SUFFIX for precision in Precision),
]
_NUMBER_TABLES: dict[str, Collection[str]] = {
    "gpu": (*_NUMBERS, *_OPTIONAL_NUMBERS),
    "bandwidth_bytes_per_s": _LEVELS,
    "bytes_per_clock": ("l2", "l1_per_sm", "shared_per_sm"),
    "peak_flop_per_s": _PRECISIONS,
    "peak_flop_per_clock_per_sm": _PRECISIONS,
}
_BRAND_WORDS = frozenset({"nvidia", "geforce", "tesla", "gpu"})
_MIG = re.compile(r"(?<!\s)\s+mig\b.*", re.IGNORECASE | re.DOTALL)
"""Matches only from the first of several blanks on, so that a hostile name of blanks takes linear time."""

# A driver reports less than the data sheet's capacity: firmware and error correction take up to a tenth of it.
_VISIBLE_DRAM_FRAC = (0.85, 1.02)

# Channels of a stack may be off: an H200 has 6144 bits, of which its driver reports 6016. Versions of one name differ by a sixth
# and more.
_VISIBLE_BUS_FRAC = (0.9, 1.1)


@dataclass(frozen=True)
class GpuProfile:
    """What the documents of one GPU say.

    Peaks are dense; structured sparsity doubles the tensor ones, except where `<precision>_sparse` is stated.
    GeForce GPUs run FP16 and FP8 tensor operations with FP32 accumulation at half rate: there the plain key has the
    half rate, and `<precision>_fp16_accumulate` the full one.

    Attributes:
        id: file stem, e.g. "h100-sxm".
        name: NVIDIA's product name.
        vendor: "NVIDIA".
        architecture: e.g. "Hopper".
        chip: e.g. "GH100".
        compute_capability: e.g. "9.0".
        device_names: its names in the driver, and therefore in reports.
        sm_count: streaming multiprocessors of the whole device.
        sm_boost_clock_hz: clock at which the peaks are stated.
        tensor_boost_clock_hz: clock at which the tensor peaks except FP64 are stated, or None when it is `sm_boost_clock_hz`.
        l2_clock_hz: clock of L2 if recordings show that it does not follow the SM clock, else None.
        dram_bytes: capacity, or None when cards that share the profile differ in it.
        l2_bytes: L2 capacity, or None when unknown.
        memory_bus_width_bits: None when unknown, or when drivers disagree about it.
        bandwidth_bytes_per_s: by memory level; as stated, else bytes per clock × SM boost clock.
        peak_flop_per_s: by precision; as stated, else rate per clock × boost clock. Integer types count operations.
        peak_flop_per_clock_per_sm: by precision, to scale a peak to another clock or SM count.
        sources: document by dotted key of a number, e.g. "peak_flop_per_s.fp32"; one for each number above.
        notes: remark by dotted key of what it is about; "tensor" means all tensor peaks.
    """

    id: str
    name: str
    vendor: str
    architecture: str
    chip: str
    compute_capability: str
    device_names: tuple[str, ...]
    sm_count: int
    sm_boost_clock_hz: float
    tensor_boost_clock_hz: float | None
    l2_clock_hz: float | None
    dram_bytes: int | None
    l2_bytes: int | None
    memory_bus_width_bits: int | None
    bandwidth_bytes_per_s: Mapping[str, float] = field(hash=False)
    peak_flop_per_s: Mapping[str, float] = field(hash=False)
    peak_flop_per_clock_per_sm: Mapping[str, float] = field(hash=False)
    sources: Mapping[str, str] = field(hash=False)
    notes: Mapping[str, str] = field(hash=False)

    def ridge_flop_per_byte(self, precision: str, level: str = "dram") -> float | None:
        """Return the intensity where the roofs of `precision` and `level` meet; None when one is unknown."""
        peak = self.peak_flop_per_s.get(precision)
        bandwidth = self.bandwidth_bytes_per_s.get(level)
        return None if peak is None or bandwidth is None else peak / bandwidth

    def stated_precision(self, precision: str) -> str:
        """Return the key under which the profile has the peak of `precision`.

        Without a separate rate for FP16 accumulation, the key of FP32 accumulation applies to both.
        """
        return precision if precision in self.peak_flop_per_s else precision.removesuffix(FP16_ACCUMULATE_SUFFIX)

    def peak_at_clock_flop_per_s(self, precision: str, clock_hz: float) -> float | None:
        """Return the peak of `precision` on all SMs at `clock_hz`; None when its rate is unknown."""
        rate = self.peak_flop_per_clock_per_sm.get(precision)
        return None if rate is None else rate * self.sm_count * clock_hz

    def peak_clock_hz(self, precision: str) -> float | None:
        """Return the clock at which all SMs reach the peak of `precision`; None when its rate or peak is unknown.

        Some cards' tensor peaks are stated at a clock below the SM boost clock that no document names.
        """
        rate, peak = self.peak_flop_per_clock_per_sm.get(precision), self.peak_flop_per_s.get(precision)
        return None if rate is None or peak is None else peak / (rate * self.sm_count)


@cache
def load_profiles() -> tuple[GpuProfile, ...]:
    """Return all profiles that ship with ncuroof, ordered by id.

    Raises:
        ProfileError: a file is malformed; the message names the file and the key.
    """
    return tuple(read_profile(path) for path in _paths())


def match_profile(
    device_name: str,
    compute_capability: str,
    *,
    sm_count: int | None = None,
    dram_bytes: int | None = None,
    memory_bus_bits: int | None = None,
) -> GpuProfile | None:
    """Return the profile of the device that a report calls `device_name`; None unless exactly one fits.

    The whole name must match, and nothing else that is given may contradict the profile, so that a name that
    several products share ("NVIDIA H100") finds the right one or none. A MIG slice finds the GPU that it
    is part of, whose peaks it cannot reach: see `is_partial`.

    Raises:
        ProfileError: the file of a GPU of that compute capability is malformed.
    """
    wanted = normalise_device_name(device_name)
    partial = is_partial(device_name)
    found = [
        profile
        for profile in map(read_profile, _paths_mentioning(f'"{compute_capability}"'))
        if profile.compute_capability == compute_capability
        and wanted in map(normalise_device_name, profile.device_names)
        and (partial or _fits(profile, sm_count, dram_bytes, memory_bus_bits))
    ]
    return found[0] if len(found) == 1 else None


def is_partial(device_name: str | None) -> bool:
    """Return whether `device_name` is a MIG slice, which has only a share of its GPU's SMs and memory; False if not known."""
    return _MIG.search(device_name or "") is not None


def normalise_device_name(device_name: str) -> str:
    """Return `device_name` in lower case, without brand words and the MIG suffix, one blank between words."""
    words = re.split(r"[\s_-]+", _MIG.sub("", device_name).strip().lower())
    return " ".join(word for word in words if word not in _BRAND_WORDS)


@cache
def read_profile(path: Path) -> GpuProfile:
    """Return the profile in the TOML file at `path`.

    Raises:
        ProfileError: a key is missing, unknown or of the wrong type, or a number has no source.
    """
    document = resources.read_toml(path)
    try:
        return _profile(document, path.stem)
    except ProfileError as error:
        hint = "compare with another file of profiles/gpus"
        raise ProfileError(f"{path.name}: {error}", hint=hint) from error


def _profile(document: dict[str, Any], stem: str) -> GpuProfile:
    _refuse_unknown("tables", document, (*_NUMBER_TABLES, "sources", "notes"))
    tables = {name: _table(document, name) for name in (*_NUMBER_TABLES, "sources", "notes")}
    texts, device_names = _identity(tables["gpu"], stem)
    numbers = {name: _numbers(name, tables[name]) for name in _NUMBER_TABLES}
    for key in _NUMBERS:
        if key not in numbers["gpu"]:
            raise ProfileError(f"[gpu] {key}: expected a positive number, found none")
    sources = _sources({key: _text("sources", tables["sources"], key) for key in tables["sources"]}, numbers)
    _add_derived(numbers, sources)
    gpu: dict[str, Any] = {key: numbers["gpu"].get(key) for key in _NUMBER_TABLES["gpu"]}
    return GpuProfile(
        **texts,
        **gpu,
        device_names=device_names,
        bandwidth_bytes_per_s=FrozenMapping(numbers["bandwidth_bytes_per_s"]),
        peak_flop_per_s=FrozenMapping(numbers["peak_flop_per_s"]),
        peak_flop_per_clock_per_sm=FrozenMapping(numbers["peak_flop_per_clock_per_sm"]),
        sources=FrozenMapping(sources),
        notes=FrozenMapping({key: _text("notes", tables["notes"], key) for key in tables["notes"]}),
    )


def _identity(gpu: dict[str, Any], stem: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the texts of `[gpu]` and the device names."""
    _refuse_unknown("[gpu]", gpu, (*_TEXTS, "device_names", *_NUMBER_TABLES["gpu"]))
    texts = {key: _text("gpu", gpu, key) for key in _TEXTS}
    if texts["id"] != stem:
        raise ProfileError(f"[gpu] id: expected the file's stem {stem!r}, found {texts['id']!r}")
    names = gpu.get("device_names")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ProfileError(f"[gpu] device_names: expected a list of names, found {names!r}")
    return texts, tuple(names)


def _sources(texts: dict[str, str], numbers: dict[str, dict[str, float]]) -> dict[str, str]:
    """Return the source of every number: its own, else the one of all tensor numbers of its table, else the one of its table."""
    resolved: dict[str, str] = {}
    unused = set(texts)
    for table, content in numbers.items():
        for key in content:
            tensor = [f"{table}.tensor"] if key.startswith(TENSOR_PREFIX) else []
            source = next((name for name in (f"{table}.{key}", *tensor, table) if name in texts), None)
            if source is None:
                raise ProfileError(f"[sources] {table}.{key}: expected the source of this number, found none")
            resolved[f"{table}.{key}"] = texts[source]
            unused.discard(source)
    if unused:
        raise ProfileError(f"[sources] {min(unused)}: no number takes its source from this key")
    return resolved


def _add_derived(numbers: dict[str, dict[str, float]], sources: dict[str, str]) -> None:
    """Add the bandwidths and peaks that are not stated but follow from a rate per clock, with their sources."""
    sm_count, clock_hz = numbers["gpu"]["sm_count"], numbers["gpu"]["sm_boost_clock_hz"]
    tensor_clock_hz = numbers["gpu"].get("tensor_boost_clock_hz", clock_hz)
    for key, n_bytes in numbers["bytes_per_clock"].items():
        level = key.removesuffix("_per_sm")
        if level not in numbers["bandwidth_bytes_per_s"]:
            n_units = 1 if key == level else sm_count
            numbers["bandwidth_bytes_per_s"][level] = n_bytes * n_units * clock_hz
            sources[f"bandwidth_bytes_per_s.{level}"] = f"at boost clock: {sources[f'bytes_per_clock.{key}']}"
    for precision, rate in numbers["peak_flop_per_clock_per_sm"].items():
        if precision not in numbers["peak_flop_per_s"]:
            at_tensor_clock = precision.startswith(TENSOR_PREFIX) and precision != Precision.TENSOR_FP64
            clock = tensor_clock_hz if at_tensor_clock else clock_hz
            numbers["peak_flop_per_s"][precision] = rate * sm_count * clock
            source = sources[f"peak_flop_per_clock_per_sm.{precision}"]
            sources[f"peak_flop_per_s.{precision}"] = f"at boost clock: {source}"


def _fits(profile: GpuProfile, sm_count: int | None, dram_bytes: int | None, bus_bits: int | None) -> bool:
    """Return whether nothing known about a device contradicts `profile`."""
    if sm_count not in (None, profile.sm_count):
        return False
    return _is_visible_part(bus_bits, profile.memory_bus_width_bits, _VISIBLE_BUS_FRAC) and _is_visible_part(
        dram_bytes, profile.dram_bytes, _VISIBLE_DRAM_FRAC
    )


def _is_visible_part(visible: int | None, whole: float | None, limits: tuple[float, float]) -> bool:
    """Return whether a driver may report `visible` of `whole`; True if either is unknown."""
    return not visible or not whole or limits[0] <= visible / whole <= limits[1]


@cache
def _paths() -> tuple[Path, ...]:
    return tuple(sorted((resources.folder("profiles") / "gpus").glob("*.toml"), key=lambda path: path.stem))


@cache
def _paths_mentioning(text: str) -> tuple[Path, ...]:
    """Return the files that contain `text`, which is cheaper than parsing files that cannot match."""
    return tuple(path for path in _paths() if text in path.read_text(encoding="utf-8"))


def _table(document: dict[str, Any], name: str) -> dict[str, Any]:
    content = document.get(name, {})
    if not isinstance(content, dict):
        raise ProfileError(f"[{name}]: expected a table, found {content!r}")
    return content


def _numbers(table: str, content: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a table; `[gpu]` also has texts, and `_identity` checks its keys."""
    if table != "gpu":
        _refuse_unknown(f"[{table}]", content, _NUMBER_TABLES[table])
    numbers = {key: content[key] for key in _NUMBER_TABLES[table] if key in content}
    for key, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            raise ProfileError(f"[{table}] {key}: expected a positive number, found {value!r}")
    return numbers


def _text(table: str, content: dict[str, Any], key: str) -> str:
    value = content.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ProfileError(f"[{table}] {key}: expected a string, found {value!r}")
    return value


def _refuse_unknown(where: str, content: dict[str, Any], known: Collection[str]) -> None:
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise ProfileError(f"{where}: {unknown[0]!r} is unknown; known: {', '.join(sorted(known))}")
