"""The charts that a report carries, read from reports that the writer wrote, sound and hostile."""

from __future__ import annotations

from ncuroof.ingest import embedded_charts
from ncuroof.ingest.embedded_charts import ChartValue, EmbeddedChart, counters_of, read_charts
from ncuroof.ingest.framing import walk
from tests.support.report_writer import Kernel, PerCycle, RooflineChart, RooflinePair, Section, write_report
from tests.support.wire_encoder import message

ROOF = RooflinePair(PerCycle(("a.peak", "b.peak"), "clock"), "dram.peak", "DRAM Roofline")
POINT = RooflinePair(PerCycle(("a", "b"), "clock"), PerCycle(("dram",), "dram.clock"), "DRAM Achieved Value")
CHART = RooflineChart("Floating Point Operations Roofline", roofs=(ROOF,), points=(POINT,))


def charts_of(*kernels: Kernel) -> tuple[EmbeddedChart, ...]:
    content = write_report(kernels)
    return read_charts(content, walk(content))


def with_charts(*charts: RooflineChart) -> Kernel:
    return Kernel("k", {"a": 1.0}, sections=(Section("SpeedOfLight_RooflineChart", charts=charts),))


def test_a_chart_is_read_as_it_was_written() -> None:
    (chart,) = charts_of(with_charts(CHART))
    assert (chart.section, chart.title) == ("SpeedOfLight_RooflineChart", "Floating Point Operations Roofline")
    (roof,), (point,) = chart.roofs, chart.points
    assert roof.label == "DRAM Roofline"
    assert roof.work == ChartValue((("a.peak",), ("b.peak",)), ("clock",))
    assert roof.traffic == ChartValue((("dram.peak",),), None)
    assert point.traffic == ChartValue((("dram",),), ("dram.clock",))
    assert counters_of([chart]) == {"a.peak", "b.peak", "clock", "dram.peak", "a", "b", "dram", "dram.clock"}


def test_charts_of_every_kind_of_workload_are_read() -> None:
    for kind in ("kernel", "range", "graph", "cmdlist"):
        section = Section("SpeedOfLight_RooflineChart", charts=(CHART,))
        assert len(charts_of(Kernel("k", {"a": 1.0}, kind=kind, sections=(section,)))) == 1


def test_a_first_kernel_without_charts_is_passed_over() -> None:
    assert len(charts_of(Kernel("failed", {"a": 1.0}), with_charts(CHART), with_charts(CHART))) == 1


def test_a_constant_is_not_a_counter() -> None:
    pair = RooflinePair(2.5, "dram", "DRAM")
    (chart,) = charts_of(with_charts(RooflineChart("title", roofs=(pair,), points=(POINT,))))
    assert (len(chart.roofs), len(chart.points)) == (0, 1)


def test_a_file_that_names_counters_without_end_is_read_without_its_charts() -> None:
    pairs = tuple(RooflinePair(f"work{number}", f"traffic{number}", "DRAM") for number in range(2049))
    assert charts_of(with_charts(RooflineChart("title", roofs=pairs))) == ()


def test_a_truncated_section_gives_no_charts_and_no_error() -> None:
    content = bytearray(write_report([with_charts(CHART)]))
    where = content.index(b"DRAM Roofline")
    for damaged in range(where - 40, where):
        broken = bytearray(content)
        broken[damaged] ^= 0x5A
        for chart in read_charts(bytes(broken), walk(bytes(broken))):
            assert isinstance(chart, EmbeddedChart)


def test_items_nested_without_end_are_followed_no_deeper_than_charts_are() -> None:
    # A body (5) of items (1) in items (5): each level is a message in a message.
    nested = b""
    for _ in range(2000):
        nested = message(1, message(5, nested))
    section = memoryview(message(5, nested))
    assert list(embedded_charts._of_section(section)) == []
