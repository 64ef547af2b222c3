"""Change points of constructed series: known boundaries are found, and noise alone has none."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from ncuroof.phases.change_points import change_points, noise

NOISE = 0.03


def _series(levels: list[list[float]], lengths: list[int], seed: int) -> list[list[float]]:
    rng = random.Random(seed)
    return [
        [level + rng.gauss(0, NOISE) for level, length in zip(each, lengths, strict=True) for _ in range(length)]
        for each in levels
    ]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("factor", [1, 4])
def test_known_boundaries_are_found_within_two_samples(seed: int, factor: int) -> None:
    lengths = [factor * length for length in (12, 40, 25, 23)]
    series = _series([[0.1, 0.8, 0.3, 0.3], [0.2, 0.2, 0.9, 0.2], [0.5] * 4], lengths, seed)
    found = change_points(series, [NOISE] * 3, shortest=2)
    wanted = [12 * factor, 52 * factor, 77 * factor]
    assert len(found) == len(wanted)
    assert all(abs(one - other) <= 2 for one, other in zip(found, wanted, strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_noise_alone_is_one_part(seed: int) -> None:
    assert change_points(_series([[0.4], [0.6]], [120], seed), [NOISE] * 2, shortest=2) == []


def test_a_change_in_any_of_the_series_is_found() -> None:
    steady, stepped = [0.5] * 60, [0.1] * 30 + [0.9] * 30
    assert change_points([steady, steady, stepped], [0.02] * 3, shortest=2) == [30]


def test_a_part_has_at_least_the_shortest_length() -> None:
    spike = [0.1] * 30 + [0.9] + [0.1] * 30
    starts = [0, *change_points([spike], [0.02], shortest=3), len(spike)]
    assert min(end - start for start, end in pairwise(starts)) >= 3


def test_too_few_samples_are_one_part() -> None:
    assert change_points([[0.0, 1.0, 0.0]], [0.02], shortest=2) == []
    assert change_points([], [], shortest=2) == []


def test_noise_is_that_around_the_course_and_not_the_steps() -> None:
    (series,) = _series([[0.1, 0.9]], [200, 200], seed=1)
    assert noise(series, 0.0) == pytest.approx(NOISE, rel=0.2)
    assert noise([0.5] * 10, 0.02) == 0.02
    assert noise([0.5], 0.02) == 0.02
