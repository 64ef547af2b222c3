"""What sums are weighted by, in words."""

from __future__ import annotations

import pytest

from ncuroof.present.sentences.weighting import not_the_run_sentences, recorded_once_sentence, weighting_sentences


@pytest.mark.parametrize(
    ("covered_frac", "n_unmatched", "why"),
    [
        (1.0, 0, []),
        (None, 0, []),
        (0.75, 0, ["kernels with 25.0 % of the counted run's GPU time were not recorded and are in no sum"]),
        (None, 1, ["1 recorded launch was not in the counted run, and stands for itself"]),
        (1.0, 2, ["2 recorded launches were not in the counted run, and each stands for itself"]),
    ],
)
def test_why_sums_are_not_those_of_the_counted_run(
    covered_frac: float | None, n_unmatched: int, why: list[str]
) -> None:
    found = {"n_launches": 640, "covered_frac": covered_frac, "n_unmatched": n_unmatched}
    assert not_the_run_sentences(**found) == why
    (said,) = weighting_sentences(**found)
    assert said.startswith("weighted by a run without replays, which counted 640 launches")
    assert said.endswith("single launches are ncu's")


def test_a_counted_run_of_another_program_weighs_nothing() -> None:
    found = {"n_launches": 640, "covered_frac": 0.0, "n_unmatched": 16}
    assert weighting_sentences(**found) == []
    (said,) = not_the_run_sentences(**found)
    assert said.startswith("a run without replays counted 640 launches, and none of the kernels here was among them")
    assert said.endswith("Each launch here stands for itself")


def test_launches_that_stand_for_others_of_other_times_are_told() -> None:
    said = weighting_sentences(n_launches=9, covered_frac=1.0, uneven_frac=0.101)
    assert said[1].startswith("in 10.1 % of that run's GPU time a launch stands for others that take longer or shorter")
    little = weighting_sentences(n_launches=9, covered_frac=1.0, uneven_frac=0.019)
    assert little == weighting_sentences(n_launches=9, covered_frac=1.0)


ONCE = "ncu --filter-mode per-launch-config --launch-count 1 ./app"


@pytest.mark.parametrize(
    ("command_line", "is_helped"),
    [
        (ONCE, True),
        (f"ncu --kernel-name regex:^(?!.*(?:nccl|nvshmem)) {ONCE}", True),
        # what is missing was not asked for: --cover, by functions' names and by mangled ones, and --kernel
        (f"ncu --kernel-name regex:^(?!.*(?:nccl|nvshmem))(?:gemm)$ {ONCE}", False),
        (f"ncu --kernel-name regex:^(?!.*(?:nccl|nvshmem))(?:(?:gemm)$|.*(?:4gemm)) {ONCE}", False),
        (f"ncu --kernel-name regex:^(?!.*(?:nccl|nvshmem)).*(?:gemm) {ONCE}", False),
        ("ncu ./app", False),
        (None, False),
    ],
)
def test_what_records_the_rest_is_told_where_it_was_wanted(command_line: str | None, is_helped: bool) -> None:
    (said,) = not_the_run_sentences(n_launches=9, covered_frac=0.7, n_unmatched=0, command_lines=[command_line])
    assert ("ncuroof profile --no-per-shape records every launch" in said) is is_helped
    assert not_the_run_sentences(n_launches=9, covered_frac=1.0, n_unmatched=0, command_lines=[command_line]) == []


def test_by_what_launches_were_told_apart() -> None:
    assert recorded_once_sentence([ONCE]).startswith("recorded once per function and launch shape")
    assert recorded_once_sentence([f"{ONCE} --kernel-name-base mangled"]).startswith("recorded once per kernel and")
    assert recorded_once_sentence(["ncu ./app", None]) == ""
