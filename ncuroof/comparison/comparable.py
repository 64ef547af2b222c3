"""Whether times of two runs can be compared, and what else differs in how they were recorded."""

from __future__ import annotations

from dataclasses import dataclass

from ncuroof.comparison.run import Setup


@dataclass(frozen=True, slots=True)
class Comparable:
    """What of two runs can be compared.

    Attributes:
        is_time_comparable: whether a change of time is one of the program; amounts (FLOPs, bytes) are always compared.
        reasons: why times are not comparable; empty where they are.
        remarks: what differs besides, and may matter.
    """

    is_time_comparable: bool
    reasons: tuple[str, ...]
    remarks: tuple[str, ...]


def comparable(before: Setup, after: Setup) -> Comparable:
    """Return what can be compared; what a report does not say is taken for equal."""
    reasons = _differences(
        ("the GPU", before.gpus, after.gpus),
        ("clock control", before.clock_controls, after.clock_controls),
        ("cache control", before.cache_controls, after.cache_controls),
    )
    several = max(before.gpus, after.gpus, key=len)
    if len(several) > 1 and not reasons:
        reasons.append(f"a run has launches on different GPUs: {', '.join(several)}")
    remarks = _differences(
        ("the driver", before.drivers, after.drivers),
        ("Nsight Compute", before.ncu_versions, after.ncu_versions),
        ("the build", before.builds, after.builds),
        ("FLOPs are not compared: the set of counted precisions", before.precisions, after.precisions),
    )
    if before.sections and after.sections and before.sections != after.sections:
        remarks.append("the runs collected different sections: what only one of them has cannot explain a change")
    return Comparable(not reasons, tuple(reasons), tuple(remarks))


def _differences(*parts: tuple[str, tuple[str, ...], tuple[str, ...]]) -> list[str]:
    """Return which parts of how the runs were recorded differ, of what both say: what it is, before and after."""
    return [
        f"{what} differs: {', '.join(old)} before, {', '.join(new)} after"
        for what, old, new in parts
        if old and new and old != new
    ]
