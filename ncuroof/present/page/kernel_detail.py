"""Everything the page shows about one kernel, as plain data with finished texts; the page's script only lays it out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ncuroof import formatting
from ncuroof.diagnosis import UNEVEN, Rules, load_rules
from ncuroof.metrics import Catalogue, quantity_unit
from ncuroof.metrics.families import title
from ncuroof.present.documents.kernels import ABOVE_ROOF
from ncuroof.present.explanations.meanings import limiter_label
from ncuroof.present.page.quantity_cells import (
    ACCESS,
    OCCUPANCY,
    QuantityCells,
    bandwidth_rows,
    beyond_speed_of_light,
    flop_points,
    instruction_points,
    one_more_block_sentence,
    shared_flow,
    traffic_flow,
    traffic_rows,
    work_rows,
)
from ncuroof.present.page.text_table import Cell, Texts
from ncuroof.present.schemas.analysis import AnalysisDocument
from ncuroof.present.schemas.kernels import (
    FindingEntry,
    KernelEntry,
    MissingEntry,
    PhaseEntry,
    SampledLineEntry,
    SamplesEntry,
    StepEntry,
    VendorEntry,
    VendorRuleEntry,
)
from ncuroof.present.sentences.actions import of_what
from ncuroof.present.sentences.collect_options import collect_options
from ncuroof.present.sentences.phases import busiest_course, limits_sentence
from ncuroof.present.sentences.remarks import flip_sentence
from ncuroof.present.sentences.savings import saves
from ncuroof.present.sentences.source_lines import cost, line_text, place, waits_for, where_sentence

SECTIONS = (
    ("facts", "Launch", "facts", ()),
    ("utilisation", "How busy each unit is", "bars", ()),
    ("stalls", "What warps wait for (stall reasons)", "stack", ()),
    (
        "lines",
        "Source lines that cost the most",
        "lines",
        ("share", "line", "mostly waiting for", "samples"),
    ),
    ("occupancy", "Occupancy and scheduling", "numbers", ()),
    ("access", "Access pattern", "numbers", ()),
    ("traffic_bytes", "Traffic, both directions", "table", ("level", "bytes", "what is counted")),
    ("check", "Consistency checks", "numbers", ()),
    (
        "bandwidth",
        "Bandwidth",
        "table",
        ("level", "achieved", "peak", "share", "of data sheet", "of reached", "what is counted"),
    ),
    (
        "work",
        "Work",
        "table",
        ("precision", "work", "rate", "peak", "share", "of data sheet", "of reached", "what is counted", "reliable"),
    ),
    (
        "points",
        "Points on the FLOP roofline",
        "table",
        ("level", "precision", "intensity", "rate", "roof", "ridge at", "share of roof"),
    ),
    (
        "instructions",
        "Points on the instruction roofline",
        "table",
        ("level", "intensity", "rate", "roof", "ridge at", "share of roof"),
    ),
    ("others", "All other quantities", "meanings", ()),
)
"""Blocks of the detail: key, title, layout kind, and column titles of a table."""

RANGE_MARK = " › "
"""Separates an NVTX range from one nested in it."""

_BUSIEST = "utilisation.busiest"

_BEYOND = (
    "Memory is NVIDIA's Speed of Light total, which the verdict uses. It excludes part of L2's own throughput, which is "
    "higher here."
)
_NO_LINES = (
    "Not available. Source lines need a line table (nvcc -lineinfo), --section SourceCounters (ncuroof profile --lines) and "
    "a few dozen samples; with many launches, the longest of each kernel and shape get them first."
)
_MARKUP = re.compile(r"@(\w+):([^:@]*):([^@]*)@")
"""Links in NVIDIA's messages: `@url:text:address@` and `@section:identifier:text@`."""


def plain_message(message: str) -> str:
    """Return a message of NVIDIA's rules with its links replaced by their texts."""
    return _MARKUP.sub(lambda match: match[3] if match[1] == "section" else match[2], message)


