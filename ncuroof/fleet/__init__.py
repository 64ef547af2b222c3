"""Many reports → a dataset's rows, and what they answer together."""

from ncuroof.fleet.rows import Origin, fleet_rows, of_source
from ncuroof.fleet.tables import FLEET, FLEET_FAILURES, SCHEMA

__all__ = ["FLEET", "FLEET_FAILURES", "SCHEMA", "Origin", "fleet_rows", "of_source"]
