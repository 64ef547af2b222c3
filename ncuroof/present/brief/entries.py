"""Actions and kernels as a brief has them: each in full, and in short where the budget leaves no room for more.

All numbers are those of the document `ncuroof.analysis/1`, under its names. Text of the report (names, files) is cut, as a report
can hold names of any length, and made printable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ncuroof import formatting
from ncuroof.present.analysed import Document, Record
from ncuroof.present.brief.evidence import decisions, evidence, finding_evidence, limiter_evidence
from ncuroof.present.schemas.analysis import GroupEntry, SourceEntry
from ncuroof.present.schemas.kernels import FindingEntry, KernelEntry, SampledLineEntry
from ncuroof.present.sentences.actions import most_worth
from ncuroof.present.sentences.collect_options import RAW_PAGE, SHARED_SLICE, is_on_shared_slice, raw_page_tells
from ncuroof.present.sentences.phases import UNLIKE, limits
from ncuroof.present.sentences.source_lines import first_place

SAVINGS = ("expected_ns", "expected_low_ns", "expected_high_ns", "gain_ns")
"""Keys of what something saves: expected, between what eight of ten such changes save, and at most."""

NAME_BYTES = 72
"""Most bytes of a name: what a mangled or templated one needs to be recognised (a choice)."""

DEEP_NAME_BYTES = 240
_PLACE_BYTES = 80
_N_EVIDENCE, _N_MISSING, _N_KERNELS_OF_ACTION = 3, 4, 5
_N_NUMBERS, _N_LINES, _N_STALLS = 14, 5, 4
_N_LIMITS = 3
"""Limits over a kernel's time, of a kernel whose verdict is their mean."""

Section = tuple[str, Any]
"""A key of a kernel's entry and its value; a list's values follow each other, so that those that fit can be taken."""


