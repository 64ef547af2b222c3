"""The tables of a kernel's detail: its quantities, its points on both rooflines, and the path of its bytes.

Quantities of NVIDIA's sections are in their own blocks, all others have their meanings beside them. Traffic, bandwidth and work
have a row per memory level or precision. The path leads from the SMs to DRAM: units with their hit rates, and the traffic between
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ncuroof import formatting
from ncuroof.diagnosis import Rules
from ncuroof.enums import CeilingSource
from ncuroof.metrics import Catalogue, quantity_unit
from ncuroof.present.analysed import Record
from ncuroof.present.charts.views import FLOP, INSTRUCTION, RooflineView
from ncuroof.present.explanations.meanings import quantity_label
from ncuroof.present.page.text_table import Cell, Texts
from ncuroof.present.schemas.kernels import KernelEntry

OCCUPANCY = (
    "occupancy.achieved_frac", "occupancy.theoretical_frac", "occupancy.waves", "occupancy.tail_frac",
    "occupancy.resident_blocks", "scheduler.issue_per_cycle", "scheduler.n_active_warps", "scheduler.n_eligible_warps",
    "scheduler.n_threads_per_instruction", "scheduler.n_predicated_on_threads_per_instruction",
    "scheduler.sm_active_frac", "scheduler.sm_imbalance_frac",
)  # fmt: skip
"""Quantities of NVIDIA's sections Occupancy, SchedulerStats, WarpStateStats and WorkloadDistribution."""

ACCESS = (
    "access.load_bytes_per_sector", "access.store_bytes_per_sector", "access.load_sectors_per_request",
    "access.store_sectors_per_request", "access.excess_sectors_frac", "access.l1_hit_frac", "access.l2_hit_frac",
    "access.bank_conflict_frac", "access.local_bytes", "access.async_copy_bytes", "access.compression_success_frac",
    "access.remote_miss_frac", "access.l2_slice_imbalance_frac", "access.dram_channel_imbalance_frac",
)  # fmt: skip
"""Quantities of NVIDIA's sections MemoryWorkloadAnalysis, its tables, SourceCounters and WorkloadDistribution."""

_OF_THE_TREE = frozenset(
    {
        "beside_memory_instructions", "beside_operands", "busiest", "busiest_known", "compute_unnamed", "gap", "headroom",
        "known_lead", "lead", "least_of_main_units", "memory_side", "most_possible", "sm",
    }
)  # fmt: skip
"""Keys of `utilisation` that are not a unit's: differences, bounds and aliases, which the decision tree uses."""

_UNLISTED = "l1_beyond"
"""A part of L1 that no breakdown lists: it has a value only where it is the busiest."""

_CHECK = "check."
_OTHERS = ("utilisation", "occupancy", "scheduler", "access", "arithmetic", "check")
_SHARED_MEMORY = "shared_bytes"
_NO_VALUE = "No value (not collected, not available on this chip, or a ratio with a zero denominator)"
_SAME = 0.01
"""Largest difference between two utilisations that count as equal."""

Station = tuple[str, str, str, float, float | None]
"""Kind (`unit` or `traffic`), text, remark, line width in pixels (0 for units), and share of the peak, None where not known."""

_THICKEST_PX, _THINNEST_PX = 26, 1

_MUCH_MORE = 1.1
"""Ratio of L2's lookups to the L1s' requests above which the lookups are remarked on."""
_UNCOUNTED = {"bulk_copy_frac": "bulk copies (TMA)", "atomic_request_frac": "atomics"}
"""Traffic that L1's bytes do not include, by the quantity of `access` that measures its share."""


