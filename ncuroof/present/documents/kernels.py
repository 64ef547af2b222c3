"""The kernels of the document `ncuroof.analysis/1`: an entry for each, with its quantities, verdict and findings.

An entry also has the messages of NVIDIA's own rules, with whether they agree with the verdict, and the resources that limit the
resident blocks per SM, with how much less a block must use for one more to fit. How sums over a run are weighted is the block
`weighting` of the document's summary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

import polars as pl

from ncuroof import formatting
from ncuroof.diagnosis import Diagnosis, Rules, load_rules, uneven_frac, vendor_verdict, with_weights
from ncuroof.ingest import RawReport
from ncuroof.metrics import code_of, load_catalogue, quantity_unit
from ncuroof.metrics.families import launched_by_pytorch
from ncuroof.metrics.limiters import occupancy_limiters
from ncuroof.present.analysed import Analysed, Document, Record
from ncuroof.present.explanations.meanings import quantity_label
from ncuroof.present.schemas.analysis import UnprofiledEntry, WallTimeEntry, WeightingBlock
from ncuroof.present.schemas.kernels import (
    FindingEntry,
    InstructionsEntry,
    KernelEntry,
    LevelEntry,
    PhaseEntry,
    PhasePointEntry,
    ProcessEntry,
    QuantityEntries,
    SamplesEntry,
    ScalingEntry,
    StandsForEntry,
    TimeInsideEntry,
    VendorEntry,
)
from ncuroof.present.sentences.savings import expected_basis, gain_basis
from ncuroof.present.sentences.source_lines import sampled_lines, where
from ncuroof.roofline import INSTRUCTION_DEFINITION
from ncuroof.tables import SAMPLED_UNITS

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

_SAMPLED_LEVEL = "dram"
"""Memory level of a phase's point: the only one whose traffic ncu samples."""

SMALL_BLOCK = 128
"""Threads per block that `occupancy.small_blocks_frac` assumes."""

_LEAST_GAIN_FRAC = 0.1
"""Least gain in occupancy for which smaller blocks are recommended."""

_SAME_FRAC = 0.005
"""Occupancies that differ by less are the same: ncu prints two decimals of a percentage."""

LIMITS = {
    "registers": "registers",
    "shared_memory": "shared memory",
    "warps": "warp slots",
    "blocks": "block slots",
    "barriers": "hardware barriers",
}
"""Resources that limit the resident blocks, with their names in sentences."""


