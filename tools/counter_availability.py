"""Reads `profiles/availability.toml`, which chip has which counter, and writes the table of it that NVIDIA's tools list.

Run `python -m tools.counter_availability --ncu NCU --nvperf LIBRARY` after a change of the counters in `profiles/metrics/`; no GPU
is needed. NCU is the command line of Nsight Compute; LIBRARY is `libnvperf_host.so` of the package nvidia-cuda-cupti, which also
knows the chips that came later. A counter that either names for a chip is taken to be there. The file's other tables are kept by
hand.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from ncuroof.errors import ProfileError
from ncuroof.metrics import Catalogue, load_catalogue
from ncuroof.resources import folder, read_toml

FILE = folder("profiles") / "availability.toml"
TABLE = "[chips]\n"
"""Begins the table that is written, which is the last of the file."""

CAPABILITY_BY_CHIP: Mapping[str, int] = {
    "gv100": 70, "tu102": 75, "ga100": 80, "ga102": 86, "ga10b": 87, "ad102": 89, "gh100": 90,
    "gb100": 100, "gb110": 103, "gb10b": 110, "gb202": 120, "gb20b": 121,
}  # fmt: skip

_LISTED_NAME = re.compile(r"^(\w+__\w+) ", re.MULTILINE)
_SECOND_NAME = "_realtime"
"""Ends a second name of the same counter."""


@dataclass(frozen=True, slots=True)
class CounterGroup:
    """Counters of one kind: where they are, and what is to be said of them.

    Attributes:
        available: compute capabilities (major × 10 + minor) that have them.
        unknown: compute capabilities of which it is not known.
        note: where they come from, or None of hardware counters.
        collect: options of ncu that collect them, or None.
    """

    available: tuple[int, ...]
    unknown: tuple[int, ...] = ()
    note: str | None = None
    collect: str | None = None


@dataclass(frozen=True, slots=True)
class Availability:
    """All of `profiles/availability.toml`.

    Attributes:
        capabilities: compute capabilities (major × 10 + minor) that it tells of.
        group_by_counter: by base name, which is what stands before the first dot of a counter's name.
    """

    capabilities: tuple[int, ...]
    group_by_counter: Mapping[str, CounterGroup]

    def group(self, counter: str) -> CounterGroup:
        """Return the group of a counter, by its base name.

        Raises:
            ProfileError: the file does not name it.
        """
        if counter not in self.group_by_counter:
            raise ProfileError(
                f"{FILE.name}: nothing says which architectures have {counter}",
                hint=f"add it to a group of {FILE.name}",
            )
        return self.group_by_counter[counter]

    def has(self, counter: str, capability: int) -> bool | None:
        """Return whether chips of a compute capability have a counter; None where it is not known.

        Args:
            counter: base name, one of `group_by_counter`.
            capability: compute capability, one of `capabilities`.
        """
        group = self.group(counter)
        return None if capability in group.unknown else capability in group.available


@cache
def load_availability() -> Availability:
    """Return what `profiles/availability.toml` says."""
    raw = read_toml(FILE)
    groups = {name: CounterGroup(tuple(capabilities)) for name, capabilities in raw["chips"].items()}
    for entry in raw["group"]:
        group = CounterGroup(
            tuple(entry["available"]), tuple(entry.get("unknown", ())), entry["note"], entry.get("collect")
        )
        groups |= dict.fromkeys(entry["counters"], group)
    return Availability(tuple(raw["compute_capabilities"]), groups)


def names_by_ncu(ncu: Path) -> dict[int, set[str]]:
    """Return the base names that Nsight Compute lists, by compute capability of the chips that it knows."""
    return {
        capability: names
        for chip, capability in CAPABILITY_BY_CHIP.items()
        if (names := set(_LISTED_NAME.findall(_output(ncu, "--query-metrics", "--chips", chip))))
    }


def _output(*command: str | Path) -> str:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False).stdout  # noqa: S603


class _Call(ctypes.Structure):
    """What every call of the library begins with: the size of its parameters, and a pointer of the library's own."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (("size", ctypes.c_size_t), ("private", ctypes.c_void_p))

    def __init__(self, **fields: object) -> None:
        super().__init__(size=ctypes.sizeof(self), **fields)


