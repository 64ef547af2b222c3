from __future__ import annotations

import pytest

from ncuroof.errors import UnitError
from ncuroof.metrics.measurements import scale


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("", 1), ("%", 0.01), ("ns", 1), ("usecond", 1e3), ("ms", 1e6), ("s", 1e9),
        ("byte", 1), ("Kbyte", 1e3), ("Gbyte/s", 1e9), ("Mbyte", 1e6), ("byte/cycle", 1),
        ("hz", 1), ("Khz", 1e3), ("Mhz", 1e6), ("Ghz", 1e9), ("inst/cycle", 1), ("sector", 1), ("warp", 1), ("1/s", 1),
        ("byte/sector", 1), ("sector/request", 1), ("inst/warp", 1), ("register/thread", 1), ("byte/block", 1),
        ("Kbyte/block", 1e3), ("Tbyte/s", 1e12), ("%/register", 0.01), ("%/byte", 0.01), ("warp/s", 1),
    ],
)  # fmt: skip
def test_units_scale_to_base_units(unit: str, factor: float) -> None:
    assert scale(unit, metric="any__metric.sum") == factor


def test_unknown_unit_is_named_and_not_guessed() -> None:
    with pytest.raises(UnitError, match=r"furlong.*odd__metric"):
        scale("furlong", metric="odd__metric.sum")


@pytest.mark.parametrize(
    "metric",
    [
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "l1tex__t_sector_hit_rate.pct",
        "sm__maximum_warps_per_active_cycle_pct",
    ],
)
def test_percentages_are_told_by_name_where_the_chip_is_not_known(metric: str) -> None:
    assert scale("", metric=metric) == 0.01


def test_counters_that_only_look_like_percentages_are_not() -> None:
    assert scale("", metric="sm__inst_executed.avg.per_cycle_active") == 1