class KernelDetails:
    """Describes kernels of one document; long texts are interned in `texts`, and `quantities` lists the quantities referred to."""

    def __init__(self, document: AnalysisDocument, rules: Rules, catalogue: Catalogue, texts: Texts) -> None:
        self._sources = document["sources"]
        self._rules = rules
        self._texts = texts
        self._cells = QuantityCells(rules, catalogue, texts)
        self._question_by_node = {node.id: node.question for node in rules.nodes}
        self.quantities = self._cells.quantities

    def describe(self, kernel: KernelEntry) -> dict[str, Any]:
        """Return the detail of a kernel."""
        return {
            "summary": self._summary(kernel),
            "path": [self._step(step, kernel) for step in kernel["path"]],
            "speed": self._speed_of_light(kernel),
            "flip": self._texts.add(flip_sentence(kernel, self._rules)),
            "findings": [self._finding(kernel, finding) for finding in kernel["findings"]],
            "caveats": [self._caveat(kernel, name) for name in kernel["caveats"]],
            "vendor": self._vendor(kernel),
            "missing": self._missing(kernel["missing"]),
            "facts": self._facts(kernel),
            "utilisation": self._cells.bars(kernel, "utilisation") + self._beyond(kernel),
            "stalls": self._cells.bars(kernel, "stalls"),
            "lines": self._lines(kernel["lines"]),
            "occupancy": self._limiters(kernel) + self._cells.shown(kernel, OCCUPANCY),
            "access": self._cells.shown(kernel, ACCESS),
            "flow": traffic_flow(kernel),
            "shared_flow": shared_flow(kernel),
            "traffic_bytes": traffic_rows(kernel, self._texts),
            "check": self._cells.checks(kernel),
            "others": self._cells.others(kernel),
            "bandwidth": bandwidth_rows(kernel, self._texts),
            "work": work_rows(kernel, self._texts),
            "points": flop_points(kernel, self._texts),
            "instructions": instruction_points(kernel, self._texts),
            "phases": phase_block(kernel, self._texts),
        }

    def _caveat(self, kernel: KernelEntry, name: str) -> Cell:
        rules = self._rules.caveats
        meaning = rules[name].doc if name in rules else name
        if name == ABOVE_ROOF:
            cause = rules.get(kernel["above_roof_cause"] or "")
            meaning += " None of this kernel's checks explains it." if cause is None else f" Likely cause: {cause.doc}"
        if name == UNEVEN:
            meaning += (
                f" This one took {formatting.duration(kernel['duration_ns'])}; it represents {_stood_for(kernel)}."
            )
        return self._texts.add(meaning)

    def _summary(self, kernel: KernelEntry) -> Cell:
        parts = []
        if (limiter := limiter_label(kernel)) is not None:
            parts.append(f"limited by {limiter}")
        parts.append(f"{kernel['confidence']} confidence")
        if kernel["side"]:
            sides = {"memory": "left of the ridge", "near_ridge": "near the ridge", "compute": "right of the ridge"}
            parts.append(f"DRAM intensity {sides[kernel['side']]}")
        if (stood_for := kernel.get("n_represented")) not in {None, 1} and kernel["duration_ns"] is not None:
            together = formatting.duration(kernel["duration_ns"] * kernel["weight"])
            parts.append(f"represents {formatting.launch_count(stood_for)} launches, {together} together")
        return self._texts.add("; ".join(parts))

    def _step(self, step: StepEntry, kernel: KernelEntry) -> list[Any]:
        quantity = step["quantity"]
        beyond = beyond_speed_of_light(kernel) if quantity == "utilisation.busiest" else None
        is_beyond = beyond is not None and beyond > (step["value"] or 0.0)
        is_known = step["op"] == ">=" and step["threshold"] == 0  # the question is whether a value is known, even 0
        return [
            self._texts.add(self._question_by_node.get(step["node"]) or str(step["node"])),
            self._cells.number(quantity),
            self._cells.written(quantity, step["value"]),
            ""
            if is_known
            else f"{formatting.operator(step['op'])} {formatting.threshold(step['threshold'], quantity_unit(quantity))}",
            step["outcome"],
            f"excludes L2's own throughput, {formatting.share(beyond)}" if is_beyond else "",
            is_known or quantity == "check.failed",
        ]

    def _speed_of_light(self, kernel: KernelEntry) -> dict[str, Any]:
        """Return the bars of both sides of NVIDIA's Speed of Light, and the threshold of a busy unit where the path asks for it."""
        sides = [(name, kernel["utilisation"].get(name)) for name in ("memory", "compute")]
        asked = next((step for step in kernel["path"] if step["quantity"] == _BUSIEST and step["threshold"]), None)
        return {
            "bars": [
                [*self._cells.row(f"utilisation.{name}", value), round(min(max(value, 0.0), 1.0), 4), name]
                for name, value in sides
                if value is not None
            ],
            "line": None if asked is None else asked["threshold"],
            "said": ""
            if asked is None
            else f"line: {formatting.threshold(asked['threshold'], quantity_unit(_BUSIEST))}",
        }

    def _beyond(self, kernel: KernelEntry) -> list[list[Cell]]:
        """Return a remark where L2 is busier than NVIDIA's Speed of Light total for memory; else no row."""
        return [] if beyond_speed_of_light(kernel) is None else [[self._texts.add(_BEYOND)]]

    def _finding(self, kernel: KernelEntry, finding: FindingEntry) -> dict[str, Any]:
        gain_ns, duration_ns = finding["gain_ns"], kernel["duration_ns"]
        gain = None
        if gain_ns is not None and duration_ns:
            gain = f"{saves(finding)} (at most {formatting.share(gain_ns / duration_ns)} {of_what(finding)})"
        return {
            "id": finding["id"],
            "title": self._texts.add(finding["title"]),
            "severity": finding["severity"],
            "advice": self._texts.add(finding["advice"]),
            "where": self._texts.add(where_sentence(finding["where"])),
            "source": self._texts.add(line_text(finding["where"]["lines"][0]) if finding["where"] else ""),
            "gain": gain,
            "basis": self._texts.add("; ".join(filter(None, (finding["expected_basis"], finding["gain_basis"])))),
            "waste": [
                f"{formatting.byte_count(waste['bytes'])} at {formatting.label(level)} "
                f"({formatting.share(waste['frac'])} of its traffic)"
                for level, waste in finding["waste"].items()
            ],
            "evidence": [self._cells.row(item["quantity"], item["value"]) for item in finding["evidence"]],
        }

    def _vendor(self, kernel: KernelEntry) -> dict[str, Any]:
        vendor = kernel["vendor"]
        rules = vendor["rules"]
        # Errors of rules inside ncu contain paths of the recording machine, so only their number is shown.
        n_broken = sum(rule["type"] == "error" for rule in rules)
        return {
            "verdict": self._texts.add(self._vendor_sentence(vendor, kernel["verdict"])),
            "rules": [self._vendor_rule(rule) for rule in rules if rule["type"] != "error"],
            "broken": f"{n_broken} messages from rules that failed inside ncu are not shown" if n_broken else "",
        }

    def _vendor_sentence(self, vendor: VendorEntry, ours: str) -> str:
        theirs = vendor["verdict"]
        if theirs is None:
            return ""
        title = self._rules.verdicts[theirs].title
        if theirs == ours:
            return f"NVIDIA's Speed of Light rule agrees: {title}."
        own = self._rules.verdicts[ours].title
        return f"NVIDIA's Speed of Light rule reads this kernel as {title}, ncuroof as {own}. {vendor.get('why') or ''}"

    def _vendor_rule(self, rule: VendorRuleEntry) -> list[Cell]:
        speedup = rule["speedup_frac"]
        scope = f" ({rule['scope']})" if rule["scope"] else ""
        return [
            self._texts.add(rule["title"] or rule["id"]),
            self._texts.add(plain_message(rule["message"] or "")),
            "" if speedup is None else f"estimated speedup {formatting.share(speedup)}{scope}",
        ]

    def _missing(self, missing: Sequence[MissingEntry]) -> dict[str, Any]:
        return {
            "quantities": [self._cells.number(entry["quantity"]) for entry in missing],
            "options": self._texts.add(collect_options(entry["collect"] for entry in missing)),
        }

    def _facts(self, kernel: KernelEntry) -> list[list[Cell]]:
        launch, process = kernel["launch"], kernel["process"]
        set_by = f", set by {formatting.label(by)}" if (by := kernel["min_time_by"]) else ""
        times = {
            "time": formatting.duration(kernel["duration_ns"]),
            "roofline time": formatting.duration(kernel["min_time_ns"]) + set_by,
            "above the roofline": formatting.duration(kernel["recoverable_ns"]),
        }
        launched = {
            "represents": _stood_for(kernel),
            "grid": formatting.extent(kernel["grid"]),
            "block": formatting.extent(kernel["block"]),
            "registers per thread": formatting.quantity(launch.get("n_registers_per_thread"), "count"),
            "shared memory per block": formatting.kibibytes(launch.get("shared_bytes_per_block")),
            "SM clock": formatting.quantity(kernel["sm_clock_hz"], "hz"),
            "replay passes": formatting.quantity(kernel["passes"], "count"),
            "NVTX": RANGE_MARK.join(kernel["nvtx"] or ()) or formatting.MISSING,
            "process": f"{process['name'] or '?'} ({process['id']})" if process else formatting.MISSING,
            "stream": _written(kernel["stream"]),
            "context": _written(kernel["context"]),
            "kind": kernel["workload"] or formatting.MISSING,
            "source": title(family) if (family := kernel["family"]) else formatting.MISSING,
            "report": self._sources[kernel["source"]]["file"],
        }
        known = {label: value for label, value in launched.items() if value != formatting.MISSING}
        return [[self._texts.add(label), self._texts.add(value)] for label, value in (times | known).items()]

    def _lines(self, lines: Iterable[SampledLineEntry]) -> list[list[Cell]]:
        rows: list[list[Cell]] = [
            [
                formatting.share(cost(line)),
                self._texts.add(": ".join(filter(None, (place(line), line_text(line))))),
                self._texts.add(" for ".join(filter(None, (formatting.label(line["stall"]), waits_for(line))))),
                formatting.quantity(line["value"], "count"),
                cost(line),
            ]
            for line in lines
        ]
        return rows or [[self._texts.add(_NO_LINES)]]

    def _limiters(self, kernel: KernelEntry) -> list[list[Cell]]:
        limiters = kernel["occupancy"].get("limiters")
        if not limiters:
            return []
        more = one_more_block_sentence(kernel)
        return [
            [self._cells.number("occupancy.limiters"), self._texts.add(", ".join(map(formatting.label, limiters)))],
            *([[self._texts.add(more)]] if more else []),
        ]


