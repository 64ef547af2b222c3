"""The resources that limit the resident blocks per SM, in words, and how much less a block must use for one more to fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ncuroof import wording

SMALL_BLOCK = 128
"""Threads per block that `occupancy.small_blocks_frac` assumes."""

_LEAST_GAIN_FRAC = 0.1
"""Least gain in occupancy for which smaller blocks are recommended."""

_SAME_FRAC = 0.005
"""Occupancies that differ by less are the same: ncu prints two decimals of a percentage."""

LIMITS = {
    "registers": "registers",
    "shared_memory": "shared memory",
    "warps": "warp slots",
    "blocks": "block slots",
    "barriers": "hardware barriers",
}
"""Resources that limit the resident blocks, with their names in sentences."""


def with_limits(advice: str, limiters: Sequence[str], row: Mapping[str, Any], cures: Mapping[str, str]) -> str:
    """Return an advice with its placeholders `{limiters}` and `{cures}` filled in for this kernel.

    Args:
        advice: text with or without placeholders.
        limiters: names in `LIMITS`; empty where they are not known: the cures are then those of registers and shared memory.
        row: canonical quantities of the kernel.
        cures: what to change, by name in `LIMITS`.
    """
    likeliest = limiters or ("registers", "shared_memory")
    filled = advice.replace("{limiters}", limiters_in_words(limiters, row))
    return filled.replace("{cures}", "; ".join([*_smaller_blocks(row), *(cures[name] for name in likeliest)]))


def _smaller_blocks(row: Mapping[str, Any]) -> list[str]:
    """Return blocks of 128 threads as a cure, where the kernel's are larger and these raise theoretical occupancy enough."""
    now, then = row.get("occupancy.theoretical_frac"), row.get("occupancy.small_blocks_frac")
    n_threads = row.get("launch.n_threads_per_block")
    if now is None or then is None or n_threads is None or n_threads <= SMALL_BLOCK or then < now + _LEAST_GAIN_FRAC:
        return []
    return [f"blocks of {SMALL_BLOCK} threads ({wording.share(then)} occupancy at the same registers per thread)"]


def limiters_in_words(limiters: Sequence[str], row: Mapping[str, Any]) -> str:
    """Return the limiters, with what would let one more block fit and the occupancy that the gain of more blocks assumes.

    Example: "registers (64 per thread; at 48 one more block fits, 62.5 % occupancy; the gain assumes up to 100.0 %)".

    Args:
        limiters: names in `LIMITS`.
        row: canonical quantities of the kernel.
    """
    return " and ".join(LIMITS[name] + _one_more(name, row) for name in limiters) or "its resources"


def _one_more(limiter: str, row: Mapping[str, Any]) -> str:
    if limiter == "registers":
        now, then = row["launch.n_registers_per_thread"], row["occupancy.registers_for_one_more_block"]
        if _is_reachable(now, then):
            return f" ({now:.0f} per thread; at {then:.0f} one more block fits{_occupancies(row)})"
    if limiter == "shared_memory":
        now, then = row["launch.shared_bytes_per_block"], row["occupancy.shared_bytes_for_one_more_block"]
        if _is_reachable(now, then):
            of_driver = _of_driver(row)
            own, fits = (wording.kibibytes(each - (of_driver or 0)) for each in (now, then))
            whose = " with the driver's" if of_driver is None else ""
            return f" ({own} per block{whose}; at {fits} one more block fits{_occupancies(row)})"
    return ""


def _of_driver(row: Mapping[str, Any]) -> float | None:
    """Return the shared memory that the driver reserves per block, in bytes; None if not known."""
    whole, own = row["launch.shared_bytes_per_block"], row["launch.own_shared_bytes_per_block"]
    return None if own is None or own > whole else float(whole - own)


def _occupancies(row: Mapping[str, Any]) -> str:
    """Return theoretical occupancy with one more block, and at the next limit, up to which the gain goes, where that is higher."""
    one_more, most = row.get("occupancy.one_more_block_frac"), row.get("occupancy.next_limit_frac")
    if one_more is None or one_more > 1:
        return ""
    is_beyond = most is not None and most > one_more + _SAME_FRAC
    assumed = f"; the gain assumes up to {wording.share(most)}" if is_beyond else ""
    return f", {wording.share(one_more)} occupancy{assumed}"


def _is_reachable(now: float | None, then: float | None) -> bool:
    return now is not None and then is not None and 0 < then < now
