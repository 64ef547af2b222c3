"""Rows of quantities that have a value, and what is said of those that have none."""

from __future__ import annotations

from ncuroof.diagnosis import load_rules
from ncuroof.metrics import load_catalogue
from ncuroof.present.page.quantity_cells import ACCESS, QuantityCells
from ncuroof.present.page.text_table import Texts
from tests.present.documents import kernel

NO_VALUE = "No value (not collected, not available on this chip, or a ratio with a zero denominator)"


def test_a_share_of_nothing_is_not_said_to_be_missing() -> None:
    texts = Texts()
    cells = QuantityCells(load_rules(), load_catalogue(), texts)
    # Two sectors per load, no store at all, on a chip without asynchronous copies
    access = {"load_sectors_per_request": 2.0, "store_sectors_per_request": None, "async_copy_bytes": None}
    value, note = cells.shown(kernel(access=access), ACCESS)
    assert value[1] == "2"
    assert texts.table()[note[0]] == f"{NO_VALUE}: store sectors per request, async copy bytes."
    bars = cells.bars(kernel(utilisation={"dram": 0.5, "l2": 0.0, "fp16": None}), "utilisation")
    assert [texts.table()[row[0]] for row in bars[1:]] == ["Measured as zero: L2.", f"{NO_VALUE}: FP16."]
