"""What a fleet answers, in words."""

from __future__ import annotations

from ncuroof.fleet import FLEET_FAILURES
from ncuroof.fleet.questions import across_gpus, by_time, code_versions, overview
from ncuroof.present.documents.fleet import fleet_document
from ncuroof.present.texts.fleet import to_text
from tests.fleet.launches import fleet, launch


def test_launches_that_are_left_out_are_counted_in_words() -> None:
    rows = fleet(launch("a", 0, 100.0), launch("a", 0, 1.0, failed=True), launch("a", 0, 1.0, duration_ns=None))
    failures = FLEET_FAILURES.to_frame()
    text = to_text(
        fleet_document(
            "runs", overview(rows), by_time(rows), across_gpus(rows), [], code_versions(rows), failures, top=3
        )
    )
    assert "not included: one launch that failed to profile, 1 without a time\n" in text