class QuantityCells:
    """Writes the quantities of one document's kernels; `quantities` lists those referred to, long texts are interned in `texts`."""

    def __init__(self, rules: Rules, catalogue: Catalogue, texts: Texts) -> None:
        self._caveats = rules.caveats
        self._checks = _asked(rules.caveats, rules.caveats)
        self._doc_by_quantity = {quantity.name: quantity.doc for quantity in catalogue.described()}
        self._texts = texts
        self._number_by_quantity: dict[str, int] = {}
        self.quantities: list[list[Cell]] = []
        """Name, label and meaning of each quantity that details refer to by its index here."""

    def number(self, quantity: str) -> int:
        """Return a quantity's index in `quantities`, adding it if needed."""
        number = self._number_by_quantity.setdefault(quantity, len(self._number_by_quantity))
        if number == len(self.quantities):
            doc = self._doc_by_quantity.get(quantity, "")
            self.quantities.append([quantity, self._texts.add(quantity_label(quantity)), self._texts.add(doc)])
        return number

    def written(self, quantity: str, value: float | None) -> str:
        """Return a value as text; shared memory in KiB, as in the CUDA documentation."""
        unit = quantity_unit(quantity)
        return (
            formatting.kibibytes(value)
            if unit == "byte" and _SHARED_MEMORY in quantity
            else formatting.quantity(value, unit)
        )

    def row(self, quantity: str, value: float) -> list[Cell]:
        """Return the row of a quantity: its number, and its value as text."""
        return [self.number(quantity), self.written(quantity, value)]

    def bars(self, kernel: Record, group: str) -> list[list[Any]]:
        """Return number, value and bar length (0..1) of a group's quantities, largest first; remarks name zero and missing ones."""
        left_out = _OF_THE_TREE if group == "utilisation" else ()
        values = {key: value for key, value in kernel[group].items() if key not in left_out}
        rows: list[list[Any]] = [
            [*self.row(f"{group}.{key}", value), round(min(max(value, 0.0), 1.0), 4)]
            for key, value in sorted(values.items(), key=lambda item: -(item[1] or 0.0))
            if value
        ]
        label_by_key = {key: quantity_label(f"{group}.{key}") for key in values}
        zeros = [label_by_key[key] for key, value in values.items() if value == 0]
        unknown = [label_by_key[key] for key, value in values.items() if value is None and key != _UNLISTED]
        return rows + self._texts.note("Measured as zero", zeros) + self._texts.note(_NO_VALUE, unknown)

    def shown(self, kernel: KernelEntry, names: Sequence[str]) -> list[list[Cell]]:
        """Return number and value of the named quantities that are not zero, and a remark on those without a value."""
        values = dict(_values(kernel, _OTHERS))
        rows = [self.row(name, value) for name in names if (value := values.get(name))]
        unknown = [quantity_label(name) for name in names if name in values and values[name] is None]
        return rows + self._texts.note(_NO_VALUE, unknown)

    def checks(self, kernel: KernelEntry) -> list[list[Cell]]:
        """Return the checks behind this kernel's caveats, and a remark with the number of checks that passed."""
        known = {name: value for name, value in _values(kernel, ("check",)) if value is not None}
        failed = _asked(self._caveats, kernel["caveats"])
        held = [name for name in known if name in self._checks and name not in failed]
        rows = [self.row(name, value) for name, value in known.items() if name in failed]
        if not held:
            return rows
        return [*rows, [f"{formatting.counted(len(held), 'check')} {'passes' if len(held) == 1 else 'pass'}."]]

    def others(self, kernel: KernelEntry) -> list[list[Cell]]:
        """Return number and value of all quantities that no other block of the detail shows."""
        units = {f"utilisation.{key}" for key in kernel["utilisation"] if key not in _OF_THE_TREE}
        in_sight = {*OCCUPANCY, *ACCESS}
        return [
            self.row(name, value)
            for name, value in _values(kernel, _OTHERS)
            if value is not None and name not in units and not (value and name in in_sight)
        ]


def beyond_speed_of_light(kernel: KernelEntry) -> float | None:
    """Return the utilisation of L2 where it exceeds NVIDIA's Speed of Light total for memory; else None."""
    utilisation = kernel["utilisation"]
    memory, l2 = utilisation.get("memory"), utilisation.get("l2")
    return l2 if memory is not None and l2 is not None and l2 > memory + _SAME else None


def _values(kernel: Record, groups: Iterable[str]) -> Iterator[tuple[str, float | None]]:
    for group in groups:
        for key, value in kernel[group].items():
            if value is None or isinstance(value, (int, float)):
                yield f"{group}.{key}", value


def _asked(caveats: Mapping[str, Any], names: Iterable[str]) -> frozenset[str]:
    """Return the `check.` quantities in the conditions of the named caveats."""
    met = [caveats[name] for name in names if name in caveats]
    conditions = (condition for caveat in met for condition in (*caveat.all_of, *caveat.any_of))
    return frozenset(condition.quantity for condition in conditions if condition.quantity.startswith(_CHECK))


def flop_points(kernel: KernelEntry, texts: Texts) -> list[list[Cell]]:
    """Return a row per point on the FLOP roofline; else a remark (a row of one cell) that says why there is none."""
    rows: list[list[Cell]] = [
        [
            formatting.label(point["level"]),
            formatting.label(point["precision"]),
            formatting.in_operations(formatting.intensity(point["intensity_flop_per_byte"]), point["precision"]),
            formatting.flop_rate(point["flop_per_s"], point["precision"]),
            formatting.flop_rate(point["roof_flop_per_s"], point["precision"]),
            formatting.in_operations(formatting.intensity(point["ridge_flop_per_byte"]), point["precision"]),
            formatting.share(point["roof_frac"]),
        ]
        for point in FLOP.points(kernel)
    ]
    return rows or _none(kernel, FLOP, texts)