def kernel_entries(analysed: Analysed, ids: Sequence[int] | None) -> list[KernelEntry]:
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
        self._code = _by_kernel(code_of(analysed.reports).select("id", "sha256", "n_instructions").drop_nulls(), wanted)
        self._time_inside = time_inside(diagnosis, wanted)
        self._busy = defaultdict(list) if ids is not None else _by_kernel(_busy_times(analysed), wanted)

    def describe(self) -> list[KernelEntry]:
        """Return the kernels' entries of the document."""
        return [self._kernel(row) for row in self._rows.iter_rows(named=True)]

    def _kernel(self, row: Mapping[str, Any]) -> KernelEntry:
        number = row["id"]
        path = self._path[number]
        groups = self._groups(row)
        limiters = groups["occupancy"]["limiters"]
        process: ProcessEntry = {"id": row["process_id"], "name": row["process_name"]}
        return {
            "id": number,
            "source": row["source"],
            "device": row["device"],
            "name": row["name"],
            "short_name": row["short_name"],
            "family": row["family"],
            "workload": row["workload"],
            "failed": row["failed"],
            "grid": row["grid"],
            "block": row["block"],
            "stream": row["stream"],
            "context": row["context"],
            "process": process if row["process_id"] is not None else None,
            "nvtx": row["nvtx"],
            "duration_ns": row["duration_ns"],
            **self._stands_for(row),
            "sm_clock_hz": row["sm_clock_hz"],
            "passes": None if row["passes"] is None else int(row["passes"]),
            "work": self._with_shares("compute", "precision", self._work[number], number),
            "bandwidth": self._with_shares("bandwidth", "level", self._bandwidth[number], number),
            **groups,
            "code": next(iter(self._code[number]), None),
            "points": self._points[number],
            "instructions": self._instructions(row),
            "verdict": row["verdict"],
            "limiter": row["limiter"],
            "side": row["side"],
            "dominant_precision": row["dominant_precision"],
            "confidence": row["confidence"],
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
            **self._time_inside.get(number, {}),
        }

    def _stands_for(self, row: Mapping[str, Any]) -> StandsForEntry:
        if not self._is_weighted:
            return {}
        return {
            "n_represented": row["n_represented"],
            "weight": row["weight"],
            "counted_average_ns": row["counted_average_ns"],
            "counted_shortest_ns": row["counted_shortest_ns"],
            "counted_longest_ns": row["counted_longest_ns"],
        }

    def _with_shares(self, kind: str, key: str, entries: list[Document], number: int) -> Document:
        """Return the entries by name, with the shares of the data-sheet roof and of the measured roof that the kernel reached."""
        shares = {share["name"]: share for share in self._shares[number] if share["kind"] == kind}
        by_name = {entry.pop(key): entry for entry in entries}
        for name, entry in by_name.items():
            entry.update((part, shares.get(name, {}).get(part)) for part in _ROOF_SHARES)
        return by_name

    def _instructions(self, row: Mapping[str, Any]) -> InstructionsEntry | None:
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

    def _groups(self, row: Mapping[str, Any]) -> QuantityEntries:
        groups: Document = {
            group: {key: row[column] for key, column in columns.items()} for group, columns in self._columns.items()
        }
        groups["occupancy"]["limiters"] = occupancy_limiters(row)
        groups["traffic_definition"] = {level: row[column] for level, column in self._traffic_definitions.items()}
        groups["stalls"] = {reason: share for reason, share in groups["stalls"].items() if share is not None}
        return cast("QuantityEntries", groups)

    def _above_roof_cause(self, caveats: Sequence[str]) -> str | None:
        return self._rules.caveats[ABOVE_ROOF].likely_cause(caveats) if ABOVE_ROOF in caveats else None

    def _finding(self, entry: Document, row: Mapping[str, Any], limiters: Sequence[str]) -> FindingEntry:
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
            "gain_basis": None if rule.fix is None else gain_basis(rule.fix, row, entry["gain_ns"], quantity_label),
            "expected_ns": entry["expected_ns"],
            "expected_low_ns": entry["expected_low_ns"],
            "expected_high_ns": entry["expected_high_ns"],
            "expected_basis": None
            if rule.fix is None
            else expected_basis(rule.fix, row, entry["limit"], entry["expected_ns"]),
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


def _scaling(busy: Document) -> ScalingEntry:
    """Return how much of a launch's time scales with which peak, for projections; see docs/whatif.md."""
    return {
        "busy_ns": {name.removeprefix(_BUSY): value for name, value in busy.items() if name.startswith(_BUSY)},
        "reached_frac": busy["reached_frac"],
        "reached_by_whole_l2_frac": busy["reached_by_whole_l2_frac"],
        "tensor_precision": busy["tensor_precision"],
        "n_blocks": busy["n_blocks"],
        "n_resident_blocks": busy["n_resident_blocks"],
        "shared_bytes_per_block": busy["shared_bytes_per_block"],
    }


def _busy_times(analysed: Analysed) -> pl.DataFrame:
    from ncuroof.whatif import busy_times  # noqa: PLC0415  not needed until a document is made

    return busy_times(analysed.kernels, analysed.roofline_tables.work)


def _by_kernel(table: pl.DataFrame, ids: pl.Series) -> defaultdict[int, list[Any]]:
    """Return the rows of a table by kernel, without their `id`."""
    rows: defaultdict[int, list[Any]] = defaultdict(list)
    chosen = table.filter(pl.col("id").is_in(ids.implode()))
    for row in chosen.iter_rows(named=True):
        rows[row.pop("id")].append(row)
    return rows


