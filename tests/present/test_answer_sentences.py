"""The answer of a run in two sentences; what they say is worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ncuroof.present.sentences.actions import worth_a_row
from ncuroof.present.texts.answer_sentences import answer_sentences
from tests.present.documents import action, document, kernel, saving, unknown_kernel

FINDING = {
    "id": "dram_roof", "title": "It runs close to what DRAM can deliver", "severity": "low",
    "advice": "Move fewer bytes. If it cannot, it is done.", "evidence": [], "is_most_worth": True, "gain_basis": None,
    "expected_basis": None, "waste": {},
} | saving(None)  # fmt: skip


def said(*kernels: dict[str, Any], **changes: Any) -> tuple[str, str]:
    found = document(*kernels, **changes)
    return answer_sentences(found, worth_a_row(found))


def test_a_run_is_told_with_what_limits_most_of_it_and_what_saves_most() -> None:
    kernels = [
        kernel(id=0, duration_ns=300.0),
        kernel(id=1, duration_ns=350.0),
        kernel(id=2, duration_ns=250.0, verdict="latency", limiter="tail"),
    ]
    lead, then = said(*kernels, actions=[action("dram_roof", 450.0)])
    assert lead == "3 launches take 900 ns of GPU time, 72 % of it limited by memory."
    assert then == "The first change below saves about 220 ns, at most 450 ns."


def test_what_limits_less_than_half_is_not_told_first() -> None:
    kernels = [
        kernel(id=each, duration_ns=100.0, verdict=verdict)
        for each, verdict in enumerate(("memory", "compute", "latency"))
    ]
    assert said(*kernels)[0] == "3 launches take 300 ns of GPU time."


def test_a_single_kernel_is_told_by_its_name_and_in_plain_words() -> None:
    waiting = kernel(id=0, short_name="k", duration_ns=5e4, verdict="latency", limiter="long_scoreboard")
    assert said(waiting)[0] == "k takes 50.0 µs; it is latency-bound: waits for data from memory: long scoreboard."


def test_what_a_report_lacks_comes_first_with_one_command() -> None:
    unknown = {"n_kernels": 1, "n_launches": 1, "duration_ns": 9e5, "share_frac": 0.9}
    found = document(unknown_kernel(id=0, duration_ns=9e5), kernel(id=1, duration_ns=1e5))
    found["summary"]["by_verdict"] = {"unknown": unknown, "memory": unknown | {"share_frac": 0.1}}
    lead, then = answer_sentences(found, [])
    assert lead.startswith("The report lacks the counters that say what limits the kernels for 90 % of the GPU time.")
    assert "of GPU time" in then


def test_without_times_nothing_is_said_to_be_near_a_roof() -> None:
    untimed = kernel(id=0, duration_ns=None, min_time_ns=None, recoverable_ns=None, findings=[FINDING])
    lead, then = said(untimed)
    assert lead == "One launch; the report does not say how long it takes."
    assert then == "It is memory-bound; without a duration, what can be saved is not known. To do: Move fewer bytes."


@pytest.mark.parametrize("has_selection", [True, False])
def test_a_run_without_measured_launches(has_selection: bool) -> None:
    found = document(kernel(id=0, failed=True, verdict="unknown", limiter=None))
    found["summary"] |= {"n_kernels": 1, "n_failed": 1}
    if has_selection:
        found["summary"]["selection"] = {}
    assert answer_sentences(found, [])[0].startswith(
        "None of the selected" if has_selection else "No launch was measured"
    )
