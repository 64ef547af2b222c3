"""A step's time in words: what idles, for how long, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from ncuroof.present.page.render import render_page
from ncuroof.present.sentences.actions import outlook, together, whole
from ncuroof.present.sentences.wall_time import wall_time_lines, wall_time_tables
from ncuroof.present.texts.answer_sentences import answer_sentences
from tests.present.documents import WEIGHTING, action, document, kernel


def part(
    name: str, title: str, share_frac: float, n_gaps: float | None = None, advice: str | None = None
) -> dict[str, Any]:
    """A part of a step of 100 ms under the profiler."""
    return {
        "name": name,
        "title": title,
        "is_idle": n_gaps is not None,
        "duration_ns": 100e6 * share_frac,
        "share_frac": share_frac,
        "n_gaps": n_gaps,
        "half_in_gaps_of_ns": None,
        "during": [],
        "before": [],
        "advice": advice,
    }


PARTS = [
    part("computation", "kernels", 0.598),
    part("memory", "copies alone", 0.002, advice="Pin."),
    part("host_wait", "launches came late", 0.25, 500.0, "Launch less: compile. Or look."),
    part("first_launch", "until the first launch", 0.11, 1.0, "Load ahead."),
    part("kernel_wait", "between queued kernels", 0.04, 40.0, "Fuse."),
]


def weighting(**changes: Any) -> dict[str, Any]:
    time = {
        "source": 0,
        "profiler": "torch.profiler",
        "n_steps": 2,
        "duration_ns": 80e6,
        "profiled_ns": 100e6,
        "computation_frac": 0.7475,
        "idle_frac": 0.25,
        "batches_ns": 7e6,
        "parts": PARTS,
    }
    return WEIGHTING | {"computation_frac": 0.7475, "wall_times": [time | changes]}


def test_lines_for_the_terminal() -> None:
    assert wall_time_lines(weighting()) == (
        "a step takes 80.0 ms; the GPU is idle for 25.0 % of it",
        "under PyTorch's profiler it takes 100 ms, of which:",
        "  59.8 %  kernels",  # copies alone, 0.2 %, are no line
        "  25.0 %  idle: launches came late (500 gaps, 50.0 µs on average)",
        "          → Launch less: compile.",  # the longest part's advice, and the first sentence of it
        "  11.0 %  idle: until the first launch",
        "   4.0 %  idle: between queued kernels (40 gaps, 100 µs on average)",
        "the host waits for batches for 7.00 ms of a step",
    )


def test_long_gaps_among_short_ones_are_told() -> None:
    late = PARTS[2] | {"half_in_gaps_of_ns": 2e6}  # 500 gaps of 50 µs on average
    line = wall_time_lines(weighting(parts=[late]))[2]
    # Of 25 ms, 12.5 are in gaps of 2 ms or more: in seven at most. The 493 others share 12.5 ms: 25.4 µs.
    longer = "half of the time in at most 7 gaps of 2.00 ms or longer, the others at most 25.4 µs on average"
    assert line == f"  25.0 %  idle: launches came late (500 gaps, 50.0 µs on average, {longer})"
    one = PARTS[2] | {"n_gaps": 10.0, "half_in_gaps_of_ns": 20e6}  # the nine others share at most half of 25 ms
    longer = "half of the time in one gap of 20.0 ms or longer, the others at most 1.39 ms on average)"
    assert longer in wall_time_lines(weighting(parts=[one]))[2]
    even = PARTS[2] | {"half_in_gaps_of_ns": 200e3}
    assert wall_time_lines(weighting(parts=[even]))[2].endswith("50.0 µs on average)")


def test_a_step_that_nobody_saw_without_the_profiler() -> None:
    lines = wall_time_lines(weighting(duration_ns=100e6, idle_frac=0.4, batches_ns=0.5e6))
    assert lines[:2] == ("a step takes 100 ms; the GPU is idle for 40.0 % of it", "under PyTorch's profiler:")
    assert lines[-1].endswith("(40 gaps, 100 µs on average)")  # half a percent of waiting for batches is no line


def said(weighted: dict[str, Any] | None, actions: Sequence[dict[str, Any]] = ()) -> tuple[str, str]:
    """Return the answer of a run of one kernel with these counts."""
    analysis = document(kernel(), actions=actions)
    analysis["summary"]["weighting"] = weighted
    return answer_sentences(analysis, actions)


def test_a_whole_run() -> None:
    run = weighting(n_steps=None, duration_ns=100e6, batches_ns=None)
    assert wall_time_lines(run)[0] == (
        "the run takes 100 ms from first kernel to last (start-up and warm-up included; --step N measures a later step); "
        "the GPU is idle for 25.0 % of it"
    )
    traced = weighting(n_steps=None, duration_ns=100e6, batches_ns=None, profiler="nsys")
    assert wall_time_lines(traced)[0].startswith(
        "the run takes 100 ms from first kernel to last (start-up and warm-up included);"
    )
    assert wall_time_tables(run)[0].title == "What the GPU does during the run"
    assert said(run) == (
        "The run takes 100 ms. The GPU works for 75.0 ms (kernels and copies) and waits for 25.0 ms (25 %), mostly launches "
        "came late.",
        "That includes start-up and warm-up: ncuroof profile --step N measures a later step alone.",
    )


def test_the_pages_table_advises_where_it_pays() -> None:
    (table,) = wall_time_tables(weighting())
    assert (
        table.sentence
        == "a step takes 80.0 ms; the GPU is idle for 25.0 % of it; under PyTorch's profiler it takes 100 ms, of which:"
    )
    assert [(row.title, row.share, row.advice) for row in table.rows] == [
        ("kernels", "59.8 %", ""),
        ("copies alone", "0.2 %", ""),
        ("idle: launches came late", "25.0 %", "Launch less: compile. Or look."),
        ("idle: until the first launch", "11.0 %", "Load ahead."),
        ("idle: between queued kernels", "4.0 %", ""),  # below 5 %
    ]


def test_idle_time_is_the_answer_and_then_what_saves_most() -> None:
    lead, then = said(weighting(), _faster_kernels(0.1))
    assert lead == (
        "A step takes 80.0 ms. The GPU works for 60.0 ms (kernels and copies) and waits for 20.0 ms (25 %), "
        "mostly launches came late."
    )
    assert then.startswith("The first change below saves about ")
    idle = action(None, 20e6, title="The GPU idles: launches came late", advice="Launch less: compile. Or not.")
    assert said(weighting(), [idle])[1] == "Start there: no change to a kernel is expected to save as much."


def _faster_kernels(share_frac: float) -> list[dict[str, Any]]:
    return [action("f", title="T", share_frac=share_frac)]


def test_idle_time_is_listed_among_the_actions_by_what_it_saves() -> None:
    kernels = _faster_kernels(0.33)
    idle = action(None, 20e6, title="The GPU idles: launches came late", advice="Launch less: compile. Or not.")
    analysis = document(kernel(), actions=[idle, *kernels, action(None, 1e6, id="other")])
    analysis["summary"]["weighting"] = weighting()
    analysis["summary"]["outlook"]["n_first"] = 1
    found = outlook(analysis)
    assert [(line.number, line.finding) for line in found.actions] == [(1, ""), (2, "f"), (3, "")]
    assert (found.actions[0].expected, found.actions[0].advice) == ("10 ms", "Launch less: compile.")
    assert found.whole == "a step, 80.0 ms"
    page = render_page(analysis)
    assert "The GPU idles: launches came late" in page


def test_long_advice_is_one_line_which_terminals_break_as_they_are_wide() -> None:
    advice = "Launch less, or larger: " + "graphs, " * 10 + "batches."
    late = PARTS[2] | {"advice": f"{advice} Or look."}
    assert wall_time_lines(weighting(parts=[late]))[3] == f"          → {advice}"


def test_shorter_kernels_give_less_where_launches_come_late() -> None:
    analysis = document(kernel(), actions=_faster_kernels(0.5))
    analysis["summary"]["outlook"] |= {"joint_frac": 0.5, "joint_speedup": 1 / 0.6, "of_run_frac": 0.8}
    assert together(analysis) == "speedup of the whole run up to 1.67×"
    late, other = PARTS[2], PARTS[4]  # 25 % of the time waits for launches
    analysis["summary"]["weighting"] = weighting(parts=[late])
    assert together(analysis) == "speedup of the whole run up to 1.67×, less while the GPU waits for launches"
    analysis["summary"]["weighting"] = weighting(parts=[late | {"share_frac": 0.09}, other])
    assert together(analysis) == "speedup of the whole run up to 1.67×"


@pytest.mark.parametrize(
    ("covered_frac", "n_unmatched", "why"),
    [
        (1.0, 0, None),
        (None, 0, None),
        (0.9, 0, "10.0 % of the counting run"),
        (1.0, 2, "2 profiled launches were not in the counting run"),
    ],
)
def test_the_page_shows_a_step_and_warns_where_sums_leave_something_out(
    covered_frac: float | None, n_unmatched: int, why: str | None
) -> None:
    analysis = document(kernel())
    analysis["summary"]["weighting"] = weighting() | {"covered_frac": covered_frac, "n_unmatched": n_unmatched}
    page = render_page(analysis)
    assert '<h3 id="wall">What the GPU does during a step</h3>' in page
    assert 'idle: launches came late<br><span class="soft">Launch less: compile. Or look.</span></th>' in page
    assert '<p class="soft">The host waits for batches for 7.00 ms of a step.</p>' in page
    assert '<p class="soft">Weighted by launch counts' in page
    warnings = re.findall(r'<p class="warning" role="note">(.*?)<', page)
    assert [warning.startswith(why or "") for warning in warnings] == [True] * (why is not None)


@pytest.mark.parametrize("known", [None, weighting() | {"wall_times": []}, weighting(idle_frac=0.09)])
def test_little_idle_time_is_no_sentence(known: dict[str, Any] | None) -> None:
    assert "waits" not in said(known)[0]


def test_what_actions_save_is_a_share_of_what_was_profiled() -> None:
    assert whole({"weighting": {"covered_frac": 0.5}}) == "profiled GPU time"
    assert (
        whole({"weighting": {"covered_frac": 1.0}})
        == whole({"weighting": {"covered_frac": None}})
        == "the run's GPU time"
    )


LATE = [
    {"name": "Optimizer.step#AdamW.step", "duration_ns": 15e6, "share_frac": 0.15},
    {"name": "", "duration_ns": 6e6, "share_frac": 0.06},
    {"name": "aten::linear", "duration_ns": 3e6, "share_frac": 0.03},
    {"name": "aten::mean", "duration_ns": 1e6, "share_frac": 0.01},
]
NEXT = [{"name": "multi_tensor_apply_kernel", "duration_ns": 13e6, "share_frac": 0.13}]


def test_names_of_places_act_as_no_markup_of_a_terminal() -> None:
    late = PARTS[2] | {"during": [LATE[0] | {"name": "a\x1b[31m\ud800\n"}]}
    line = wall_time_lines(weighting(parts=[late]))[3]
    assert line == "            in a\\u001b[31m\\ud800  15.0 %"


def test_places_of_idle_time_are_told() -> None:
    late, *others = [PARTS[2] | {"during": LATE, "before": NEXT}, PARTS[4] | {"before": NEXT}]  # 25 %, and 4 %
    weighted = weighting(parts=[late, *others])
    assert wall_time_lines(weighted)[2:6] == (
        "  25.0 %  idle: launches came late (500 gaps, 50.0 µs on average)",
        "            in Optimizer.step#AdamW.step 15.0 %, not named in the trace 6.0 %, aten::linear 3.0 %",
        "          → Launch less: compile.",
        "   4.0 %  idle: between queued kernels (40 gaps, 100 µs on average)",  # too little for more
    )
    rows = wall_time_tables(weighted)[0].rows
    assert [row.places for row in rows] == [
        [
            "in Optimizer.step#AdamW.step 15.0 %, not named in the trace 6.0 %, aten::linear 3.0 %, aten::mean 1.0 %",
            "before multi_tensor_apply_kernel 13.0 %",
        ],
        [],
    ]
    nobody = weighting(parts=[late | {"during": []}])
    assert wall_time_lines(nobody)[3] == "            before multi_tensor_apply_kernel 13.0 %"


def _two_ranks(first: str, second: str) -> dict[str, Any]:
    """Two reports with counts; the GPU of the second idles for longer."""
    analysis = document(kernel())
    analysis["sources"] = [analysis["sources"][0] | {"file": name} for name in (first, second)]
    times = [weighting(source=0)["wall_times"][0], weighting(source=1, duration_ns=90e6)["wall_times"][0]]
    analysis["summary"]["weighting"] = weighting() | {"wall_times": times}
    return analysis


def test_of_several_reports_a_step_says_whose_it_is() -> None:
    analysis = _two_ranks("rank0.ncu-rep", "rank1.ncu-rep")
    lines = wall_time_lines(analysis["summary"]["weighting"], ["rank0.ncu-rep", "rank1.ncu-rep"])
    assert [lines[at : at + 2] for at, line in enumerate(lines) if line.startswith("rank")] == [
        ("rank0.ncu-rep:", "a step takes 80.0 ms; the GPU is idle for 25.0 % of it"),
        ("rank1.ncu-rep:", "a step takes 90.0 ms; the GPU is idle for 25.0 % of it"),
    ]
    page = render_page(analysis)
    assert re.findall(r"<h3[^>]*>(What the GPU does[^<]*)<", page) == [
        "What the GPU does during a step of rank0.ncu-rep",
        "What the GPU does during a step of rank1.ncu-rep",
    ]
    assert "<p>A step of rank1.ncu-rep takes 90.0 ms; the GPU is idle" in page
    assert ">A step of rank1.ncu-rep takes 90.0 ms. The GPU works for" in page


def test_reports_of_the_same_name_have_numbers() -> None:
    page = render_page(_two_ranks("run.ncu-rep", "run.ncu-rep"))
    assert "What the GPU does during a step of run.ncu-rep (report 2)<" in page


@pytest.mark.parametrize(("timed_frac", "is_first"), [(0.5, True), (None, True), (0.49, False)])
def test_a_step_of_little_of_the_gpu_time_is_not_told_first(timed_frac: float | None, is_first: bool) -> None:
    analysis = document(kernel(), actions=_faster_kernels(0.1))
    analysis["summary"]["weighting"] = weighting(idle_frac=0.6) | {"timed_frac": timed_frac}
    assert ("waits for" in answer_sentences(analysis, [])[0]) is is_first
    assert wall_time_lines(analysis["summary"]["weighting"])[0].startswith("a step takes 80.0 ms")
