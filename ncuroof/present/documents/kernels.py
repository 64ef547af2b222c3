"""The kernels of the document `ncuroof.analysis/1`: an entry for each, with its quantities, verdict and findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from ncuroof.diagnosis import load_rules, with_weights
from ncuroof.metrics import load_catalogue, quantity_unit
from ncuroof.metrics.families import launched_by_pytorch
from ncuroof.metrics.limiters import occupancy_limiters
from ncuroof.present.analysed import Analysed, Document
from ncuroof.present.documents.occupancy_limits import with_limits
from ncuroof.present.documents.vendor import vendor_block, vendor_rules
from ncuroof.present.documents.weighting import STANDS_FOR
from ncuroof.present.explanations.quantity_label import quantity_label
from ncuroof.present.sentences.source_lines import sampled_lines, where
from ncuroof.roofline import INSTRUCTION_DEFINITION

QUANTITY_GROUPS = (
    "traffic_bytes",
    "utilisation",
    "occupancy",
    "access",
    "stalls",
    "scheduler",
    "launch",
    "arithmetic",
    "check",
)
"""Blocks of a kernel's entry; block `<group>` contains the quantities `<group>.<key>`."""

_TRAFFIC_DEFINITION = "definition.traffic_bytes."
"""Prefix of the columns that state what was counted as traffic at each level."""

ABOVE_ROOF = "above_roof"
"""The caveat whose likely cause is given for each kernel."""

_OCCUPANCY_LIMIT = "occupancy.limit_"
"""Prefix of the resident blocks that each resource allows; the document has the resources that allow the fewest."""

_BUSY = "busy."
_ROOF_SHARES = ("datasheet_frac", "reached_frac")


def kernel_entries(analysed: Analysed, ids: Sequence[int] | None) -> list[Document]:
    """Return the entries of the kernels with these ids, in this order, with `scaling` None; of all kernels where `ids` is None."""
    return _Kernels(analysed, ids).describe()


