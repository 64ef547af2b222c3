"""The keys of the document `ncuroof.whatif/1`, with what they mean; `docs/documents.md` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from ncuroof.present.schemas.analysis import ToolEntry


class ProjectedTimesEntry(TypedDict):
    """Times of the launches that can be projected; null where none can."""

    recorded_ns: Annotated[float | None, "recorded time of the launches that can be projected"]
    duration_ns: Annotated[float | None, "expected time of these launches"]
    least_ns: Annotated[
        float | None,
        "expected time under the shorter hypothesis of each launch; an assumed L2 does not limit a launch "
        "there that L2 did not limit before",
    ]
    most_ns: Annotated[
        float | None,
        "expected time under the longer hypothesis of each launch; operands of tensor instructions are read "
        "there as here",
    ]
    speedup: Annotated[float | None, "recorded over expected time"]


class ProjectedCountsEntry(TypedDict):
    """How many launches are special on a target."""

    n_crossing: Annotated[int, "launches that are on the other side of the ridge there"]
    n_crossing_to_memory: Annotated[int, "of these, launches that are on the memory side there"]
    n_limited_by_assumed_l2: Annotated[
        int,
        "launches that L2 limits there, at an assumed bandwidth that no document states",
    ]
    n_unknown: Annotated[int, "launches that cannot be projected; excluded from all times"]


class TargetEntry(ProjectedTimesEntry, ProjectedCountsEntry):
    """A target."""

    target: Annotated[str, "GPU, and a clock if one was given; `same` for the GPU that recorded the report"]
    n_launches: Annotated[int, "all launches"]
    wall_recorded_ns: Annotated[
        float | None,
        "wall-clock time of a step, or of a run without steps; null where no counting run or trace of one "
        "program tells it",
    ]
    wall_ns: Annotated[
        float | None,
        "the same there, if the time in which no kernel runs stays as it is; null where it is not known",
    ]


class ProjectionEntry(ProjectedTimesEntry, ProjectedCountsEntry):
    """A kernel on a target."""

    target: Annotated[str, "as in `targets`, in the same order"]
    limiter: Annotated[str | None, "resource that is needed longest there"]
    ridge_ratio: Annotated[float | None, "ridge ratio there"]
    reason: Annotated[str | None, "why; null where all can be projected"]


class ProjectedKernelEntry(TypedDict):
    """A kernel."""

    id: Annotated[
        int,
        "id of the longest launch, which gives the values that are not sums; for fused launches, that of the writer",
    ]
    name: Annotated[str | None, "demangled name; for fused launches, names joined by ` + `"]
    short_name: Annotated[str | None, "short name, for tables"]
    n_launches: Annotated[int, "launches of that name"]
    verdict: Annotated[str | None, "verdict as recorded; for fused launches, that of the longest"]
    limiter: Annotated[str | None, "resource that was needed longest; for fused launches, that of the longest"]
    recorded_ns: Annotated[float | None, "recorded time of all its launches"]
    ridge_ratio: Annotated[
        float | None,
        "time of the dominant work over that of DRAM at their peaks: below 1 is the memory side",
    ]
    projections: Annotated[list[ProjectionEntry], "the kernel on each target"]


class ProjectionDocument(TypedDict):
    """The document `ncuroof.whatif/1`."""

    schema: Annotated[str, "the schema name above"]
    tool: ToolEntry
    sources: Annotated[Sequence[str], "file names of the reports"]
    damage: Annotated[
        Sequence[str],
        "of each damaged report its file name and what is wrong with it; launches may then be missing in all sums",
    ]
    changes: Annotated[Sequence[str], "changes and fusions, as given"]
    assumptions: Annotated[
        Sequence[str],
        "assumptions as sentences, after remarks on damaged reports and on the request (such as a clock above boost)",
    ]
    targets: Annotated[list[TargetEntry], "the whole run on each target"]
    kernels: Annotated[
        list[ProjectedKernelEntry],
        "kernels by their change of time on the first target, the largest first",
    ]