def cut(text: str, n_bytes: int) -> str:
    """Return text of a report as a printable line that takes at most `n_bytes` in JSON; an ellipsis stands for what is cut."""
    line = " ".join(formatting.printable(text[:n_bytes]).split())
    if len(text) <= n_bytes and _n_bytes(line) <= n_bytes:
        return line
    kept, left = [], n_bytes - len("…".encode())
    for character in line:
        left -= _n_bytes(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def _n_bytes(text: str) -> int:
    """Return the bytes of printable text in JSON, where quotes and backslashes take two."""
    return len(text.encode()) + text.count('"') + text.count("\\")


def action(found: Record) -> Document:
    """Return an action of the document: what it saves, what to do, where, and the kernels that it saves most in."""
    place = cut(found["where"] or "", _PLACE_BYTES)
    return {
        **{key: found[key] for key in ("rank", "id", "title", *SAVINGS)},
        **({"per_unit_of_work": True} if found["needs_more_work"] else {}),
        "advice": formatting.first_clause(found["advice"] or ""),
        **({"where": place} if place else {}),
        **({"n_launches": found["n_launches"]} if found["n_launches"] is not None else {}),
        **({"kernels": found["kernels"][:_N_KERNELS_OF_ACTION]} if found["kernels"] else {}),
    }


def short_kernel(kernel: KernelEntry, group: GroupEntry, share: float | None) -> Document:
    """Return the shortest entry of a kernel: which it is, its time, and what bounds it.

    Args:
        kernel: an entry of the document.
        group: the row of GROUPS that it represents.
        share: of the group, of the run's GPU time.
    """
    finding = most_worth(kernel["findings"])
    return {
        "id": kernel["id"],
        "name": cut(formatting.kernel_name(kernel), NAME_BYTES),
        "n": group["n_launches"],
        "ns": kernel["duration_ns"],
        "share": share,
        "verdict": kernel["verdict"],
        "limiter": kernel["limiter"],
        "confidence": kernel["confidence"],
        "do": [] if finding is None else [{key: finding[key] for key in ("id", "expected_ns")}],
    }


def full_kernel(
    kernel: KernelEntry, group: GroupEntry, share: float | None, words: Sequence[str], said: Collection[tuple[str, str]]
) -> Document:
    """Return the entry of a kernel with the numbers that decided, what to do first, and what would change the verdict.

    Args:
        kernel: an entry of the document.
        group: the row of GROUPS that it represents.
        share: of the group, of the run's GPU time.
        words: by which it differs from kernels of the same short name.
        said: actions that the brief has already, with their advice; it is left out where a finding has the same.
    """
    finding = most_worth(kernel["findings"])
    entry = short_kernel(kernel, group, share)
    if words:
        entry["differs"] = cut(", ".join(words), NAME_BYTES)
    entry["min_time_frac"] = kernel["min_time_frac"]
    entry["because"] = _because(kernel, finding)
    entry["do"] = [] if finding is None else [_do_first(finding, said)]
    entry["flip"] = _flip(kernel)
    if kernel["caveats"]:
        entry["caveats"] = list(kernel["caveats"])
    if UNLIKE in kernel["caveats"]:
        entry["phases"] = [asdict(limit) for limit in limits(kernel)[:_N_LIMITS]]
    if kernel["missing"]:
        entry["missing"] = [each["quantity"] for each in kernel["missing"]][:_N_MISSING]
        entry["n_missing"] = len(kernel["missing"])
    return entry


def _because(kernel: KernelEntry, finding: FindingEntry | None) -> list[Document]:
    """Return the closest decision, how busy the limiter is, and the first evidence of the finding, without repetitions."""
    of_finding = () if finding is None else finding_evidence(kernel, finding)
    decided = decisions(kernel)[:1]
    limiting = limiter_evidence(kernel)
    is_new = limiting is not None and limiting["v"] not in [
        each["v"] for each in decided
    ]  # the busiest unit is the limiter
    candidates = (*decided, *([limiting] if is_new else ()), *of_finding)
    by_id: dict[str, Document] = {}
    for each in filter(None, candidates):
        by_id.setdefault(each["e"], each)
    return list(by_id.values())[:_N_EVIDENCE]


def _do_first(finding: FindingEntry, said: Collection[tuple[str, str]]) -> Document:
    """Return what to do in a kernel; its interval, and an advice that is said already, are told in depth."""
    entry = _do(finding)
    left_out = ("expected_low_ns", "expected_high_ns", *(["advice"] if (entry["id"], entry["advice"]) in said else ()))
    return {key: value for key, value in entry.items() if key not in left_out}


def _do(finding: Record) -> Document:
    place = cut(first_place(finding["where"]), _PLACE_BYTES)
    return {
        "id": finding["id"],
        **{key: finding[key] for key in SAVINGS},
        "advice": formatting.first_clause(finding["advice"]),
        **({"where": place} if place else {}),
    }


def _flip(kernel: KernelEntry) -> Document | None:
    """Return what the verdict becomes if which quantity changes by which share; None where no change of one is known to do it."""
    flip = kernel["flip"]
    if flip is None:
        return None
    return {"becomes": flip["becomes"], "e": f"k{kernel['id']}.{flip['quantity']}", "change_frac": flip["change_frac"]}


def options(kernel: KernelEntry, sources: Sequence[SourceEntry]) -> Iterator[str]:
    """Yield how to collect what a kernel lacks: ncu's options, or how else."""
    if is_on_shared_slice(kernel):
        yield SHARED_SLICE
    elif kernel["missing"] and raw_page_tells(kernel, sources):
        yield f"print everything that was collected: ncu --import REPORT {RAW_PAGE}"
    else:
        yield from (each["collect"] for each in kernel["missing"])


def deep_kernel(kernel: KernelEntry, group: GroupEntry, share: float | None) -> Document:
    """Return the beginning of a kernel's entry in depth; `sections` follow it as far as there is room."""
    return short_kernel(kernel, group, share) | {
        "name": cut(kernel["name"] or formatting.kernel_name(kernel), DEEP_NAME_BYTES),
        **{
            key: kernel[key]
            for key in ("grid", "block", "family", "side", "min_time_ns", "min_time_frac", "min_time_by")
        },
        "recoverable_ns": kernel["recoverable_ns"],
        "because": [],
        "do": [],
        "flip": _flip(kernel),
    }


def sections(kernel: KernelEntry) -> Iterator[Section]:
    """Yield what else there is to say of a kernel, the most important first."""
    finding = most_worth(kernel["findings"])
    others = [each for each in kernel["findings"] if each is not finding]
    decided = [each for each in (*decisions(kernel), limiter_evidence(kernel)) if each is not None]
    yield from (("because", each) for each in decided[:2])
    if finding is not None:
        yield "do", _do_in_depth(kernel, finding)
    yield from (("caveats", name) for name in kernel["caveats"])
    if len(limited := limits(kernel)) > 1:
        yield from (("phases", asdict(limit)) for limit in limited)
    yield from (("missing", each["quantity"]) for each in kernel["missing"][:_N_MISSING])
    if kernel["missing"]:
        yield "n_missing", len(kernel["missing"])
    yield from (("do", _do(each)) for each in others)
    yield from (("because", each) for each in _without_repetitions(decided[2:], decided[:2]))
    yield from (("lines", _line(each)) for each in kernel["lines"][:_N_LINES])
    yield from (("numbers", each) for each in _numbers(kernel))
    vendor = kernel["vendor"]["verdict"] if kernel["vendor"] else None
    if vendor is not None:
        yield "vendor_verdict", vendor


def _without_repetitions(found: Sequence[Document], before: Sequence[Document]) -> list[Document]:
    known = {each["e"] for each in before}
    return [each for each in found if each["e"] not in known]


def _do_in_depth(kernel: KernelEntry, finding: FindingEntry) -> Document:
    return _do(finding) | {
        "title": finding["title"],
        "severity": finding["severity"],
        "advice": finding["advice"],
        "gain_basis": finding["gain_basis"],
        "expected_basis": finding["expected_basis"],
        "evidence": list(finding_evidence(kernel, finding)),
    }


def _line(line: SampledLineEntry) -> Document:
    return {
        "at": cut(f"{line['file']}:{line['line']}", _PLACE_BYTES),
        "samples_frac": line["frac"],
        **({} if line["not_issued_frac"] is None else {"not_issued_frac": line["not_issued_frac"]}),
        "stall": line["stall"],
    }


def _numbers(kernel: KernelEntry) -> Iterator[Document]:
    """Yield how near the kernel is to each roof, what its warps wait for, how many there are, and what it moved."""
    of_roofs = [f"bandwidth.{level}.frac" for level in kernel["bandwidth"]]
    worked = sorted(kernel["work"], key=lambda name: -(kernel["work"][name]["frac"] or 0.0))
    of_work = [f"work.{name}.frac" for name in worked if kernel["work"][name]["frac"]][:2]
    waited = sorted(kernel["stalls"], key=lambda name: -kernel["stalls"][name])
    names = [
        *of_roofs,
        *of_work,
        *(f"stalls.{name}" for name in waited[:_N_STALLS]),
        *("occupancy.achieved_frac", "occupancy.theoretical_frac", "occupancy.waves"),
        *("traffic_bytes.dram", "access.load_bytes_per_sector", "access.l1_hit_frac", "access.l2_hit_frac"),
    ]
    found = filter(None, (evidence(kernel, name) for name in names))
    yield from list(found)[:_N_NUMBERS]
