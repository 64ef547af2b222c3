"""Rows of a dataset of many reports, and the questions that they answer together."""

from ncuroof.fleet.rows import FLEET, FLEET_FAILURES, SCHEMA, Origin, fleet_rows, of_source

__all__ = ["FLEET", "FLEET_FAILURES", "SCHEMA", "Origin", "fleet_rows", "of_source"]
