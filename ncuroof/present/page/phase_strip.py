"""The time inside a kernel as the page draws it: the course of its busiest unit, its phases, and what to know about the series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ncuroof import formatting
from ncuroof.diagnosis import load_rules
from ncuroof.present.page.text_table import Texts
from ncuroof.present.schemas.kernels import KernelEntry, PhaseEntry, SamplesEntry
from ncuroof.present.sentences.phases import busiest_course, limits_sentence

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
