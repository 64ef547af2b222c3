"""The path of a kernel's bytes from the SMs to DRAM: units with their hit rates, and the traffic between them."""

from __future__ import annotations

import math

from ncuroof import wording
from ncuroof.present.analysed import Record

Station = tuple[str, str, str, int]
"""Kind (`unit` or `traffic`), text, remark, and line width in pixels (0 for units)."""

_THICKEST_PX, _THINNEST_PX = 14, 1
_DECADES = 4
"""Powers of ten of bytes over which the line width shrinks to the minimum."""

_MUCH_MORE = 1.1
"""Ratio of L2's lookups to the L1s' requests above which the lookups are remarked on."""
_UNCOUNTED = {"bulk_copy_frac": "bulk copies (TMA)", "atomic_request_frac": "atomics"}
"""Traffic that L1's bytes do not include, by the quantity of `access` that measures its share."""


def traffic_flow(kernel: Record) -> list[Station]:
    """Return the stations from the SMs to DRAM; empty where the bytes of fewer than two levels are known.

    Levels without a byte count are left out, and so is shared memory, which is not on this path. Between L1 and L2 are the sectors
    that the L1s request, as in Nsight Compute's memory chart; other L2 lookups (fills, other units, the fabric) are a remark on L2.
    """
    traffic, access = kernel["traffic_bytes"], kernel["access"]
    passed = {"L1": traffic.get("l1"), "L2": traffic.get("l2"), "DRAM": traffic.get("dram")}
    known = {name: count for name, count in passed.items() if count is not None}
    if len(known) < 2:
        return []
    remarks = {
        "L1": _remarks(access.get("l1_hit_frac"), _not_counted(access)),
        "L2": _remarks(access.get("l2_hit_frac"), _looked_up(traffic)),
        "DRAM": "",
    }
    most = max(known.values())
    stations: list[Station] = [("unit", "SMs", "", 0)]
    for name, count in known.items():
        stations.append(("traffic", wording.byte_count(count), _directions(name, traffic), _width_px(count, most)))
        stations.append(("unit", name, remarks[name], 0))
    return stations


def _remarks(hit_frac: float | None, other: str) -> str:
    return "; ".join(filter(None, ("" if hit_frac is None else f"{wording.share(hit_frac)} hits", other)))


def _not_counted(access: Record) -> str:
    """Return a remark on the kernel's traffic that L1's bytes do not include; empty where there is none."""
    names = [name for quantity, name in _UNCOUNTED.items() if (access.get(quantity) or 0) > 0]
    return f"{' and '.join(names)} not counted" if names else ""


def _looked_up(traffic: Record) -> str:
    """Return the bytes of all L2 lookups, where these are well above what the L1s requested; else empty."""
    asked, looked_up = traffic.get("l2"), traffic.get("l2_all")
    if asked is None or looked_up is None or looked_up <= _MUCH_MORE * asked:
        return ""
    return f"{wording.byte_count(looked_up)} looked up in total"


def _directions(name: str, traffic: Record) -> str:
    read, written = traffic.get("dram_read"), traffic.get("dram_write")
    if name != "DRAM" or read is None or written is None:
        return ""
    return f"{wording.byte_count(read)} read, {wording.byte_count(written)} written"


def _width_px(count: float, most: float) -> int:
    """Return the width of a line, logarithmic in its bytes: a tenth of the bytes takes off a quarter of the largest width."""
    if count <= 0 or most <= 0:
        return _THINNEST_PX
    frac = 1 + math.log10(count / most) / _DECADES
    return max(round(_THICKEST_PX * frac), _THINNEST_PX)