def instruction_points(kernel: KernelEntry, texts: Texts) -> list[list[Cell]]:
    """Return a row per point on the instruction roofline, and a remark with the number of executed instructions."""
    block = kernel["instructions"]
    if not block:
        return _none(kernel, INSTRUCTION, texts)
    rows: list[list[Cell]] = [
        [
            formatting.label(point["level"]),
            formatting.instruction_intensity(point["intensity_inst_per_transaction"]),
            formatting.instruction_rate(point["inst_per_s"]),
            formatting.instruction_rate(point["roof_inst_per_s"]),
            formatting.instruction_intensity(point["ridge_inst_per_transaction"]),
            formatting.share(point["roof_frac"]),
        ]
        for point in INSTRUCTION.points(kernel)
    ]
    executed = formatting.scaled(block["warp_executed"])
    share = f", {formatting.share(block['frac'])} of what the schedulers can issue" if block["frac"] is not None else ""
    return [*rows, [texts.add(f"{executed} warp instructions executed{share}.")]]


def _none(kernel: KernelEntry, view: RooflineView, texts: Texts) -> list[list[Cell]]:
    return [[texts.add(f"None: {view.off_chart_reason(kernel)}.")]]


def traffic_rows(kernel: KernelEntry, texts: Texts) -> list[list[Cell]]:
    """Return a row per level: level, bytes in both directions, and what was counted."""
    traffic, definitions = kernel["traffic_bytes"], kernel["traffic_definition"]
    rows: list[list[Cell]] = [
        [formatting.label(level), formatting.quantity(value, "byte"), texts.add(definitions.get(level) or "")]
        for level, value in traffic.items()
        if value is not None
    ]
    return rows + texts.note(
        "Not collected", [formatting.label(level) for level, value in traffic.items() if value is None]
    )


def bandwidth_rows(kernel: KernelEntry, texts: Texts) -> list[list[Cell]]:
    """Return a row per level: level, achieved rate, peak, their ratio, shares of other roofs, and what was counted."""
    return [
        [
            formatting.label(level),
            formatting.byte_rate(entry["bytes_per_s"]),
            _peak(entry, "peak_bytes_per_s", formatting.byte_rate),
            formatting.share(entry["frac"]),
            *_of_other_roofs(entry),
            texts.add(entry["definition"]),
        ]
        for level, entry in kernel["bandwidth"].items()
    ]


def work_rows(kernel: KernelEntry, texts: Texts) -> list[list[Cell]]:
    """Return a row per precision: work, rate, peak, ratio, shares of other roofs, what was counted, whether that is reliable."""
    work = kernel["work"]
    rows: list[list[Cell]] = [
        [
            formatting.label(precision),
            formatting.flop_count(entry["flop"], precision),
            formatting.flop_rate(entry["flop_per_s"], precision),
            formatting.in_operations(_peak(entry, "peak_flop_per_s", formatting.flop_rate), precision),
            formatting.share(entry["frac"]),
            *_of_other_roofs(entry),
            texts.add(entry["definition"]),
            "yes" if entry["reliable"] else "no",
        ]
        for precision, entry in work.items()
        if entry["flop"] != 0
    ]
    return rows + texts.note(
        "Measured as zero", [formatting.label(name) for name, entry in work.items() if entry["flop"] == 0]
    )


def _of_other_roofs(entry: Record) -> list[Cell]:
    """Return the shares of the data-sheet roof and of the roof that a calibration reached."""
    return [formatting.share(entry[key]) for key in ("datasheet_frac", "reached_frac")]


def _peak(entry: Record, key: str, write: Callable[[float | None], str]) -> str:
    """Return a peak as text, marked if it is from the data sheet, with the peak of a faster path if there is one."""
    remarks = ["data sheet"] if entry["peak_source"] == CeilingSource.DATASHEET else []
    fastest = entry.get("fastest_peak_flop_per_s")
    if fastest is not None and fastest > (entry[key] or fastest):
        remarks.append(f"fastest path {write(fastest)}")
    return write(entry[key]) + (f" ({'; '.join(remarks)})" if remarks else "")


