"""A kernel's bytes on their way from the SMs to DRAM: units with their hit rates, and between them what passed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ncuroof.present import format as text

Record = Mapping[str, Any]
Station = tuple[str, str, str, int]
"""Kind (`unit` or `traffic`), text, remark, and for traffic the width of its line in pixels."""

_THICKEST_PX, _THINNEST_PX = 14, 1
_DECADES = 4
"""Lines get thinner over so many powers of ten of bytes."""


def traffic_flow(kernel: Record) -> list[Station]:
    """Return the stations from the SMs to DRAM; empty where less than two levels' bytes are known.

    What a level has not counted is left out, and so is shared memory, which lies beside the way.
    """
    traffic, access = kernel.get("traffic_bytes") or {}, kernel.get("access") or {}
    l2 = traffic.get("l2_all") if traffic.get("l2_all") is not None else traffic.get("l2")
    passed = {"L1": traffic.get("l1"), "L2": l2, "DRAM": traffic.get("dram")}
    known = {name: count for name, count in passed.items() if count is not None}
    if len(known) < 2:
        return []
    hits = {"L1": access.get("l1_hit_frac"), "L2": access.get("l2_hit_frac")}
    most = max(known.values())
    stations: list[Station] = [("unit", "SMs", "", 0)]
    for name, count in known.items():
        stations.append(("traffic", text.byte_count(count), _directions(name, traffic), _width_px(count, most)))
        hit = hits.get(name)
        stations.append(("unit", name, "" if hit is None else f"{text.share(hit)} hits", 0))
    return stations


def _directions(name: str, traffic: Record) -> str:
    read, written = traffic.get("dram_read"), traffic.get("dram_write")
    if name != "DRAM" or read is None or written is None:
        return ""
    return f"{text.byte_count(read)} read, {text.byte_count(written)} written"


def _width_px(count: float, most: float) -> int:
    """Return the width of a line by the logarithm of its bytes: a tenth of the bytes takes off a quarter of the width."""
    if count <= 0 or most <= 0:
        return _THINNEST_PX
    frac = 1 + math.log10(count / most) / _DECADES
    return max(round(_THICKEST_PX * frac), _THINNEST_PX)
