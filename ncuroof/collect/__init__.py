"""From a program to a report: what to ask ncu for, running it, and saying clearly why it failed."""

REPORT_SUFFIX = ".ncu-rep"
