"""Test kernels: a pytest fixture that profiles a function, and assertions on the performance of its kernels.

    from ncuroof.testing import assert_kernel

    def test_rmsnorm(ncuroof_profile):
        report = ncuroof_profile(rmsnorm, x, weight)
        assert assert_kernel(report, "rmsnorm").roof_frac >= 0.7

The import is cheap, because pytest imports the package at every start.
"""

from ncuroof.testing.kernels import Kernel, Report, assert_kernel

__all__ = ["Kernel", "Report", "assert_kernel"]
