"""The same launches recorded on two GPUs: what one predicts of the other, and what the other took."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ncuroof
from ncuroof.resources import read_toml

FIXTURES = Path(__file__).parents[2] / "fixtures"
TOLERANCE = 0.02
"""Clocks of two recordings differ by as much."""
_CLASSES = {
    ("memory", "dram"): "DRAM",
    ("memory", "l2"): "L2",
    ("memory", "l1"): "L1, shared memory",
    ("memory", "shared"): "L1, shared memory",
    ("compute", None): "compute, balanced",
    ("balanced", None): "compute, balanced",
    ("latency", None): "latency",
    ("overhead", None): "overhead",
}


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of a case.

    Attributes:
        name: of the kernel.
        n_blocks: of its grid.
        kind: what bounds it, one of the classes of docs/whatif.md.
        recorded_ns: what it took.
        there_ns: expected, least and most on the other GPU.
    """

    name: str
    n_blocks: float
    kind: str
    recorded_ns: float
    there_ns: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Pair:
    """A launch and what the same one took on the other GPU."""

    here: Launch
    took_ns: float

    @property
    def is_inside(self) -> bool:
        """Whether it took what the range says, give or take the tolerance."""
        _, least, most = self.here.there_ns
        return least * (1 - TOLERANCE) <= self.took_ns <= most * (1 + TOLERANCE)

    @property
    def error(self) -> float:
        """By how much the expected time was off, as a share of what it took."""
        return abs(self.here.there_ns[0] / self.took_ns - 1)


def launches(folder: str, target: str) -> dict[tuple[str, int], Launch]:
    """Return the launches of a folder's full recordings, by case and place in it, projected to a GPU."""
    found = {}
    for entry in read_toml(FIXTURES / folder / "provenance.toml")["file"]:
        if entry["level"] != "full":
            continue
        run = ncuroof.read(FIXTURES / folder / entry["name"]).analyse()
        there = {row["id"]: row for row in run.whatif(target).iter_rows(named=True)}
        rows = run.kernels.to_dicts()
        for case in entry["cases"]:
            of_case = [row for row in rows if len(entry["cases"]) == 1 or case in (row["nvtx"] or ())]
            found |= {(case, place): _launch(row, there[row["id"]]) for place, row in enumerate(of_case)}
    return found


def _launch(row: dict, there: dict) -> Launch:
    kind = _CLASSES.get((row["verdict"], row["limiter"])) or _CLASSES[row["verdict"], None]
    times = there["duration_ns"], there["least_ns"], there["most_ns"]
    return Launch(row["name"], row["launch.n_blocks"], kind, row["duration_ns"], times)


def pairs(here: dict[tuple[str, int], Launch], there: dict[tuple[str, int], Launch]) -> list[Pair]:
    """Return the launches of one GPU of which the other has the same kernel with the same grid."""
    both = ((launch, there[key]) for key, launch in here.items() if key in there)
    return [
        Pair(mine, other.recorded_ns)
        for mine, other in both
        if (mine.name, mine.n_blocks) == (other.name, other.n_blocks)
    ]


def table(to: list[Pair], back: list[Pair]) -> Iterator[str]:
    """Yield the rows of docs/whatif.md: by class how many are inside of the range, of how many, and the mean error, both ways."""
    kinds = [*dict.fromkeys(_CLASSES.values())]
    for kind, only in itertools.chain(((kind, {kind}) for kind in kinds), [("all", set(kinds))]):
        cells = [_cells([pair for pair in each if pair.here.kind in only]) for each in (to, back)]
        yield f"| {kind} | {' | '.join(cells)} |"


def _cells(some: list[Pair]) -> str:
    inside = sum(pair.is_inside for pair in some)
    return f"{inside} of {len(some)} | {100 * sum(pair.error for pair in some) / len(some):.1f} %"
