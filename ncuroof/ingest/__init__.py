"""From a file to a `RawReport`: what it is, whether it is whole, and what it holds."""

from ncuroof.ingest.embedded_charts import ChartPair, ChartValue, EmbeddedChart
from ncuroof.ingest.open_report import ReportReader, open_report
from ncuroof.ingest.raw_report import CounterSelection, RawReport

__all__ = [
    "ChartPair",
    "ChartValue",
    "CounterSelection",
    "EmbeddedChart",
    "RawReport",
    "ReportReader",
    "open_report",
]
