"""A kernel's quantities as rows of its detail: those of NVIDIA's sections in their own blocks, all others with their meanings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ncuroof import wording
from ncuroof.diagnosis import Rules
from ncuroof.metrics import Catalogue, quantity_unit
from ncuroof.present.analysed import Record
from ncuroof.present.explanations.quantity_label import quantity_label
from ncuroof.present.page.interned import Cell, Texts

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
            wording.kibibytes(value) if unit == "byte" and _SHARED_MEMORY in quantity else wording.quantity(value, unit)
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

    def shown(self, kernel: Record, names: Sequence[str]) -> list[list[Cell]]:
        """Return number and value of the named quantities that are not zero, and a remark on those without a value."""
        values = dict(_values(kernel, _OTHERS))
        rows = [self.row(name, value) for name in names if (value := values.get(name))]
        unknown = [quantity_label(name) for name in names if name in values and values[name] is None]
        return rows + self._texts.note(_NO_VALUE, unknown)

    def checks(self, kernel: Record) -> list[list[Cell]]:
        """Return the checks behind this kernel's caveats, and a remark with the number of checks that passed."""
        known = {name: value for name, value in _values(kernel, ("check",)) if value is not None}
        failed = _asked(self._caveats, kernel["caveats"])
        held = [name for name in known if name in self._checks and name not in failed]
        rows = [self.row(name, value) for name, value in known.items() if name in failed]
        if not held:
            return rows
        return [*rows, [f"{wording.counted(len(held), 'check')} {'passes' if len(held) == 1 else 'pass'}."]]

    def others(self, kernel: Record) -> list[list[Cell]]:
        """Return number and value of all quantities that no other block of the detail shows."""
        units = {f"utilisation.{key}" for key in kernel["utilisation"] if key not in _OF_THE_TREE}
        in_sight = {*OCCUPANCY, *ACCESS}
        return [
            self.row(name, value)
            for name, value in _values(kernel, _OTHERS)
            if value is not None and name not in units and not (value and name in in_sight)
        ]


def beyond_speed_of_light(kernel: Record) -> float | None:
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
