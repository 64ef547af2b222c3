"""Where several series change at once: the partition of their time that explains them best, with a price for each part.

Each part is described by the mean of each series. The partition minimises the sum of squared distances from these means, in units
of each series' noise, plus a penalty per part. Dynamic programming finds the optimum exactly.

Source: Jackson et al., "An Algorithm for Optimal Partitioning of Data on an Interval", IEEE Signal Processing Letters 12 (2005).
The pruning of PELT (Killick et al., 2012) would not be exact with a shortest length, and saves little on 128 places. The penalty is
twice the Bayesian information criterion's, which has a place and a mean per series for each further part: neighbouring samples are
not independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median

_MOST_PLACES = 128
"""Places at which a part can begin: more samples are averaged first, and the places found are then moved to the best sample
nearby."""

_DEVIATION_PER_MEDIAN = 1.4826
"""Standard deviation over median absolute deviation of a normal distribution."""


def noise(values: Sequence[float], least: float) -> float:
    """Return the standard deviation of a series around its course, from the differences of neighbours; at least `least`.

    A change is one of many differences, so that the median does not see it.
    """
    steps = [abs(after - before) for before, after in pairwise(values)]
    return max(least, _DEVIATION_PER_MEDIAN * median(steps) / math.sqrt(2)) if steps else least


def change_points(series: Sequence[Sequence[float]], scales: Sequence[float], *, shortest: int) -> list[int]:
    """Return the indices at which a new part begins, ascending, without 0.

    Args:
        series: values at the same times, of equal length.
        scales: what a deviation of each series is measured in.
        shortest: samples that a part has at least.
    """
    n_samples = len(series[0]) if series else 0
    scaled = [[value / scale for value in each] for each, scale in zip(series, scales, strict=True)]
    width = max(1, math.ceil(n_samples / _MOST_PLACES))
    if n_samples < 2 * shortest:
        return []
    coarse = scaled if width == 1 else [_averaged(each, width) for each in scaled]
    starts = _partition(_Costs(coarse, weight=width), math.ceil(shortest / width), _penalty(len(series), n_samples))
    return (
        starts
        if width == 1
        else _refined([start * width for start in starts], _Costs(scaled, weight=1), width, shortest)
    )


def _penalty(n_series: int, n_samples: int) -> float:
    return 2 * (n_series + 1) * math.log(n_samples)


def _averaged(values: Sequence[float], width: int) -> list[float]:
    return [sum(part) / len(part) for part in (values[at : at + width] for at in range(0, len(values), width))]


class _Costs:
    """The squared distances from the mean of each part of several series.

    Args:
        series: values at the same times, in units of their noise.
        weight: samples that a value stands for.
    """

    def __init__(self, series: Sequence[Sequence[float]], weight: int) -> None:
        self.n = len(series[0])
        self._weight = weight
        self._sums = list(zip(*([0.0, *accumulate(each)] for each in series), strict=True))
        squares = (sum(value * value for value in at) for at in zip(*series, strict=True))
        self._squares = [0.0, *accumulate(squares)]

    def of(self, start: int, end: int) -> float:
        """Return the cost of the part from `start` up to `end`, which is after it."""
        explained = 0.0
        for before, after in zip(self._sums[start], self._sums[end], strict=True):
            explained += (after - before) * (after - before)
        return self._weight * float(self._squares[end] - self._squares[start] - explained / (end - start))


def _partition(costs: _Costs, shortest: int, penalty: float) -> list[int]:
    """Return where the parts of the best partition begin, without 0."""
    best = [0.0] + [math.inf] * costs.n
    begin = [0] * (costs.n + 1)
    candidates: list[int] = []
    for end in range(shortest, costs.n + 1):
        candidates.append(end - shortest)
        totals = [best[start] + costs.of(start, end) for start in candidates]
        least = min(totals)
        best[end] = least + penalty
        begin[end] = candidates[totals.index(least)]
    starts = []
    end = costs.n
    while (end := begin[end]) > 0:
        starts.append(end)
    return starts[::-1]


def _refined(starts: Sequence[int], costs: _Costs, width: int, shortest: int) -> list[int]:
    """Return each start moved to the nearby sample that explains the series best and leaves both parts long enough."""
    bounds = [0, *starts, costs.n]
    for index in range(1, len(bounds) - 1):
        before, place, after = bounds[index - 1 : index + 2]
        near = range(max(before + shortest, place - width), min(after - shortest, place + width) + 1)
        by_cost = {at: costs.of(before, at) + costs.of(at, after) for at in near}
        bounds[index] = min(by_cost, key=by_cost.__getitem__, default=place)
    return bounds[1:-1]