class _ScratchSize(_Call):
    _fields_ = (("chip", ctypes.c_char_p), ("image", ctypes.c_void_p), ("scratch_bytes", ctypes.c_size_t))


class _Evaluator(_Call):
    _fields_ = (
        ("scratch", ctypes.c_void_p),
        ("scratch_bytes", ctypes.c_size_t),
        ("chip", ctypes.c_char_p),
        ("image", ctypes.c_void_p),
        ("counters", ctypes.c_void_p),
        ("counter_bytes", ctypes.c_size_t),
        ("evaluator", ctypes.c_void_p),
    )


class _Names(_Call):
    _fields_ = (
        ("evaluator", ctypes.c_void_p),
        ("kind", ctypes.c_uint8),
        ("text", ctypes.c_void_p),
        ("offsets", ctypes.POINTER(ctypes.c_size_t)),
        ("n_names", ctypes.c_size_t),
    )


def names_by_nvperf(library: Path) -> dict[int, set[str]]:
    """Return the base names that the CUPTI host library has, by compute capability of the chips that it knows."""
    nvperf = ctypes.CDLL(str(library))
    nvperf.NVPW_InitializeHost(ctypes.byref(_Call()))
    return {
        capability: names
        for chip, capability in CAPABILITY_BY_CHIP.items()
        if (names := set(_names_of_chip(nvperf, chip.upper().encode())))
    }


def _names_of_chip(nvperf: ctypes.CDLL, chip: bytes) -> Iterator[str]:
    """Yield the names of counters, ratios and throughputs; none where the library does not know the chip."""
    size = _ScratchSize(chip=chip)
    if nvperf.NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize(ctypes.byref(size)) != 0:
        return
    scratch = ctypes.create_string_buffer(size.scratch_bytes)
    made = _Evaluator(scratch=ctypes.addressof(scratch), scratch_bytes=size.scratch_bytes, chip=chip)
    if nvperf.NVPW_CUDA_MetricsEvaluator_Initialize(ctypes.byref(made)) != 0:
        return
    for kind in range(3):
        found = _Names(evaluator=made.evaluator, kind=kind)
        if nvperf.NVPW_MetricsEvaluator_GetMetricNames(ctypes.byref(found)) == 0:
            for index in range(found.n_names):
                yield ctypes.string_at(found.text + found.offsets[index]).decode()


def table(catalogue: Catalogue, listings: list[dict[int, set[str]]]) -> str:
    """Return the table's lines: each counter that the catalogue reads and a chip has, with the compute capabilities."""
    wanted = {counter.split(".")[0] for counter in catalogue.counters()}
    capabilities_by_name: dict[str, set[int]] = {}
    for listing in listings:
        for capability, names in listing.items():
            for name in names:
                is_tensor = name.startswith(catalogue.tensor.counter_prefix) and not name.endswith(_SECOND_NAME)
                if name in wanted or is_tensor:
                    capabilities_by_name.setdefault(name, set()).add(capability)
    return "".join(f"{name} = {sorted(found)}\n" for name, found in sorted(capabilities_by_name.items()))


def main() -> None:
    """Write the table into the file, and leave what is above it as it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ncu", type=Path, required=True, help="Nsight Compute's command line")
    parser.add_argument("--nvperf", type=Path, required=True, help="libnvperf_host.so of nvidia-cuda-cupti")
    arguments = parser.parse_args()
    listings = [names_by_ncu(arguments.ncu), names_by_nvperf(arguments.nvperf)]
    above, found, _ = FILE.read_text(encoding="utf-8").partition(TABLE)
    FILE.write_text(above + found + table(load_catalogue(), listings), encoding="utf-8")


if __name__ == "__main__":
    main()
