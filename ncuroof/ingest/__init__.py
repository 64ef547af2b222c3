"""Reads a report file into a `RawReport`: recognises the file, checks that it is complete, and extracts its contents."""

from ncuroof.ingest.code.static_code import BY_LANE
from ncuroof.ingest.embedded_charts import ChartPair, ChartValue, EmbeddedChart
from ncuroof.ingest.many_reports import available_cores, open_reports
from ncuroof.ingest.raw_report import CounterSelection, RawReport
from ncuroof.ingest.readers import READERS, ReaderName
from ncuroof.ingest.report_files import open_report

__all__ = [
    "BY_LANE",
    "READERS",
    "ChartPair",
    "ChartValue",
    "CounterSelection",
    "EmbeddedChart",
    "RawReport",
    "ReaderName",
    "available_cores",
    "open_report",
    "open_reports",
]
