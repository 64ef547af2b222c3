"""Record a report of a program: decide what ncu is to collect, run ncu, and explain its failures."""
