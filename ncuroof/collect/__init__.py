"""From a program to a report: what to ask ncu for, running it, and saying clearly why it failed."""

REPORT_SUFFIX = ".ncu-rep"

COMPRESSED_SUFFIX = ".ncu-repz"
"""Of what ncu writes by itself since 2026 (seen of 2026.3), where it is given a name without a suffix."""

REPORT_SUFFIXES = (REPORT_SUFFIX, COMPRESSED_SUFFIX)
