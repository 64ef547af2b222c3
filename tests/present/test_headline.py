"""The run in three sentences; what they say is worked out by hand."""

from __future__ import annotations

import pytest

from ncuroof.diagnosis import load_rules
from ncuroof.present.page.headline import headline
from tests.present import documents
from tests.present.documents import document, kernel, saving, unknown_kernel


def finding(gain_ns, **changes):
    return {
        "id": "dram_roof",
        "title": "It runs close to what DRAM can deliver",
        "severity": "low",
        "advice": "Move fewer bytes. If it cannot, it is done.",
        "evidence": [],
        **saving(gain_ns),
        "is_most_worth": gain_ns is not None,
        "gain_basis": None,
        "expected_basis": None,
        "waste": {},
    } | changes


def action(share_frac, name="dram_roof", n_launches=1):
    return documents.action(name, share_frac=share_frac, n_launches=n_launches)


def said(*kernels, joint=(None, None), debug_build_frac=0.0, **changes):
    """The headline of a run whose first actions save this share of the time together, and give this speedup."""
    found = document(*kernels, **changes)
    found["summary"]["outlook"] |= dict(zip(("joint_frac", "joint_speedup"), joint, strict=True))
    found["summary"]["debug_build_frac"] = debug_build_frac
    return headline(found, load_rules())


def test_what_bounds_the_run_is_told_with_its_share_and_what_limits_most():
    kernels = [
        kernel(id=0, duration_ns=300.0, limiter="l2"),
        kernel(id=1, duration_ns=350.0, limiter="dram"),
        kernel(id=2, duration_ns=250.0, verdict="latency", limiter="tail"),
        kernel(id=3, duration_ns=100.0, verdict="compute", limiter="fp32"),
    ]
    assert said(*kernels)[0] == "65.0 % of GPU time is memory-bound (mostly DRAM), 25.0 % latency-bound."


def test_a_stall_reason_is_told_in_plain_words_too():
    waiting = kernel(id=0, verdict="latency", limiter="long_scoreboard")
    assert said(waiting)[0] == "100 % of GPU time is latency-bound (waits for data from memory: long scoreboard)."


def test_one_limiter_is_not_mostly_and_little_is_left_to_the_bar():
    kernels = [kernel(id=0, duration_ns=950.0), kernel(id=1, duration_ns=50.0, verdict="compute")]
    assert said(*kernels)[0] == "95.0 % of GPU time is memory-bound (DRAM)."


def test_the_first_thing_to_do_is_told_in_the_words_that_give_most_and_for_the_launches_of_that_kernel():
    widen = "Widen the loads. And more."
    kernels = [
        kernel(id=0, short_name="largest", duration_ns=100.0, findings=[finding(40.0)]),
        kernel(id=1, short_name="large", duration_ns=50.0, findings=[finding(30.0, advice=widen)]),
        kernel(id=2, short_name="large", duration_ns=50.0, findings=[finding(20.0, advice=widen + " And no more.")]),
        kernel(id=3, short_name="other", duration_ns=0.0, findings=[finding(9.0, advice=widen)]),
    ]
    _, first, gives = said(*kernels, actions=[action(0.45, n_launches=3), action(0.05, "tail_wave")], joint=(0.5, 2.0))
    assert first == "Start with large and 1 other launch: Widen the loads."
    # 30 + 20 of 200 ns
    assert gives == (
        "That saves about 12 %, at most 25.0 % of GPU time (45.0 % with the same finding in 1 more launch); "
        "the top 2 changes, together at most 50.0 %: speedup up to 2×."
    )
    alone = said(*kernels, actions=[action(0.45, n_launches=3)], joint=(0.45, 1.82))[2]
    assert alone == (
        "That saves about 12 %, at most 25.0 % of GPU time (45.0 % with the same finding in 1 more launch): speedup up to 1.82×."
    )


def test_one_thing_to_do_is_not_summed_up_with_others():
    gives = said(kernel(duration_ns=20.0, findings=[finding(10.0)]), actions=[action(0.5)], joint=(0.5, 2.0))[2]
    assert gives == "That saves about 25 %, at most 50.0 % of GPU time: speedup up to 2×."


def test_where_launches_were_counted_each_counts_with_those_that_it_stands_for():
    counted = {"n_represented": 8.0, "weight": 4.0, "duration_ns": 100.0}
    _, first, gives = said(kernel(findings=[finding(10.0)], **counted), actions=[action(0.1, n_launches=8)])
    assert first == "Start with saxpy and 7 other launches: Move fewer bytes."
    # 4 · 10 ns of what the document says is 100 ns
    assert gives.startswith("That saves about 20 %, at most 40.0 % of GPU time")


