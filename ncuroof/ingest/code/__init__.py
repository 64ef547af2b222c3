"""Analyses the machine code in a report: source lines, dependencies between instructions, debug builds, unused thread indices."""
