"""From raw reports to canonical quantities in base units."""

from ncuroof.metrics.catalogue import Catalogue, load_catalogue, precisions, quantity_unit
from ncuroof.metrics.catalogue_types import Quantity
from ncuroof.metrics.code_quantities import code_of
from ncuroof.metrics.limiters import NEAR_FRAC
from ncuroof.metrics.measurements import Measurements, measure, selection
from ncuroof.metrics.quantities import MEANINGFUL_STALLS_EXCEPT, CounterTable, add_quantities, largest

__all__ = [
    "MEANINGFUL_STALLS_EXCEPT",
    "NEAR_FRAC",
    "Catalogue",
    "CounterTable",
    "Measurements",
    "Quantity",
    "add_quantities",
    "code_of",
    "largest",
    "load_catalogue",
    "measure",
    "precisions",
    "quantity_unit",
    "selection",
]
