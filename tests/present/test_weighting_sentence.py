"""What sums are weighted by, in words."""

from __future__ import annotations

import pytest

from ncuroof.present.sentences.weighting import not_the_run_sentences, weighting_sentences
from tests.present.documents import WEIGHTING


@pytest.mark.parametrize(
    ("covered_frac", "n_unmatched", "why"),
    [
        (1.0, 0, []),
        (None, 0, []),
        (0.75, 0, ["25.0 % of the counting run's GPU time was not profiled and is missing from all totals"]),
        (None, 1, ["1 profiled launch was not in the counting run, and represents only itself"]),
        (1.0, 2, ["2 profiled launches were not in the counting run, and represent only themselves"]),
    ],
)
def test_why_sums_are_not_those_of_the_counted_run(
    covered_frac: float | None, n_unmatched: int, why: list[str]
) -> None:
    found = WEIGHTING | {"n_launches": 640, "covered_frac": covered_frac, "n_unmatched": n_unmatched}
    assert not_the_run_sentences(found) == why
    (said,) = weighting_sentences(found)
    assert said.startswith("weighted by launch counts from a run without ncu (640 launches)")
    assert said.endswith("single launches are ncu's")


def test_a_counted_run_of_another_program_weighs_nothing() -> None:
    found = WEIGHTING | {"n_launches": 640, "covered_frac": 0.0, "n_unmatched": 16}
    assert weighting_sentences(found) == []
    (said,) = not_the_run_sentences(found)
    assert said.startswith("the launch counts from a run without ncu (640 launches) have none of these kernels")
    assert said.endswith("Each launch represents only itself")


def test_launches_that_stand_for_others_of_other_times_are_told() -> None:
    said = weighting_sentences(WEIGHTING | {"uneven_frac": 0.101})
    assert said[1].startswith(
        "10.1 % of that run's GPU time is extrapolated: there, one profiled launch represents launches"
    )
    little = weighting_sentences(WEIGHTING | {"uneven_frac": 0.019})
    assert little == weighting_sentences(WEIGHTING)


@pytest.mark.parametrize(("uncounted_frac", "is_told"), [(0.019, False), (None, False), (0.91, True)])
def test_totals_of_counted_and_other_launches_are_not_those_of_the_counted_run(
    uncounted_frac: float | None, is_told: bool
) -> None:
    (said,) = weighting_sentences(WEIGHTING | {"uncounted_frac": uncounted_frac})
    assert ("refer to that run" in said) is not is_told
    assert ("these take 91.0 % of the GPU time, each represents only itself" in said) is is_told


def test_what_was_not_recorded_is_named() -> None:
    times_ns = {"a": 4e5, "b": 3e5, "c": 2e5, "d": 1e5, "e": 1e4}
    lacking = [{"name": name, "n_launches": 1, "duration_ns": time_ns} for name, time_ns in times_ns.items()]
    found = WEIGHTING | {"covered_frac": 0.5, "not_recorded": lacking}
    (said,) = not_the_run_sentences(found)
    assert said.endswith("is missing from all totals: a 400 µs, b 300 µs, c 200 µs and 2 more")
    (said,) = not_the_run_sentences(found | {"not_recorded": [lacking[0] | {"name": "a\x1b[31m"}]})
    assert said.endswith("is missing from all totals: a\\u001b[31m 400 µs")


BY_NAME = "--kernel-name-base mangled"
ONCE = "ncu --filter-mode per-launch-config --launch-count 1 ./app"


@pytest.mark.parametrize(
    ("command_line", "cure"),
    [
        (f"{ONCE} {BY_NAME}", "ncuroof profile --no-per-shape profiles every launch"),
        (
            f"ncu --kernel-name regex:^(?!.*(?:nccl|nvshmem)) {BY_NAME} {ONCE}",
            "ncuroof profile --no-per-shape profiles",
        ),
        # by functions' names, of all kernels of a template one is recorded
        (ONCE, "record again with ncuroof profile, which distinguishes them"),
        # what is missing was not asked for: --cover, by functions' names and by mangled ones, and --kernel
        (f"ncu --kernel-name regex:^(?!.*(?:nccl|nvshmem))(?:gemm)$ {ONCE}", None),
        (f"ncu --kernel-name regex:^(?!.*(?:nccl|nvshmem))(?:(?:gemm)$|.*(?:4gemm)) {ONCE}", None),
        (f"ncu --kernel-name regex:^(?!.*(?:nccl|nvshmem)).*(?:gemm) {ONCE}", None),
        ("ncu ./app", None),
        (None, None),
    ],
)
def test_what_records_the_rest_is_told_where_it_was_wanted(command_line: str | None, cure: str | None) -> None:
    (said,) = not_the_run_sentences(WEIGHTING | {"covered_frac": 0.7}, [command_line])
    assert cure in said if cure else said.endswith("is missing from all totals")
    assert not_the_run_sentences(WEIGHTING, [command_line]) == []


def test_by_what_launches_were_told_apart() -> None:
    by_function, by_mangled_name = (not_the_run_sentences(None, [line])[0] for line in (ONCE, f"{ONCE} {BY_NAME}"))
    assert by_function.startswith("profiled once per function and launch shape")
    assert by_mangled_name.startswith("profiled once per kernel and")
    assert not_the_run_sentences(None, ["ncu ./app", None]) == []


@pytest.mark.parametrize(
    ("n_steps", "command_line", "is_told"),
    [
        (None, "ncu --filter-mode per-launch-config --launch-count 1 ./app", True),
        (1, "ncu --filter-mode per-launch-config --launch-count 1 ./app", False),
        (None, "ncu --launch-skip 1 --filter-mode per-launch-config --launch-count 1 ./app", False),
        (None, "ncu ./app", False),
        (None, None, False),
    ],
)
def test_the_launches_of_a_whole_run_are_those_of_its_first_step(
    n_steps: int | None, command_line: str | None, is_told: bool
) -> None:
    """Its optimizer's division took 47 µs, later ones 42."""
    found = WEIGHTING | {"covered_frac": 1.0, "wall_times": [{"n_steps": n_steps}]}
    said = not_the_run_sentences(found, [command_line])
    assert ["is the first of its kernel and shape in the run" in each for each in said] == [True] * is_told
