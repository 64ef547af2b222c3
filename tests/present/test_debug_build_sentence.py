from __future__ import annotations

import pytest

from ncuroof.present.debug_build_sentence import debug_build_sentence


@pytest.mark.parametrize(
    ("n_debug_builds", "n_kernels", "told"),
    [
        (0, 3, ""),
        (1, 1, "the kernel was compiled for debugging"),
        (1, 3, "1 of 3 kernels was compiled for debugging"),
        (2, 3, "2 of 3 kernels were compiled for debugging"),
        (3, 3, "all 3 kernels were compiled for debugging"),
    ],
)
def test_how_many_kernels_are_debug_builds(n_debug_builds: int, n_kernels: int, told: str) -> None:
    assert debug_build_sentence(n_debug_builds, n_kernels).partition(" (")[0] == told
