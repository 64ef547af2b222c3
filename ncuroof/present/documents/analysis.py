"""Builds the JSON document `ncuroof.analysis/1`: the analysis as plain data, which every other presentation reads.

Schema history:
    1  2026-11-20  first version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from ncuroof.diagnosis import Action, Summary, of_step, outlook
from ncuroof.enums import capability_text
from ncuroof.ingest import RawReport
from ncuroof.present.analysed import Analysed, Document
from ncuroof.present.documents.json_text import TOOL, json_text
from ncuroof.present.documents.kernels import kernel_entries, weighting_document
from ncuroof.present.schemas.analysis import (
    ActionEntry,
    AnalysisDocument,
    BreakdownsEntry,
    CallEntry,
    CeilingEntry,
    DeviceEntry,
    ExpectedEntry,
    GroupEntry,
    ModuleEntry,
    OperatorEntry,
    OutlookEntry,
    SelectionBlock,
    SelectionEntry,
    SourceEntry,
    SumsEntry,
    UtilisationEntry,
    VerdictEntry,
    WorkSumEntry,
)
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.source_lines import first_place
from ncuroof.tables import BREAKDOWN_KINDS

if TYPE_CHECKING:
    from ncuroof.expected import Expected

SCHEMA = "ncuroof.analysis/1"


def document(analysed: Analysed, *, ids: Sequence[int] | None = None) -> AnalysisDocument:
    """Return the document of an analysis: numbers in base units, None for what is not known, kernels in file order.

    Args:
        analysed: an analysis.
        ids: the kernels to describe, in this order; `scaling` and `expected` are then None. None describes all kernels. Sources,
            devices and summary always cover the whole analysis.
    """
    groups = analysed.groups
    found = outlook(analysed.actions, groups, analysed.diagnosis.verdicts, analysed.summary, analysed.weighting)
    kernels = kernel_entries(analysed, ids)
    actions = _actions(analysed, kernels)
    return {
        "schema": SCHEMA,
        "tool": TOOL,
        "sources": [_source(report) for report in analysed.reports],
        "devices": _devices(analysed),
        "summary": {
            **_sums(analysed.summary),
            **selection_document(analysed),
            **weighting_document(analysed),
            **_breakdowns(analysed),
            "work": {row.pop("precision"): cast("WorkSumEntry", row) for row in analysed.totals.to_dicts()},
            "outlook": cast("OutlookEntry", asdict(found)),
            "actions": actions,
        },
        "ceilings": cast("list[CeilingEntry]", analysed.roofline_tables.ceilings.to_dicts()),
        "instruction_ceilings": cast("list[CeilingEntry]", analysed.roofline_tables.instruction_ceilings.to_dicts()),
        "groups": cast("list[GroupEntry]", groups.to_dicts()),
        "actions": actions,
        "expected": expected_document(analysed.expected) if ids is None else None,
        "kernels": kernels,
    }


def analysis_json(analysed: Analysed) -> str:
    """Return the document of an analysis as JSON."""
    return json_text(document(analysed))


def _source(report: RawReport) -> SourceEntry:
    session = report.session
    return {
        "file": report.file,
        "sha256": report.sha256,
        "ncu_version": session.ncu_version,
        "driver_version": session.driver_version,
        "cuda_version": session.cuda_version,
        "command_line": session.command_line,
        "clock_control": session.clock_control,
        "cache_control": session.cache_control,
        "replay_mode": session.replay_mode,
        "sections": list(report.sections),
        "damage": report.damage,
        "simulated": session.is_simulated,
    }


def _devices(analysed: Analysed) -> list[DeviceEntry]:
    from ncuroof.whatif import recorded_dram  # noqa: PLC0415  not needed until a document is made

    profiles, dram = analysed.roofline_tables.profiles, recorded_dram(analysed.measurements.kernels)
    return [
        {
            "name": row["name"],
            "compute_capability": _compute_capability(row["compute_capability"]),
            "sm_count": row["sm_count"],
            "dram_bytes_per_s": dram.get(row["device"]),
            "profile": profile.id if (profile := profiles.get(row["device"])) is not None else None,
        }
        for row in analysed.measurements.devices.iter_rows(named=True)
    ]


def _compute_capability(number: int | None) -> str | None:
    return None if number is None else capability_text(number)


def _sums(summary: Summary) -> SumsEntry:
    return {
        "n_kernels": summary.n_kernels,
        "n_failed": summary.n_failed,
        "n_launches": summary.n_launches,
        "duration_ns": summary.duration_ns,
        "recoverable_ns": summary.recoverable_ns,
        "n_debug_builds": summary.n_debug_builds,
        "debug_build_frac": summary.debug_build_frac,
        "doubted_frac": summary.doubted_frac,
        "by_doubt": dict(summary.by_doubt),
        "by_verdict": {name: cast("VerdictEntry", asdict(share)) for name, share in summary.by_verdict.items()},
    }


def _breakdowns(analysed: Analysed) -> BreakdownsEntry:
    by_kind: Document = {f"by_{kind}": [] for kind in BREAKDOWN_KINDS}
    for row in analysed.breakdowns.iter_rows(named=True):
        by_kind[f"by_{row.pop('kind')}"].append(row)
    return cast("BreakdownsEntry", by_kind)


def _actions(analysed: Analysed, kernels: Sequence[KernelEntry]) -> list[ActionEntry]:
    """Return what to do over a step or the run; the advice for a finding is that for the launch which saves most."""
    found = of_step(analysed.actions, analysed.weighting)
    entries = {kernel["id"]: kernel for kernel in kernels}
    missing = [action.launches[0] for action in found if action.finding and action.launches[0] not in entries]
    entries |= {kernel["id"]: kernel for kernel in kernel_entries(analysed, missing)} if missing else {}
    return [_action(action, entries) for action in found]


def _action(action: Action, kernels: Mapping[int, KernelEntry]) -> ActionEntry:
    values = cast("ActionEntry", {key: value for key, value in asdict(action).items() if key != "launches"})
    launches = list(action.launches)
    findings = kernels[launches[0]]["findings"] if launches else []
    own = next((finding for finding in findings if finding["id"] == action.finding), None)
    return {
        **values,
        "advice": action.advice if own is None else own["advice"],
        "where": first_place(own["where"]) if own is not None and own["where"] else None,
        "kernels": launches,
    }


def expected_document(found: Expected) -> ExpectedEntry | None:
    """Return calls, operators, modules and MFU; None where no NVTX range names an operator with its shapes."""
    if found.calls.is_empty():
        return None
    return {
        "calls": cast("list[CallEntry]", found.calls.drop("call").to_dicts()),
        "operators": cast("list[OperatorEntry]", found.operators.to_dicts()),
        "modules": cast("list[ModuleEntry]", found.modules.to_dicts()),
        "utilisation": _utilisation(found),
    }


def utilisation_document(analysed: Analysed) -> UtilisationEntry | None:
    """Return model FLOP utilisation; None without NVTX ranges, for several GPUs, or where the peak is unknown."""
    if not analysed.measurements.kernels["nvtx"].list.len().sum():
        return None  # operators are not even looked for
    return _utilisation(analysed.expected)


def _utilisation(found: Expected) -> UtilisationEntry | None:
    return None if found.utilisation is None else cast("UtilisationEntry", asdict(found.utilisation))


def selection_document(analysed: Analysed) -> SelectionBlock:
    """Return the block under its key `selection`; empty for a whole run."""
    return {} if analysed.selection is None else {"selection": cast("SelectionEntry", asdict(analysed.selection))}
