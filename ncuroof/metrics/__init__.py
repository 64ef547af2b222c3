"""From raw reports to canonical quantities in base units."""

from ncuroof.metrics.catalogue import Catalogue, load_catalogue, precisions, quantity_unit
from ncuroof.metrics.catalogue_types import Quantity
from ncuroof.metrics.code_quantities import code_of
from ncuroof.metrics.limiters import NEAR_FRAC
from ncuroof.metrics.measurements import Measurements, measure, selection
from ncuroof.metrics.quantities import largest

__all__ = [
    "NEAR_FRAC",
    "Catalogue",
    "Measurements",
    "Quantity",
    "code_of",
    "largest",
    "load_catalogue",
    "measure",
    "precisions",
    "quantity_unit",
    "selection",
]
