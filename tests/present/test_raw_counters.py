"""Counters as recorded: every value with the unit of its own report."""

from __future__ import annotations

from dataclasses import replace

from ncuroof.present.page.render import counter_parts
from tests.support.raw import raw_report


def test_each_report_keeps_its_own_units() -> None:
    # Older versions of ncu wrote durations in other units: 5 µs and 7000 ns are two columns, not one of 5 and 7000.
    older = replace(raw_report({"time": 5.0, "bytes": 1.0}), units={"time": "usecond", "bytes": "byte"})
    newer = replace(raw_report({"time": 7000.0, "bytes": 2.0}), units={"time": "ns", "bytes": "byte"})
    (part,) = counter_parts([older, newer], [0, 1])
    assert list(zip(part["names"], part["units"], strict=True)) == [
        ("bytes", "byte"),
        ("time", "ns"),
        ("time", "usecond"),
    ]
    assert part["values"] == [[1.0, None, 5.0], [2.0, 7000.0, None]]


def test_a_part_of_the_run_has_the_counters_of_its_launches() -> None:
    first, second = raw_report({"time": 1.0}, {"time": 2.0}), raw_report({"time": 3.0}, {"time": 4.0, "bytes": 8.0})
    (part,) = counter_parts([first, second], [1, 3])
    assert (part["names"], part["values"]) == (["bytes", "time"], [[None, 2.0], [8.0, 4.0]])
