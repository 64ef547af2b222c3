"""Files that belong to a report: counts of launches, traces of the same program, measured roofs of its GPU."""
