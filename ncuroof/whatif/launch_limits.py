"""What a GPU allows a launch: a kernel that asks for more does not run there."""

from __future__ import annotations

from functools import cache

from ncuroof.resources import profile_file
from ncuroof.roofline import GpuProfile


def most_shared_bytes_per_block(profile: GpuProfile | None) -> int | None:
    """Return how much shared memory a block can ask for; None where that is not known.

    Raises:
        ProfileError: `profiles/launch_limits.toml` is malformed.
    """
    return None if profile is None else _by_compute_capability().get(profile.compute_capability)


@cache
def _by_compute_capability() -> dict[str, int]:
    with profile_file("launch_limits.toml") as raw:
        return dict(raw["shared_bytes_per_block"])
