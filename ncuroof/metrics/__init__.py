"""From raw reports to canonical quantities in base units."""

from ncuroof.metrics.catalogue import Catalogue, load_catalogue, precisions
from ncuroof.metrics.entries import Quantity
from ncuroof.metrics.measure import NEAR_FRAC, Measurements, measure, selection
from ncuroof.metrics.quantities import largest

__all__ = [
    "NEAR_FRAC",
    "Catalogue",
    "Measurements",
    "Quantity",
    "largest",
    "load_catalogue",
    "measure",
    "precisions",
    "selection",
]
