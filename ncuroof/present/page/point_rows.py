"""A kernel's points on both rooflines, as table rows of its detail."""

from __future__ import annotations

from ncuroof import wording
from ncuroof.present.analysed import Record
from ncuroof.present.charts.views import FLOP, INSTRUCTION, View
from ncuroof.present.page.interned import Cell, Texts


def flop_points(kernel: Record, texts: Texts) -> list[list[Cell]]:
    """Return a row per point on the FLOP roofline; else a remark (a row of one cell) that says why there is none."""
    rows: list[list[Cell]] = [
        [
            wording.label(point["level"]),
            wording.label(point["precision"]),
            wording.in_operations(wording.intensity(point["intensity_flop_per_byte"]), point["precision"]),
            wording.flop_rate(point["flop_per_s"], point["precision"]),
            wording.flop_rate(point["roof_flop_per_s"], point["precision"]),
            wording.in_operations(wording.intensity(point["ridge_flop_per_byte"]), point["precision"]),
            wording.share(point["roof_frac"]),
        ]
        for point in FLOP.points(kernel)
    ]
    return rows or _none(kernel, FLOP, texts)


def instruction_points(kernel: Record, texts: Texts) -> list[list[Cell]]:
    """Return a row per point on the instruction roofline, and a remark with the number of executed instructions."""
    block = kernel["instructions"]
    if not block:
        return _none(kernel, INSTRUCTION, texts)
    rows: list[list[Cell]] = [
        [
            wording.label(point["level"]),
            wording.instruction_intensity(point["intensity_inst_per_transaction"]),
            wording.instruction_rate(point["inst_per_s"]),
            wording.instruction_rate(point["roof_inst_per_s"]),
            wording.instruction_intensity(point["ridge_inst_per_transaction"]),
            wording.share(point["roof_frac"]),
        ]
        for point in INSTRUCTION.points(kernel)
    ]
    executed = wording.scaled(block["warp_executed"])
    share = f", {wording.share(block['frac'])} of what the schedulers can issue" if block["frac"] is not None else ""
    return [*rows, [texts.add(f"{executed} warp instructions executed{share}.")]]


def _none(kernel: Record, view: View, texts: Texts) -> list[list[Cell]]:
    return [[texts.add(f"None: {view.off_chart_reason(kernel)}.")]]
