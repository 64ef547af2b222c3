"""A comparison for people: what is said where runs do not launch the same, and by what kernels were matched."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from ncuroof.comparison import GateResult, compare
from ncuroof.diagnosis import UnprofiledLaunches
from ncuroof.formatting import MISSING
from ncuroof.present.documents.comparison import comparison_document
from ncuroof.present.page.changes import changes
from ncuroof.present.source_tree import NO_TREE
from ncuroof.present.texts.comparison import SCREEN, to_annotations, to_markdown, to_text
from tests.comparison.runs import SETUP, launch, run


def text_lines(before: list[dict[str, object]], after: list[dict[str, object]]) -> list[str]:
    document = comparison_document(compare(run(*before), run(*after)))
    return [line.strip() for line in to_text(document).splitlines()]


def test_a_run_of_more_launches_is_not_called_slower_without_a_word() -> None:
    lines = text_lines([launch("a", 300.0)], [launch("a", 200.0)] * 3)
    # 300 µs before, 600 µs after; a launch of 300 µs takes 200 µs
    assert "the run is 2× slower" in lines
    assert lines[1] == "launch for launch, over the kernels that both runs launched: 1.5× faster"
    same = text_lines([launch("a", 300.0)], [launch("a", 200.0)])
    assert not any(line.startswith("launch for launch") for line in same)


def test_what_ran_at_another_clock_is_shown_with_what_carries_over() -> None:
    slow, fast = {"sm_clock_hz": 1.2e9}, {"sm_clock_hz": 1.5e9}
    before = [launch("a", 1e4, **slow), launch("b", 1e4, **slow)]
    lines = text_lines(before, [launch("a", 7e3, **fast, **{"traffic_bytes.dram": 5e5}), launch("b", 8e3, **fast)])
    assert "0 kernels faster, 0 slower, 0 unchanged, 2 at another SM clock, 0 added, 0 removed" in lines
    said = " ".join(lines[lines.index("a") :])
    assert said.startswith(
        "a times are not compared, as the SM clock differs by 25.0 % (1200 MHz → 1500 MHz); DRAM bytes −50.0 %"
    )  # and no times
    assert "b" not in lines  # nothing else changed


def test_where_times_are_not_compared_none_stands_before_and_after() -> None:
    other = replace(SETUP, gpus=("NVIDIA B200",))
    before = run(launch("a", 200.0, **{"traffic_bytes.dram": 1e8}))
    document = comparison_document(compare(before, run(launch("a", 100.0, **{"traffic_bytes.dram": 5e7}), setup=other)))
    for text in (to_text(document), to_markdown(document)):
        assert text.count("times are not compared") == 1  # once for all, and not with every kernel
        assert "µs → " not in text
        assert "| 200 µs" not in text
    shown = changes(document)
    (line,) = shown.folded
    assert shown.lines == []
    assert shown.fold == "1 kernel whose times are not compared"
    assert (line.before, line.after, line.recoverable) == ("—", "—", "—")
    assert line.sentence == "DRAM bytes −50.0 %"


def test_kernels_that_may_belong_together_come_with_the_option_that_compares_them() -> None:
    heavy = {"work.fp32.flop": 7e9}
    document = comparison_document(
        compare(
            run(launch("a"), launch("sort", **heavy), launch("scan", **heavy)),
            run(launch("a"), launch("merge", **heavy)),
        )
    )
    said = " ".join(to_text(document).split())
    option = "compare them with --pair sort=merge"
    assert f"perhaps sort → merge (the same shape; the same FLOPs per launch): {option}" in said
    assert "\\-\\-pair sort=merge" in to_markdown(document) or "--pair sort=merge" in to_markdown(document)
    assert [each["pair"] for each in document["candidates"]] == ["sort=merge", "scan=merge"]


def test_another_amount_of_work_is_told() -> None:
    small = launch("a", 100.0, **{"work.fp32.flop": 1e9 / 64, "traffic_bytes.dram": 1e6 / 64})
    lines = text_lines([launch("a", 4000.0)], [small])
    assert "note: a does a different amount of work (FLOPs ×0.0156): is the input the same?" in lines
    half = launch("a", 100.0, **{"work.fp32.flop": 0.5e9})
    assert not any("amount of work" in line for line in text_lines([launch("a", 200.0)], [half]))


def test_launches_that_failed_are_told_and_keep_the_run_from_being_compared() -> None:
    lines = text_lines([launch("a"), launch("b")], [launch("a"), launch("b", None, failed=True)])
    assert "after:  run · NVIDIA H200 · 2 launches, 1 of them failed to profile, 100 µs" in lines
    assert "sums over the whole runs say nothing: b failed to profile after" in lines
    assert (
        "launch for launch, over the kernels that both runs launched: no change beyond measurement noise (±2.9 %)"
        in lines
    )
    assert not any(line.startswith("removed") for line in lines)


def test_runs_without_a_common_kernel_are_not_called_faster_without_a_word() -> None:
    # matched neither by name nor by place nor by work: twice as many FLOPs, a fiftieth of the bytes
    other = launch("b", 100.0, **{"work.fp32.flop": 5e9, "traffic_bytes.dram": 1e4})
    lines = text_lines([launch("a", 300.0)], [other, launch("c", 50.0, **{"work.fp32.flop": 9e10})])
    assert "the run is 2× faster, if both do the same work" in lines
    assert "note: no kernel of one run matches a kernel of the other" in lines


def test_markdown_says_how_kernels_were_matched() -> None:
    before, after = [launch("a", 300.0, grid=[1, 1, 1])], [launch("a", 100.0, grid=[64, 1, 1])]
    document = comparison_document(compare(run(*before), run(*after)))
    assert "| `a`<br>match: same name \\(likely\\): 1 block of 256 → 64 blocks of 256 |" in to_markdown(document)


def large_document(n_kernels: int, n_gates: int) -> dict[str, Any]:
    names = [f"kernel_{'x' * 50}_{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(n_kernels)]
    before = [launch(name, 100.0) for name in names]
    after = [launch(name, 150.0, **{"traffic_bytes.dram": 4e6}) for name in names]
    results = [
        GateResult(f"kernel({name}).time:+5%", number % 2 == 0, ("a reason " * 60,))
        for number, name in enumerate(names)
    ]
    return comparison_document(compare(run(*before), run(*after)), results[:n_gates])


@pytest.mark.parametrize("n_gates", [0, 3, 40])
def test_markdown_of_a_large_comparison_is_one_screen_and_the_rest_is_folded(n_gates: int) -> None:
    document = large_document(60, n_gates)
    text = to_markdown(document)
    open_part = re.sub(r"<details>.*?</details>", "(folded)", text, flags=re.DOTALL)
    assert 15 <= sum(1 + len(line) // 110 for line in open_part.splitlines()) <= SCREEN + 6  # escapes take no room
    assert text.count("<details>") == text.count("</details>") == (2 if n_gates > 6 else 1)
    assert "40 more in the JSON document" in text
    first_gates = re.findall("^- (✅|❌)", open_part, re.MULTILINE)
    assert first_gates == sorted(first_gates, reverse=True)  # those that failed come first
    assert text.count("❌") >= n_gates // 2


def test_markdown_of_a_small_comparison_folds_nothing() -> None:
    assert "<details>" not in to_markdown(large_document(4, 1))


def test_annotations_name_the_line_and_escape_what_delimits_it() -> None:
    document = large_document(14, 2)
    document["matches"][0]["place"] = {"file": "a,b:c.cu", "line": 7, "text": None, "callers": []}
    lines = list(to_annotations(document, NO_TREE))
    assert lines[0].startswith("::error title=ncuroof gate failed::kernel(")
    assert "::warning file=a%2Cb%3Ac.cu,line=7,title=ncuroof%3A slower::kernel_" in "\n".join(lines)
    assert sum(line.startswith("::warning") for line in lines) == 10


def test_a_kernel_of_unknown_time_is_not_called_unchanged() -> None:
    lines = text_lines([launch("a", None), launch("b")], [launch("a"), launch("b")])
    assert "0 kernels faster, 0 slower, 1 unchanged, 1 without a known time, 0 added, 0 removed" in lines


def test_another_shape_and_what_can_be_had_back_are_told() -> None:
    lines = text_lines([launch("a", 300.0, grid=[1, 1, 1])], [launch("a", 100.0, grid=[64, 8, 1], block=[32, 4, 1])])
    assert "match: same name (likely): 1 block of 256 → 64 × 8 blocks of 32 × 4" in lines
    assert "300 µs → 100 µs, above the roofline 60.0 µs → 20.0 µs" in lines


def test_a_steps_time_is_told_where_both_runs_know_it() -> None:
    before, after = (
        replace(run(launch("a")), step_ns=time, idle_frac=idle) for time, idle in ((50e6, 0.4), (45e6, 0.2))
    )
    lines = to_text(comparison_document(compare(before, after))).splitlines()
    assert "a step takes 50.0 ms → 45.0 ms (−10.0 %); the GPU is idle for 40.0 % → 20.0 % of it" in lines
    assert "a step takes" not in to_text(comparison_document(compare(run(launch("a")), after)))


def test_what_was_counted_and_what_ncu_recorded_are_told_apart() -> None:
    # 10 launches were counted, of 1 ms in both runs; of one that ncu recorded 1 ms became 1.5 ms
    counted = {"n_represented": 10.0}
    before = run(launch("a", 1000.0, **counted, weight=10.0, counted_average_ns=1e6))
    after = run(launch("a", 1500.0, **counted, weight=10.0 / 1.5, counted_average_ns=1e6))
    both = [replace(side, is_counted=True) for side in (before, after)]
    lines = to_text(comparison_document(compare(*both))).splitlines()
    assert (
        "the run's GPU time did not change beyond measurement noise in the counting runs, without ncu (±2.8 %)" in lines
    )
    assert "    10.0 ms → 10.0 ms, above the roofline 2.00 ms → 2.00 ms" in lines
    assert "    1.5× slower under ncu (1.00 ms → 1.50 ms); no quantity that compare looks at" in lines
    grown = replace(run(launch("a", 1000.0, **counted, weight=15.0, counted_average_ns=1.5e6)), is_counted=True)
    assert "the run is 1.5× slower in the counting runs, without ncu" in to_text(
        comparison_document(compare(both[0], grown))
    )
    text = " ".join(to_text(comparison_document(compare(both[0], grown))).split())
    assert "0 kernels faster, 0 slower, 0 unchanged, 1 changed only in the counting runs" in text
    assert (
        "no change beyond measurement noise under ncu (±2.8 %); 1.5× slower on average in the counting runs, "
        "without ncu (1.00 ms → 1.50 ms)" in text
    )
    # counted in one run alone: how often the other launched it is not known
    text_of_one = to_text(comparison_document(compare(run(launch("a", 1000.0)), both[1])))
    assert "; launches 1 → 10" not in " ".join(text_of_one.split())


@pytest.mark.parametrize(("n_after", "is_shown"), [(16, True), (9, False)])
def test_what_is_launched_more_often_is_told_where_the_runs_time_moved_by_it(n_after: int, *, is_shown: bool) -> None:
    # 8 more launches of 10 µs are half of a run of 160 µs; one more is 0.1 % of 8.1 ms
    before, after = (
        [launch("small", 10.0, n_represented=float(n), weight=float(n)), launch("large", 80.0 if is_shown else 8000.0)]
        for n in (8, n_after)
    )
    assert ("small" in to_text(comparison_document(compare(run(*before), run(*after))))) is is_shown


def test_kernels_without_a_name_are_told_without_one() -> None:
    nameless = {"name": None, "short_name": None}
    lines = text_lines([launch("", 300.0) | nameless, launch("b")], [launch("", 100.0) | nameless, launch("b")])
    assert "(no name)" in lines
    only_whole = launch("a") | {"short_name": ""}
    assert run(only_whole).groups["short_name"].to_list() == ["a(float *, int)"]


def test_the_time_of_a_counted_run_stands_beside_the_launches_that_it_is_of() -> None:
    # 3 launches profiled, for 240 of 321 that were counted: 240 x 10 µs of 2.4 + 0.9 ms
    left = (UnprofiledLaunches("b", (1, 1, 1), (64, 1, 1), 81, 9e5),)
    of = {"n_represented": 80.0, "weight": 80.0}
    side = replace(run(*[launch(name, 10.0, **of) for name in "acd"]), is_counted=True)

    def told(**changes: object) -> str:
        after = replace(side, **changes)
        return to_text(comparison_document(compare(side, after))).splitlines()[3]

    assert told(not_recorded_ns=0.0) == "after:  run · NVIDIA H200 · 240 launches (3 profiled), 2.40 ms"
    part = "after:  run · NVIDIA H200 · 240 of 321 launches (3 profiled), 2.40 ms of 3.30 ms"
    assert told(not_recorded_ns=9e5, unprofiled=left) == part
    # a baseline of an earlier version knows the time alone
    assert told(not_recorded_ns=9e5) == "after:  run · NVIDIA H200 · 240 launches (3 profiled), 2.40 ms of 3.30 ms"
    failed = told(n_kernels=4, n_failed=1, failed=("x",))
    assert failed == "after:  run · NVIDIA H200 · 240 launches (4 profiled, 1 of them failed to profile), 2.40 ms"


def test_what_was_launched_and_not_profiled_is_called_so_everywhere() -> None:
    left = UnprofiledLaunches("b(float*, int)", (132, 1, 1), (256, 1, 1), 4, 3e5)
    before = replace(run(launch("a")), is_counted=True, unprofiled=(left,), not_recorded_ns=3e5)
    after = replace(run(launch("a"), launch("b"), launch("c", 50.0, **{"work.fp32.flop": 9e9})), is_counted=True)
    gpus = replace(SETUP, gpus=("NVIDIA H100",)), SETUP
    for setup in (SETUP, gpus[0]):
        document = comparison_document(compare(replace(before, setup=setup), after))
        told = "not profiled before: b, one launch, 100 µs (counted before: 4 launches, 300 µs)"
        text = to_text(document)
        assert f"\n  {told}\n" in text
        assert "1 added, 0 removed, 1 not profiled before" in text
        assert "note: kernels shown as added" not in text  # all that was counted has been found
        assert "not profiled before: b, one launch" in to_markdown(document)
        assert [group["short_name"] for group in document["added"]] == ["c"]
        (found,) = document["not_recorded_before"]
        assert found["counted"] == {
            "name": "b(float*, int)",
            "grid": [132, 1, 1],
            "block": [256, 1, 1],
            "n_launches": 4,
            "duration_ns": 3e5,
            "is_same_shape": True,
        }
        (line,) = [line for line in changes(document).lines if line.name == "b"]
        assert (line.before, line.after, line.sentence) == (MISSING, "100 µs", told.replace("b, ", ""))
    back = to_text(comparison_document(compare(after, before)))
    assert "\n  not profiled after: b, one launch, 100 µs (counted after: 4 launches, 300 µs)\n" in back
    wide = replace(before, unprofiled=(replace(left, grid=(264, 1, 1)),))
    assert "(counted before, in another shape: 4 launches" in to_text(comparison_document(compare(wide, after)))


def test_what_is_added_may_have_been_counted_under_another_name() -> None:
    left = UnprofiledLaunches("nvjet_tn", (1, 1, 1), (64, 1, 1), 4, 3e5)
    before = replace(run(launch("a")), is_counted=True, unprofiled=(left,), not_recorded_ns=3e5)
    after = replace(run(launch("a"), launch("nvjet_nn")), is_counted=True, not_recorded_ns=3e5)
    note = "note: kernels shown as added may be among those of 300 µs that were counted under other names but not profiled before"
    assert note in to_text(comparison_document(compare(before, after))).splitlines()
    assert "note:" not in to_text(comparison_document(compare(before, replace(after, groups=before.groups))))
