"""From raw reports to canonical quantities in base units."""

from ncuroof.metrics.catalogue import Catalogue, load_catalogue
from ncuroof.metrics.measure import Measurements, measure, selection

__all__ = ["Catalogue", "Measurements", "load_catalogue", "measure", "selection"]
