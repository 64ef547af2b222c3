"""Units of counters: the factor that converts a counter's value to base units.

Base units are bytes, nanoseconds, hertz, flop, counts, and shares (0..1) in place of percent.
Source: the unit strings of NVIDIA's `ncu_report` module and of `ncu --print-units base|auto`.
"""

from __future__ import annotations

import re

from ncuroof.errors import UnitError

_PERCENT_NAME = re.compile(r"\.pct\b|\.pct_of_|_pct$|_throughput_pct")
_SI = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_COUNTED = (
    "block", "branches", "cluster", "cycle", "inst", "pass", "register", "request", "sample", "sector", "sectors", "SM",
    "thread", "warp", "wavefront",
)  # fmt: skip

_SCALE_BY_UNIT: dict[str, float] = {
    "": 1.0,
    "%": 0.01,
    "ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9,
    "hz": 1.0, "Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9,
    "1/s": 1.0,
    "byte/sector": 1.0, "sector/request": 1.0,
    "inst/warp": 1.0, "register/thread": 1.0, "byte/block": 1.0, "%/register": 0.01, "%/byte": 0.01,
    **{f"{prefix}byte{per}": scale for prefix, scale in _SI.items() for per in ("", "/s", "/cycle", "/block")},
    **dict.fromkeys(_COUNTED, 1.0),
    **{f"{what}/{per}": 1.0 for what in _COUNTED for per in ("s", "cycle")},
}  # fmt: skip


def scale(unit: str, *, metric: str) -> float:
    """Return the factor that converts a value in `unit` to base units.

    NVIDIA's module looks units up by chip and returns none for a chip that it does not know. Percentages are therefore recognised
    by the counter's name as well, and a value without a unit is already in base units.

    Raises:
        UnitError: the unit is unknown; a guessed scale could be wrong by a factor of a thousand.
    """
    if _PERCENT_NAME.search(metric):
        unit = "%"
    try:
        return _SCALE_BY_UNIT[unit]
    except KeyError:
        raise UnitError(
            f"unit {unit!r} of {metric} is not known",
            hint="please report this unit and the Nsight Compute version that wrote it",
        ) from None
