"""Many reports → a dataset's rows, and what they answer together."""

from ncuroof.fleet.rows import FLEET, FLEET_FAILURES, SCHEMA, Origin, fleet_rows, of_source

__all__ = ["FLEET", "FLEET_FAILURES", "SCHEMA", "Origin", "fleet_rows", "of_source"]