def _written(number: int | None) -> str:
    return formatting.MISSING if number is None else str(number)


def _stood_for(kernel: KernelEntry) -> str:
    """Return how many launches a profiled one represents, with their average, shortest and longest time where counted."""
    n_launches = kernel.get("n_represented")
    if n_launches is None or n_launches == 1:
        return formatting.MISSING
    average_ns, *ends_ns = (
        kernel.get("counted_average_ns"),
        kernel.get("counted_shortest_ns"),
        kernel.get("counted_longest_ns"),
    )
    average = "" if average_ns is None else f", {formatting.duration(average_ns)} on average"
    ends = "" if None in ends_ns else f", from {' to '.join(map(formatting.duration, ends_ns))}"
    return f"{formatting.launch_count(n_launches)} launches{average}{ends}"


# ---- the time inside a kernel -------------------------------------------------------------------------------------------------

_MOST_UNITS = 3
_LEAST_SHOWN = 0.05
"""Use of a unit that is worth a word."""

_COURSE = (
    "The columns show how busy the busiest sampled unit was; the band below has the colour of each phase's verdict."
)


def phase_block(kernel: KernelEntry, texts: Texts) -> dict[str, Any] | None:
    """Return the block of a kernel's detail; None where its report holds no series.

    Args:
        kernel: an entry of the document.
        texts: takes the long texts.
    """
    samples, duration_ns = kernel.get("samples"), kernel["duration_ns"]
    if samples is None or duration_ns is None:
        return None
    sentence = limits_sentence(kernel)
    return {
        "sentence": texts.add(f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""),
        "label": f"Use of the busiest unit over the kernel's time: {sentence}",
        "course": busiest_course(kernel),
        "parts": [_part(phase, duration_ns) for phase in kernel["phases"]],
        "notes": [texts.add(note) for note in _notes(kernel, samples)],
    }


