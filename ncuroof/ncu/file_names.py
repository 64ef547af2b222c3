"""Names of ncu's report files."""

from __future__ import annotations

REPORT_SUFFIX = ".ncu-rep"

COMPRESSED_SUFFIX = ".ncu-repz"
"""Suffix of ncu's compressed reports, the default since 2026 (seen with 2026.3) for a report named without a suffix."""

REPORT_SUFFIXES = (REPORT_SUFFIX, COMPRESSED_SUFFIX)


def without_suffix(name: str) -> str:
    """Return a report's file name without its suffix, if it has one."""
    return next((name.removesuffix(suffix) for suffix in REPORT_SUFFIXES if name.endswith(suffix)), name)