class _Kernels:
    """Describes kernels; groups the tables that belong to them by kernel once, up front."""

    def __init__(self, analysed: Analysed, ids: Sequence[int] | None) -> None:
        placed, diagnosis = analysed.roofline_tables, analysed.diagnosis
        self._rules, self._catalogue = load_rules(), load_catalogue()
        table = analysed.measurements.kernels.hstack(placed.bounds.drop("id")).hstack(diagnosis.verdicts.drop("id"))
        table = with_weights(table.with_columns(launched_by_pytorch(table)), analysed.weights)
        self._is_weighted = analysed.weighting is not None
        self._rows = (
            table
            if ids is None
            else pl.DataFrame({"id": pl.Series(ids, dtype=pl.UInt32)}).join(
                table, on="id", how="left", maintain_order="left"
            )
        )
        names = self._rows.columns
        known = [name for name in names if not name.startswith(_OCCUPANCY_LIMIT)]
        self._columns = {group: _within(f"{group}.", known) for group in QUANTITY_GROUPS}
        self._traffic_definitions = _within(_TRAFFIC_DEFINITION, names)
        wanted = self._rows["id"]
        self._work = _by_kernel(placed.work, wanted)
        self._bandwidth = _by_kernel(placed.bandwidth, wanted)
        self._points = _by_kernel(placed.points, wanted)
        self._instruction_points = _by_kernel(placed.instruction_points.drop("definition"), wanted)
        self._path = _by_kernel(diagnosis.path.drop("step"), wanted)
        self._flips = _by_kernel(diagnosis.flips, wanted)
        self._findings = _by_kernel(diagnosis.findings, wanted)
        self._missing = _by_kernel(diagnosis.missing, wanted)
        self._lines = _by_kernel(analysed.measurements.lines, wanted)
        self._vendor = _by_kernel(vendor_rules(analysed.reports), wanted)
        self._shares = _by_kernel(placed.roof_shares, wanted)
        self._busy = defaultdict(list) if ids is not None else _by_kernel(_busy_times(analysed), wanted)

    def describe(self) -> list[Document]:
        """Return the kernels' entries of the document."""
        return [self._kernel(row) for row in self._rows.iter_rows(named=True)]

    def _kernel(self, row: Mapping[str, Any]) -> Document:
        number = row["id"]
        path = self._path[number]
        groups = self._groups(row)
        limiters = groups["occupancy"]["limiters"]
        process = {"id": row["process_id"], "name": row["process_name"]}
        return {
            **{
                key: row[key]
                for key in ("id", "source", "device", "name", "short_name", "family", "workload", "failed")
            },
            **{key: row[key] for key in ("grid", "block", "stream", "context")},
            "process": process if row["process_id"] is not None else None,
            "nvtx": row["nvtx"],
            "duration_ns": row["duration_ns"],
            **({key: row[key] for key in STANDS_FOR} if self._is_weighted else {}),
            "sm_clock_hz": row["sm_clock_hz"],
            "passes": None if row["passes"] is None else int(row["passes"]),
            "work": self._with_shares("compute", "precision", self._work[number], number),
            "bandwidth": self._with_shares("bandwidth", "level", self._bandwidth[number], number),
            **groups,
            "points": self._points[number],
            "instructions": self._instructions(row),
            **{key: row[key] for key in ("verdict", "limiter", "side", "dominant_precision", "confidence")},
            "path": path,
            "flip": next(iter(self._flips[number]), None),
            "caveats": row["caveats"],
            "above_roof_cause": self._above_roof_cause(row["caveats"]),
            "findings": [self._finding(entry, row, limiters) for entry in self._findings[number]],
            "lines": sampled_lines(self._lines[number]),
            "min_time_ns": row["min_time_ns"],
            "min_time_frac": row["roofline.min_time_frac"],
            "min_time_by": row["min_time_by"],
            "recoverable_ns": row["recoverable_ns"],
            "scaling": next(map(_scaling, self._busy[number]), None),
            "missing": self._missing[number],
            "vendor": vendor_block(self._vendor[number], row["verdict"], path, self._rules),
        }

    def _with_shares(self, kind: str, key: str, entries: list[Document], number: int) -> Document:
        """Return the entries by name, with the shares of the data-sheet roof and of the measured roof that the kernel reached."""
        shares = {share["name"]: share for share in self._shares[number] if share["kind"] == kind}
        by_name = {entry.pop(key): entry for entry in entries}
        for name, entry in by_name.items():
            entry.update((part, shares.get(name, {}).get(part)) for part in _ROOF_SHARES)
        return by_name

    def _instructions(self, row: Mapping[str, Any]) -> Document | None:
        """Return the block of the instruction roofline; None where the number of executed instructions is not known."""
        if row["instructions.warp_executed"] is None:
            return None
        return {
            "warp_executed": row["instructions.warp_executed"],
            "inst_per_s": row["instructions.warp_per_s"],
            "peak_inst_per_s": row["instructions.peak_warp_per_s"],
            "frac": row["instructions.frac"],
            "definition": INSTRUCTION_DEFINITION,
            "points": self._instruction_points[row["id"]],
        }

    def _groups(self, row: Mapping[str, Any]) -> Document:
        groups: Document = {
            group: {key: row[column] for key, column in columns.items()} for group, columns in self._columns.items()
        }
        groups["occupancy"]["limiters"] = occupancy_limiters(row)
        groups["traffic_definition"] = {level: row[column] for level, column in self._traffic_definitions.items()}
        groups["stalls"] = {reason: share for reason, share in groups["stalls"].items() if share is not None}
        return groups

    def _above_roof_cause(self, caveats: Sequence[str]) -> str | None:
        return self._rules.caveats[ABOVE_ROOF].likely_cause(caveats) if ABOVE_ROOF in caveats else None

    def _finding(self, entry: Document, row: Mapping[str, Any], limiters: Sequence[str]) -> Document:
        rule = self._rules.findings[entry["finding"]]
        name, ranges = row["name"] or "", row["nvtx"] or ()
        advice = rule.advice.text(row["family"], name, ranges, is_from_pytorch=row["is_from_pytorch"], quantities=row)
        return {
            "id": rule.id,
            "title": rule.title,
            "severity": entry["severity"],
            "advice": with_limits(advice, limiters, row, self._rules.occupancy_cures),
            "evidence": [
                {"quantity": name, "value": row[name], "unit": quantity_unit(name)}
                for name in rule.evidence
                if row[name] is not None
            ],
            "where": where(self._lines[row["id"]], rule.lines, self._catalogue),
            "gain_ns": entry["gain_ns"],
            "gain_basis": rule.basis(row, entry["gain_ns"], quantity_label),
            "is_most_worth": entry["is_most_worth"],
            "waste": {
                level: {"bytes": wasted, "frac": wasted / moved}
                for level, wasted in entry["waste_bytes"].items()
                if wasted and (moved := row[f"traffic_bytes.{level}"])
            },
        }


def _within(prefix: str, columns: Iterable[str]) -> dict[str, str]:
    """Return the columns that start with a prefix, by the rest of their names."""
    return {column.removeprefix(prefix): column for column in columns if column.startswith(prefix)}


def _scaling(busy: Document) -> Document:
    """Return how much of a launch's time scales with which peak, for projections; see docs/whatif.md."""
    names = (
        *("reached_frac", "reached_by_whole_l2_frac", "tensor_precision"),
        *("n_blocks", "n_resident_blocks", "shared_bytes_per_block"),
    )
    times = {name.removeprefix(_BUSY): value for name, value in busy.items() if name.startswith(_BUSY)}
    return {"busy_ns": times, **{name: busy[name] for name in names}}


def _busy_times(analysed: Analysed) -> pl.DataFrame:
    from ncuroof.whatif import busy_times  # noqa: PLC0415  not needed until a document is made

    return busy_times(analysed.kernels, analysed.roofline_tables.work)


def _by_kernel(table: pl.DataFrame, ids: pl.Series) -> defaultdict[int, list[Document]]:
    """Return the rows of a table by kernel, without their `id`."""
    rows: defaultdict[int, list[Document]] = defaultdict(list)
    chosen = table.filter(pl.col("id").is_in(ids.implode()))
    for row in chosen.iter_rows(named=True):
        rows[row.pop("id")].append(row)
    return rows