def vendor_rules(reports: Iterable[RawReport]) -> pl.DataFrame:
    """Return the messages of NVIDIA's rules of all reports, with the kernel's `id` in the analysis."""
    parts, n_before = [], 0
    for report in reports:
        parts.append(report.rules.with_columns((pl.col("row") + n_before).cast(pl.UInt32).alias("id")))
        n_before += report.workloads.height
    return pl.concat(parts).select("id", "rule_id", "type", "title", "message", "speedup_frac", "scope")


def vendor_block(messages: Sequence[Record], verdict: str, path: Iterable[Record], rules: Rules) -> VendorEntry:
    """Return NVIDIA's verdict and messages, whether ncuroof's verdict agrees, and why not where it does not.

    Args:
        messages: rows of `vendor_rules` for this kernel, without `id`.
        verdict: ncuroof's.
        path: rows of PATH for this kernel, which led to the verdict.
        rules: for what NVIDIA's messages mean.
    """
    described = [{"id" if key == "rule_id" else key: value for key, value in each.items()} for each in messages]
    found = vendor_verdict(messages, verdict, path, rules.vendor)
    return cast("VendorEntry", asdict(found) | {"rules": described})


def with_limits(advice: str, limiters: Sequence[str], row: Mapping[str, Any], cures: Mapping[str, str]) -> str:
    """Return an advice with its placeholders `{limiters}` and `{cures}` filled in for this kernel.

    Args:
        advice: text with or without placeholders.
        limiters: names in `LIMITS`; empty where they are not known: the cures are then those of registers and shared memory.
        row: canonical quantities of the kernel.
        cures: what to change, by name in `LIMITS`.
    """
    likeliest = limiters or ("registers", "shared_memory")
    filled = advice.replace("{limiters}", limiters_in_words(limiters, row))
    return filled.replace("{cures}", "; ".join([*_smaller_blocks(row), *(cures[name] for name in likeliest)]))


def _smaller_blocks(row: Mapping[str, Any]) -> list[str]:
    """Return blocks of 128 threads as a cure, where the kernel's are larger and these raise theoretical occupancy enough."""
    now, then = row.get("occupancy.theoretical_frac"), row.get("occupancy.small_blocks_frac")
    n_threads = row.get("launch.n_threads_per_block")
    if now is None or then is None or n_threads is None or n_threads <= SMALL_BLOCK or then < now + _LEAST_GAIN_FRAC:
        return []
    return [f"blocks of {SMALL_BLOCK} threads ({formatting.share(then)} occupancy at the same registers per thread)"]


def limiters_in_words(limiters: Sequence[str], row: Mapping[str, Any]) -> str:
    """Return the limiters, with what would let one more block fit and the occupancy that the gain of more blocks assumes.

    Example: "registers (64 per thread; at 48 one more block fits, 62.5 % occupancy; the gain assumes up to 100.0 %)".

    Args:
        limiters: names in `LIMITS`.
        row: canonical quantities of the kernel.
    """
    return " and ".join(LIMITS[name] + _one_more(name, row) for name in limiters) or "its resources"


def _one_more(limiter: str, row: Mapping[str, Any]) -> str:
    if limiter == "registers":
        now, then = row["launch.n_registers_per_thread"], row["occupancy.registers_for_one_more_block"]
        if _is_reachable(now, then):
            return f" ({now:.0f} per thread; at {then:.0f} one more block fits{_occupancies(row)})"
    if limiter == "shared_memory":
        now, then = row["launch.shared_bytes_per_block"], row["occupancy.shared_bytes_for_one_more_block"]
        if _is_reachable(now, then):
            of_driver = _of_driver(row)
            own, fits = (formatting.kibibytes(each - (of_driver or 0)) for each in (now, then))
            whose = " with the driver's" if of_driver is None else ""
            return f" ({own} per block{whose}; at {fits} one more block fits{_occupancies(row)})"
    return ""


def _of_driver(row: Mapping[str, Any]) -> float | None:
    """Return the shared memory that the driver reserves per block, in bytes; None if not known."""
    whole, own = row["launch.shared_bytes_per_block"], row["launch.own_shared_bytes_per_block"]
    return None if own is None or own > whole else float(whole - own)


