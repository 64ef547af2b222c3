"""What is said of debug builds."""

from __future__ import annotations

import pytest

from ncuroof.present.sentences.remarks import debug_build_sentence

COMPILED = "compiled for debugging (nvcc -G), without optimisation"


def said(n_debug_builds: int, n_kernels: int, share_frac: float | None) -> str:
    summary = {"n_debug_builds": n_debug_builds, "n_kernels": n_kernels, "debug_build_frac": share_frac}
    return debug_build_sentence(summary)


@pytest.mark.parametrize(
    ("n_debug_builds", "share_frac", "sentence"),
    [
        (0, 0.0, ""),
        (3, 1.0, f"all 3 kernels were {COMPILED}: rebuild with optimisation and record again before anything else"),
        (
            2,
            0.943,
            f"2 of 3 kernels were {COMPILED}, and take 94.3 % of GPU time: "
            "rebuild with optimisation and record again before anything else",
        ),
        (
            1,
            0.05,
            f"1 of 3 kernels was {COMPILED}, and takes 5.0 % of GPU time: "
            "rebuild it with optimisation and record again before changing it",
        ),
        (
            2,
            None,
            f"2 of 3 kernels were {COMPILED}: rebuild them with optimisation and record again before changing them",
        ),
    ],
)
def test_how_much_is_of_debug_builds_and_what_comes_before_what(
    n_debug_builds: int, share_frac: float | None, sentence: str
) -> None:
    assert said(n_debug_builds, 3, share_frac) == sentence


def test_one_kernel_or_two_are_not_counted() -> None:
    assert said(1, 1, None).startswith(f"the kernel was {COMPILED}: rebuild with")
    assert said(2, 2, 1.0).startswith(f"both kernels were {COMPILED}: rebuild with")