def test_without_a_gain_the_longest_kernels_advice_is_told():
    kernels = [
        kernel(id=0, short_name="short", duration_ns=1.0),
        kernel(id=1, short_name="long", duration_ns=2.0, findings=[finding(None)]),
    ]
    assert said(*kernels)[1:] == ("Start with long, the longest kernel: Move fewer bytes.",)


def test_without_findings_it_is_told_how_to_record_more():
    lacking = [{"quantity": "stalls", "collect": "--section WarpStateStats"}]
    assert said(kernel(findings=[], missing=lacking))[1:] == (
        "To learn more, record again with ncu --section WarpStateStats.",
    )


def test_where_most_has_no_verdict_it_is_told_what_to_collect_beside_what_to_do():
    lacking = [{"quantity": "utilisation.memory", "collect": "--section SpeedOfLight"}]
    kernels = [
        kernel(id=0, duration_ns=600.0, verdict="unknown", limiter=None, missing=lacking),
        kernel(id=1, duration_ns=100.0, verdict="unknown", limiter=None, missing=[]),
        kernel(id=2, duration_ns=300.0, findings=[finding(30.0)]),
    ]
    first, then, _ = said(*kernels, actions=[action(0.03, "dram_roof")])
    assert (
        first == "For 70.0 % of GPU time, the report lacks the counters for a verdict: collect --section SpeedOfLight."
    )
    assert then.startswith("Start with ")


PRINT = "To learn more, print the raw page, which holds everything that was collected: ncu --page raw --csv (--import REPORT)."


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        (["SpeedOfLight", "WarpStateStats"], PRINT),  # the details page prints no stalls of it
        (
            ["SpeedOfLight", "Occupancy"],
            "To learn more, record again with ncu --section WarpStateStats --metrics a__b.sum.",
        ),
        (
            ["Command line profiler metrics"],
            "To learn more, record again with ncu --section WarpStateStats --metrics a__b.sum.",
        ),
        (
            [],
            "To learn more, record again with ncu --section WarpStateStats --metrics a__b.sum.",
        ),  # the raw page itself
    ],
)
def test_the_raw_page_is_asked_for_where_it_holds_what_is_missing(sections: list[str], sentence: str):
    lacking = [
        {"quantity": "stalls", "collect": "--section WarpStateStats"},
        {"quantity": "x", "collect": "--metrics a__b.sum"},
    ]
    printed = kernel(findings=[], caveats=["printed_table"], missing=lacking)
    source = document(printed)["sources"][0] | {"sections": sections}
    assert said(printed, sources=[source])[1:] == (sentence,)
    recorded = kernel(findings=[], missing=lacking)
    assert said(recorded, sources=[source])[1].startswith("To learn more, record again")


def test_a_run_of_which_nothing_is_known_is_left_alone():
    assert said(unknown_kernel()) == ()
    assert said() == ()


def test_time_that_the_report_does_not_explain_is_told_as_such():
    kernels = [kernel(id=0, duration_ns=750.0, verdict="unknown", limiter=None), kernel(id=1, duration_ns=250.0)]
    assert said(*kernels)[0] == "For 75.0 % of GPU time, the report lacks the counters for a verdict."


def test_where_most_of_the_time_is_in_debug_builds_these_come_first_and_no_gain_is_told():
    debug = finding(None, id="debug_build", advice="Build it with optimisation before anything else. Always.")
    slow = {"short_name": "slow", "check": {"debug_build": 1.0}, "findings": [debug]}
    kernels = [kernel(id=0, duration_ns=300.0, **slow), kernel(id=1, duration_ns=200.0, findings=[finding(40.0)])]
    sentences = said(*kernels, actions=[action(0.08)], debug_build_frac=0.6)[1:]
    assert sentences == ("Start with slow, the longest debug build: Build it with optimisation before anything else.",)
    assert said(*kernels, actions=[action(0.08)], debug_build_frac=0.5)[1].startswith(
        "Start with saxpy: Move fewer bytes."
    )


def test_where_most_of_the_time_has_no_verdict_what_to_collect_is_said_and_no_kernel_to_start_with():
    unknown = kernel(
        id=0,
        duration_ns=98.0,
        verdict="unknown",
        limiter=None,
        missing=[{"quantity": "duration_ns", "collect": "--set full"}],
    )
    found = document(unknown, kernel(id=1, duration_ns=2.0, findings=[finding(0.1)]), actions=[action(0.001)])
    found["summary"]["outlook"] |= {"joint_frac": None, "joint_speedup": None, "is_mostly_unjudged": True}
    found["summary"]["debug_build_frac"] = 0.0
    sentences = headline(found, load_rules())
    assert not any("tart with" in sentence for sentence in sentences)
    assert "lacks the counters for a verdict" in sentences[0]


def test_without_times_the_verdict_is_said_and_that_savings_are_not_known():
    (sentence, *_) = said(kernel(duration_ns=None, limiter=None))
    assert sentence == "memory-bound; without a duration, what can be saved is not known."
