"""Units of counters are known from their names, and what no pattern fits has none that is known."""

from __future__ import annotations

import pytest

from ncuroof.ingest.native.reader import unit_of
from ncuroof.metrics.measurements import scale, selection


@pytest.mark.parametrize(
    ("counter", "unit"),
    [
        ("gpu__time_duration.sum", "ns"),
        ("dram__bytes.sum.per_second", "byte/s"),
        ("dram__bytes.sum.peak_sustained", "byte/cycle"),
        ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
        ("lts__t_sector_hit_rate.pct", "%"),
        ("sm__cycles_elapsed.avg.per_second", "hz"),
        ("sm__cycles_elapsed.max", "cycle"),
        ("smsp__inst_executed.sum", "inst"),
        ("sm__inst_executed.avg.per_cycle_elapsed", "inst/cycle"),
        ("sm__ops_path_tensor_src_of_tomorrow.sum.per_second", ""),
        ("launch__registers_per_thread", "register/thread"),
        ("launch__shared_mem_per_block_static", "byte/block"),
        ("smsp__average_data_of_tomorrow.ratio", None),
        ("tomorrow__made_up.sum", None),
        ("gpu__time_duration.sum.per_fortnight", None),
        ("", None),
        ("x" * 100_000 + ".sum", None),
    ],
)
def test_units_follow_from_names(counter: str, unit: str | None) -> None:
    assert unit_of(counter) == unit


def test_every_counter_of_the_catalogue_has_a_unit_that_can_be_scaled() -> None:
    for counter in selection().names:
        unit = unit_of(counter)
        assert unit is not None, counter
        assert scale(unit, metric=counter) > 0