def traffic_flow(kernel: KernelEntry) -> list[Station]:
    """Return the stations from the SMs to DRAM; empty where the bytes of fewer than two levels are known.

    Levels without a byte count are left out; shared memory is beside this path (`shared_flow`). Between L1 and L2 are the sectors
    that the L1s request, as in Nsight Compute's memory chart; other L2 lookups (fills, other units, the fabric) are a remark on L2.
    """
    traffic, access = kernel["traffic_bytes"], kernel["access"]
    known = _passed(traffic)
    if len(known) < 2:
        return []
    remarks = {
        "l1": _remarks(access.get("l1_hit_frac"), _not_counted(access)),
        "l2": _remarks(access.get("l2_hit_frac"), _looked_up(traffic)),
        "dram": "",
    }
    stations: list[Station] = [("unit", "SMs", "", 0, None)]
    for level, count in known.items():
        stations.append(_link(level, count, kernel))
        stations.append(("unit", formatting.label(level), remarks[level], 0, None))
    return stations


def shared_flow(kernel: KernelEntry) -> list[Station]:
    """Return the stations from the SMs to shared memory, on the scale of `traffic_flow`; empty where no bytes are known."""
    count = kernel["traffic_bytes"].get("shared")
    if not count:
        return []
    conflicts = kernel["access"].get("bank_conflict_frac")
    remark = f"{formatting.share(conflicts)} of wavefronts are bank conflicts" if conflicts else ""
    return [
        ("unit", "SMs", "", 0, None),
        _link("shared", count, kernel),
        ("unit", formatting.label("shared"), remark, 0, None),
    ]


def _passed(traffic: Record) -> dict[str, float]:
    return {level: count for level in ("l1", "l2", "dram") if (count := traffic.get(level)) is not None}


def _link(level: str, count: float, kernel: KernelEntry) -> Station:
    """Return the traffic of a level: bytes, directions, how much of the peak bandwidth that is, and a width linear in the bytes."""
    traffic = kernel["traffic_bytes"]
    most = max([*_passed(traffic).values(), traffic.get("shared") or 0.0])
    width = max(round(_THICKEST_PX * count / most, 1), _THINNEST_PX) if most else _THINNEST_PX
    bandwidth = kernel.get("bandwidth", {}).get(level)
    frac = None if bandwidth is None else bandwidth["frac"]
    of_peak = "" if frac is None else f"{formatting.share(frac)} of peak"
    return (
        "traffic",
        formatting.byte_count(count),
        "; ".join(filter(None, (of_peak, _directions(level, traffic)))),
        width,
        frac,
    )


def one_more_block_sentence(kernel: KernelEntry) -> str:
    """Return what a block must need at most so that one more fits on an SM, and what that gives; empty where not known."""
    occupancy, launch = kernel["occupancy"], kernel["launch"]
    after, now = occupancy.get("one_more_block_frac"), occupancy.get("theoretical_frac")
    needs = {
        "registers": (
            formatting.quantity(occupancy.get("registers_for_one_more_block"), "count"),
            formatting.quantity(launch.get("n_registers_per_thread"), "count"),
            "registers per thread",
        ),
        "shared_memory": (
            formatting.kibibytes(occupancy.get("shared_bytes_for_one_more_block")),
            formatting.kibibytes(launch.get("shared_bytes_per_block")),
            "of shared memory",
        ),
    }
    asked = [needs[name] for name in occupancy.get("limiters") or () if name in needs]
    known = [f"at most {most} {what} (now {has})" for most, has, what in asked if formatting.MISSING not in {most, has}]
    if not known or len(known) < len(occupancy["limiters"]):
        return ""
    gain = ""
    if after is not None and now is not None:
        gain = f": theoretical occupancy {formatting.share(min(after, 1.0))} instead of {formatting.share(now)}"
    return f"One more block fits on an SM with {' and '.join(known)}{gain}."


def _remarks(hit_frac: float | None, other: str) -> str:
    return "; ".join(filter(None, ("" if hit_frac is None else f"{formatting.share(hit_frac)} hits", other)))


def _not_counted(access: Record) -> str:
    """Return a remark on the kernel's traffic that L1's bytes do not include; empty where there is none."""
    names = [name for quantity, name in _UNCOUNTED.items() if (access.get(quantity) or 0) > 0]
    return f"{' and '.join(names)} not counted" if names else ""


def _looked_up(traffic: Record) -> str:
    """Return the bytes of all L2 lookups, where these are well above what the L1s requested; else empty."""
    asked, looked_up = traffic.get("l2"), traffic.get("l2_all")
    if asked is None or looked_up is None or looked_up <= _MUCH_MORE * asked:
        return ""
    return f"{formatting.byte_count(looked_up)} looked up in total"


def _directions(level: str, traffic: Record) -> str:
    read, written = traffic.get("dram_read"), traffic.get("dram_write")
    if level != "dram" or read is None or written is None:
        return ""
    return f"{formatting.byte_count(read)} read, {formatting.byte_count(written)} written"
