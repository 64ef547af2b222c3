"""The simulated run before and after some work on it: each change that was planted is found, shown and explained, and no other."""

from __future__ import annotations

import pytest

import ncuroof
from ncuroof.comparison import compare
from ncuroof.present.documents.comparison import comparison_document
from tests.support import demo

# name before: by what it is matched, time after over before, what explains it, as demo_mended.py plants it
PLANTED = {
    "sgemm_naive_vec4": ("version", 4_000_000 / 11_670_016, "traffic_bytes.l1"),
    "copy_strided": ("version", 500_000 / 1_080_000, "traffic_bytes.l2"),
    "transpose_tile32": ("variant", 128_000 / 304_992, "access.bank_conflict_frac"),
    "lennard_jones_fp64": ("same", 1_600_000 / 2_500_000, "instructions.warp_executed"),
    "multi_tensor_apply_kernel": ("same", 698_880 / 652_288, "traffic_bytes.dram"),
}


@pytest.mark.long
def test_what_was_planted_is_told_and_nothing_else() -> None:
    sides = [ncuroof.read(path).analyse().run() for path in (demo.REPORT, demo.REPORT_MENDED)]
    document = comparison_document(compare(*sides))
    assert (document["added"], document["removed"]) == ([], [])
    assert [document[side]["is_simulated"] for side in ("before", "after")] == [True, True]
    moved = {match["before"][0]["short_name"]: match for match in document["matches"] if match["is_significant"]}
    assert moved.keys() == PLANTED.keys()
    for name, (how, ratio, explanation) in PLANTED.items():
        assert moved[name]["how"] == how
        assert moved[name]["change_frac"] == pytest.approx(ratio - 1)
        assert explanation in [change["quantity"] for change in moved[name]["changes"] if change["explains"]]
