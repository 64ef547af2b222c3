"""Demand: what a launch needs of every resource, and what a change of that saves."""

from ncuroof.demand.fix import Fix, read_fix
from ncuroof.demand.resources import load_model
from ncuroof.demand.times import SAVINGS, WAITING, gain, with_demand, with_savings

__all__ = ["SAVINGS", "WAITING", "Fix", "gain", "load_model", "read_fix", "with_demand", "with_savings"]
