"""Parses what a printed row says about its launch besides counters: name, process, NVTX ranges, shape, stream and GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

PUSHED, STARTED = (
    "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
    "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
)
IDENTITY = (
    "ID", "Process ID", "Process Name", "Host Name", PUSHED, STARTED, "Kernel Name", "Kernel Time", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC",
)  # fmt: skip
"""Columns that are not counters. Old versions print the time and no shape; NVTX columns are printed if NVTX was recorded."""

_COUNTER_BY_COLUMN = {"Context": "launch__context_id", "Stream": "launch__stream_id", "Device": "launch__device_id"}
_EXTENTS = {"Block Size": "launch__block_dim", "Grid Size": "launch__grid_dim"}
_CAPABILITY = tuple(f"device__attribute_compute_capability_{part}" for part in ("major", "minor"))
_NO_DEVICE = "255"
"""What ncu prints if the report does not say which GPU it was."""

_TRIPLE = re.compile(r"\(?\s*(\d+),\s*(\d+),\s*(\d+)\s*\)?")
_BETWEEN_RANGES = re.compile(r'"\s+"')
_N_ATTRIBUTES = 6
"""Fields after a range's name: payload, colour and message, each with its type. The domain comes before the name."""

_MOST_DIGITS = 18

_AFTER_PARAMETERS = re.compile(r"\)(?:\s*const|\s*\[[^\]]*\])*\s*$")


def launch_counters(cells: Mapping[str, str]) -> dict[str, float]:
    """Return the values in a row's identity columns that are counters in a report, by counter name."""
    found = {
        counter: float(cells[column])
        for column, counter in _COUNTER_BY_COLUMN.items()
        if is_number(cells.get(column, "")) and (column != "Device" or cells[column] != _NO_DEVICE)
    }
    for column, counter in _EXTENTS.items():
        triple = _TRIPLE.fullmatch(cells.get(column, ""))
        extents = triple.groups() if triple else ()
        if extents and all(is_number(extent) and int(extent) for extent in extents):  # zeros: nothing was recorded
            found |= {f"{counter}_{axis}": float(extent) for axis, extent in zip("xyz", extents, strict=True)}
    numbers = re.split(r"[.,]", cells.get("CC", ""))
    if len(numbers) == 2 and all(map(is_number, numbers)):
        found |= dict(zip(_CAPABILITY, map(float, numbers), strict=True))
    return found


def is_number(text: str) -> bool:
    """Return whether a text is a non-negative integer that is certain to fit into 64 bits."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def open_ranges(cells: Mapping[str, str]) -> list[str]:
    """Return the names of the NVTX ranges that were open at the launch: push/pop ranges outermost first, then start/end ranges."""
    return [name for column in (PUSHED, STARTED) for name in _names(cells.get(column, ""))]


def _names(printed: str) -> Iterable[str]:
    """Yield the names of ranges, each printed in quotes; a name may itself contain colons and quotes."""
    _, _, quoted = printed.partition('"')
    for described in _BETWEEN_RANGES.split(quoted.rpartition('"')[0]):
        name, *attributes = described.partition(":")[2].rsplit(":", _N_ATTRIBUTES)
        if len(attributes) == _N_ATTRIBUTES:
            yield name


def workload_kind(cells: Mapping[str, str]) -> str:
    """Return the kind of workload; only kernels have a shape.

    A command list is printed like a range or graph, but under its own name.
    """
    if cells.get("Block Size") != "n/a":
        return "kernel"
    name = cells.get("Kernel Name", "")
    return name if name in {"range", "graph"} else "cmdlist"


def function_name(printed: str) -> str:
    """Return a kernel's name without return type, namespaces, template arguments and parameters.

    The printed name may already be that name (--print-kernel-base function), or a mangled one, which is returned unchanged.
    """
    name = printed.strip()
    if _AFTER_PARAMETERS.search(name):
        name = _before(name[: name.rindex(")") + 1], "(", ")")
    if name.endswith(">"):
        name = _before(name, "<", ">")
    return _last_word(name) or printed


def _before(text: str, opening: str, closing: str) -> str:
    """Return the text before the bracket that matches the last closing one; the whole text if there is none."""
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        if text[position] == closing and text[position - 1 : position] not in {"-", "="}:
            depth += 1
        elif text[position] == opening:
            depth -= 1
            if depth == 0:
                return text[:position].rstrip()
    return text


def _last_word(name: str) -> str:
    """Return the part after the last space or `::` that is outside all brackets."""
    depth = 0
    for position in range(len(name) - 1, -1, -1):
        character = name[position]
        depth += (character in ")>]}") - (character in "(<[{")
        if depth == 0 and (character == " " or name[position : position + 2] == "::"):
            return name[position:].lstrip(": ")
    return name
