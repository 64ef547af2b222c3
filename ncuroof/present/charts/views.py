"""Descriptions of the two rooflines: FLOPs per byte, and warp instructions per memory transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ncuroof import formatting
from ncuroof.enums import MemoryLevel
from ncuroof.present.analysed import Record
from ncuroof.present.schemas.kernels import KernelEntry

_LEAST, _MOST = 1e-30, 1e30
"""Range of plottable values: no machine reaches others, and their ticks would overflow a float."""


@dataclass(frozen=True, slots=True)
class RooflineView:
    """One roofline: where its numbers are in the document, and how they are written.

    Attributes:
        name: key in the page's data.
        label: display name.
        ceilings: key of its roofs in the document.
        intensity, rate: keys of a point's coordinates.
        per: title of the horizontal axis, up to the level.
        counted: legend of the choice of levels.
        no_level: why a kernel with points has none at a level.
        no_chart: text shown in place of a chart without dots.
        intensity_unit, rate_unit: symbols of the coordinates' units.
        write_intensity, write_rate, write_slope: functions that write coordinates and slopes as text.
    """

    name: str
    label: str
    ceilings: Literal["ceilings", "instruction_ceilings"]
    intensity: str
    rate: str
    per: str
    counted: str
    no_level: str
    no_chart: str
    intensity_unit: str
    rate_unit: str
    write_intensity: Callable[[float | None], str]
    write_rate: Callable[[float | None], str]
    write_slope: Callable[[float | None], str]

    def x_title(self, level: str) -> str:
        """Return the title of the horizontal axis at a memory level: "FLOP per byte of DRAM"."""
        return f"{self.per} {formatting.label(level)}{' memory' if level == MemoryLevel.SHARED else ''}"

    def points(self, kernel: KernelEntry) -> Sequence[Record]:
        """Return the kernel's points on this roofline."""
        if self is FLOP:
            return kernel.get("points") or ()
        instructions = kernel["instructions"]
        return instructions["points"] if instructions else ()

    def dots(self, kernel: KernelEntry) -> dict[str, list[Record]]:
        """Return the points that can be drawn, by level: the dominant precision first, then by descending rate."""
        dominant = kernel["dominant_precision"]

        def time_at_peak(point: Record) -> tuple[bool, float]:
            return (point.get("precision") == dominant, point[self.rate])

        found: dict[str, list[Record]] = {}
        for point in self.points(kernel):
            if is_plottable(point[self.intensity], point[self.rate]):
                found.setdefault(point["level"], []).append(point)
        return {level: sorted(points, key=time_at_peak, reverse=True) for level, points in found.items()}

    def off_chart_reason(self, kernel: KernelEntry) -> str | None:
        """Return why a kernel has no dot at any level; None if it has one."""
        if self.dots(kernel):
            return None
        if kernel["failed"]:
            return "profiling failed"
        return _without_flop_dot(kernel) if self is FLOP else _without_instruction_dot(kernel)


def _without_flop_dot(kernel: KernelEntry) -> str:
    work = kernel["work"]
    if not work:
        return "FLOPs not collected"
    if not any(entry["flop"] for entry in work.values()):
        return "no FLOPs"
    if "work_not_counted" in kernel["caveats"]:
        return "most FLOPs not collected"
    is_counted = any(entry["flop"] and entry["reliable"] for entry in work.values())
    return "bytes not collected" if is_counted else "FLOPs not reliable"


def _without_instruction_dot(kernel: KernelEntry) -> str:
    instructions = kernel["instructions"]
    if not instructions:
        return "instructions not collected"
    if not instructions["warp_executed"]:
        return "no instructions"
    return "no transactions" if instructions["points"] else "bytes not collected"


def is_plottable(*values: float | None) -> bool:
    """Return whether all values can be drawn on a logarithmic axis."""
    return all(value is not None and _LEAST <= value <= _MOST for value in values)


FLOP = RooflineView(
    name="flop",
    label="FLOP roofline",
    ceilings="ceilings",
    intensity="intensity_flop_per_byte",
    rate="flop_per_s",
    per="FLOP per byte of",
    counted="Bytes counted at",
    no_level="no bytes at this level",
    no_chart="There is no chart: no kernel of this GPU has FLOPs and bytes that were both counted.",
    intensity_unit="FLOP/B",
    rate_unit="FLOP/s",
    write_intensity=formatting.intensity,
    write_rate=formatting.flop_rate,
    write_slope=formatting.byte_rate,
)
INSTRUCTION = RooflineView(
    name="instruction",
    label="Instruction roofline",
    ceilings="instruction_ceilings",
    intensity="intensity_inst_per_transaction",
    rate="inst_per_s",
    per="warp instructions per transaction of",
    counted="Transactions counted at",
    no_level="no transactions at this level",
    no_chart="There is no chart: no kernel of this GPU has instructions and bytes that were both counted.",
    intensity_unit="inst/TXN",
    rate_unit="IPS",
    write_intensity=formatting.instruction_intensity,
    write_rate=formatting.instruction_rate,
    write_slope=formatting.transaction_rate,
)
VIEWS = (FLOP, INSTRUCTION)
"""In the order in which the page offers them; the page opens with the first that has dots."""
