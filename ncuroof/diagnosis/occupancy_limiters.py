"""Which resources limit the resident blocks per SM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RESOURCES = ("registers", "shared_memory", "warps", "blocks", "barriers")
"""Resources with a limit on the resident blocks, `occupancy.limit_…`; warps and blocks are slots of the SM."""


def occupancy_limiters(quantities: Mapping[str, Any]) -> list[str]:
    """Return the resources that allow the fewest blocks per SM; several where they tie, none where no limit is known.

    For a kernel without shared memory, or with at most one barrier per block, reports give the number of block slots as the limit
    of that resource, too. Such ties are left out: barriers where block slots tie, unused shared memory where anything else ties.

    Args:
        quantities: canonical quantities of the kernel; shared memory counts as used if the program requested some per block, or if
            some is allocated where what it requested is not known.
    """
    limits = {name: quantities[f"occupancy.limit_{name}"] for name in RESOURCES}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    tied = [name for name, limit in known.items() if limit == min(known.values())]
    own_bytes = quantities["launch.own_shared_bytes_per_block"]
    used_bytes = quantities["launch.shared_bytes_per_block"] if own_bytes is None else own_bytes
    is_of_slots = {"barriers": "blocks" in tied, "shared_memory": used_bytes == 0 and len(tied) > 1}
    return [name for name in tied if not is_of_slots.get(name, False)]
