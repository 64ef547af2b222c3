"""From a program to a report: decide what to ask ncu for, run it, and explain failures."""