def _part(phase: PhaseEntry, total_ns: float) -> dict[str, Any]:
    start, length = phase["start_ns"] / total_ns, phase["duration_ns"] / total_ns
    title = load_rules().verdicts[phase["verdict"]].title
    limiter = formatting.label(phase["limiter"]) if phase["limiter"] else ""
    return {
        "start": round(start, 4),
        "length": round(length, 4),
        "verdict": phase["verdict"],
        "when": f"{100 * start:.0f} to {100 * (start + length):.0f} %",
        "length_text": formatting.duration(phase["duration_ns"]),
        "kind": phase["kind"],
        "limit": f"{title}: {limiter}" if limiter else title,
        "units": ", ".join(_busiest(phase)),
    }


def _busiest(phase: PhaseEntry) -> Iterator[str]:
    """Yield the busiest units that were sampled, each with its share."""
    used = sorted(phase["utilisation"].items(), key=lambda item: -item[1])
    for unit, share in used[:_MOST_UNITS]:
        if share >= _LEAST_SHOWN:
            yield f"{formatting.label(unit)} {formatting.percent(share)}"


def _notes(kernel: KernelEntry, samples: SamplesEntry) -> Iterator[str]:
    """Yield how the series were sampled, and what makes them less certain."""
    if kernel["phases"]:
        yield _COURSE
    if units := _inferred(kernel):
        yield f"Not sampled, and inferred from the whole kernel's use and how active the SMs were: {units}."
    runs = "one run" if samples["passes"] == 1 else f"{samples['passes']} runs"
    every = formatting.duration(samples["interval_ns"])
    yield f"{samples['n']} samples, one every {every}, from {runs} of the kernel." + (
        f" {samples['caveat'][:1].upper()}{samples['caveat'][1:]}." if samples["caveat"] else ""
    )


def _inferred(kernel: KernelEntry) -> str:
    """Return the units that were not sampled although the kernel uses them."""
    units = dict.fromkeys(
        unit for phase in kernel["phases"] for unit, share in phase["inferred"].items() if share >= _LEAST_SHOWN
    )
    return ", ".join(map(formatting.label, units))
