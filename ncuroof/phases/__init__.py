"""Time inside a kernel: its sampled counters on one time axis, and the phases between which the use of its units changes."""

from ncuroof.phases.measured import Phased, measure_phases

__all__ = ["Phased", "measure_phases"]