def _occupancies(row: Mapping[str, Any]) -> str:
    """Return theoretical occupancy with one more block, and at the next limit, up to which the gain goes, where that is higher."""
    one_more, most = row.get("occupancy.one_more_block_frac"), row.get("occupancy.next_limit_frac")
    if one_more is None or one_more > 1:
        return ""
    is_beyond = most is not None and most > one_more + _SAME_FRAC
    assumed = f"; the gain assumes up to {formatting.share(most)}" if is_beyond else ""
    return f", {formatting.share(one_more)} occupancy{assumed}"


def _is_reachable(now: float | None, then: float | None) -> bool:
    return now is not None and then is not None and 0 < then < now


def weighting_document(analysed: Analysed) -> WeightingBlock:
    """Return the block under its key `weighting`; empty without a counting run, where each launch represents only itself."""
    weighting = analysed.weighting
    if weighting is None:
        return {}
    return {
        "weighting": {
            "n_launches": weighting.n_launches,
            "duration_ns": weighting.duration_ns,
            "covered_frac": weighting.covered_frac,
            "not_recorded": [cast("UnprofiledEntry", asdict(each)) for each in weighting.not_recorded],
            "uneven_frac": uneven_frac(weighting, analysed.measurements.kernels, analysed.diagnosis.verdicts),
            "n_unmatched": weighting.n_unmatched,
            "computation_frac": weighting.computation_frac,
            "uncounted_frac": weighting.uncounted_frac,
            "timed_frac": weighting.timed_frac,
            "foreign": list(weighting.foreign),
            "wall_times": [cast("WallTimeEntry", time.to_dict()) for time in weighting.wall_times],
            "is_summary": weighting.is_summary,
        }
    }


# ---- the time inside a kernel -------------------------------------------------------------------------------------------------


def time_inside(diagnosis: Diagnosis, ids: pl.Series) -> dict[int, TimeInsideEntry]:
    """Return the blocks `phases` and `samples` of each kernel that was sampled, by its `id`.

    Args:
        diagnosis: for PHASES and SAMPLES.
        ids: the kernels that are wanted.
    """
    is_wanted = pl.col("id").is_in(ids.implode())
    blocks: dict[int, TimeInsideEntry] = {
        row["id"]: {"phases": [], "samples": _samples(row)}
        for row in diagnosis.samples.filter(is_wanted).iter_rows(named=True)
    }
    for row in diagnosis.phases.filter(is_wanted).iter_rows(named=True):
        blocks[row["id"]]["phases"].append(_phase(row))
    return blocks


def _phase(row: Mapping[str, Any]) -> PhaseEntry:
    units = {unit: row[f"utilisation.{unit}"] for unit in SAMPLED_UNITS}
    point: PhasePointEntry = {
        "level": _SAMPLED_LEVEL,
        "precision": row["precision"],
        "intensity_flop_per_byte": row["intensity_flop_per_byte"],
        "flop_per_s": row["flop_per_s"],
        "roof_frac": row["roof_frac"],
    }
    return PhaseEntry(
        start_ns=row["start_ns"],
        duration_ns=row["duration_ns"],
        kind=row["kind"],
        utilisation={unit: share for unit, share in units.items() if share is not None},
        inferred={each["unit"]: each["frac"] for each in row["inferred"] or ()},
        sm_active_frac=row["sm_active_frac"],
        verdict=row["verdict"],
        limiter=row["limiter"],
        stall=row["stall"],
        stall_frac=row["stall_frac"],
        point=point if row["intensity_flop_per_byte"] is not None else None,
    )


def _samples(row: Mapping[str, Any]) -> SamplesEntry:
    return SamplesEntry(
        interval_ns=row["interval_ns"],
        n=row["n"],
        passes=row["passes"],
        series={each["name"]: each["unit"] for each in row["series"]},
        levels={
            each["course"]: LevelEntry(sampled_frac=each["sampled_frac"], counted_frac=each["counted_frac"])
            for each in row["levels"]
        },
        courses={each["course"]: each["values"] for each in row["courses"]},
        caveat=row["caveat"],
    )
