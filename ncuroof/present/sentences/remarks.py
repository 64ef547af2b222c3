"""Remarks and warnings about a run as a whole, in a sentence each.

They say which launches are shown and which failed, which verdicts are less certain, that kernels were compiled for debugging or a
clock is below boost because ncu locks it, how close a run comes to measured roofs, and what to collect to know more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import polars as pl

from ncuroof import formatting
from ncuroof.diagnosis import Rules
from ncuroof.enums import CeilingSource, Verdict
from ncuroof.formatting import counted, label, share
from ncuroof.present.analysed import Analysed, Record
from ncuroof.present.schemas.analysis import SourceEntry, SummaryEntry
from ncuroof.present.schemas.kernels import KernelEntry
from ncuroof.present.sentences.actions import gpu_time
from ncuroof.present.sentences.collect_options import RAW_PAGE, SHARED_SLICE, is_on_shared_slice, raw_page_tells

_LEAST_FRAC = 0.1
"""Share of the time from which on it is worth a remark: a choice."""
_MOST_CAVEATS = 3

_CLOCK_REMARKS = {
    "reduced_clock": "ncu locks clocks by default",
    "throttled_clock": "idle before, throttled or capped",
}
"""Why launches ran well below boost, by caveat."""

_FAILED = "failed"
"""Caveat of launches whose clock was not measured."""

_MOSTLY = 0.5
"""Of a GPU's measured launches."""

_N_NAMED, _MOST_NAME = 3, 60
"""Most kernels to name, and most characters of a name."""

_MOST_FRAC = 0.5
"""Share of the time: where debug builds take more, they come before any other advice."""

_N_ROOFS = 4
_LEAST_REACHED_FRAC = 0.01
"""Of a roof: launches that reach less are not shown."""

_MOST_PATTERN = 60
"""Most characters of a regular expression."""

_NUMBERS = re.compile(r"#\d+(\|#\d+)*")

_SIDES = {"memory_side": "the memory side", "compute_side": "the SMs", "busiest": "the busiest unit"}
_OTHER = {"memory_side": "compute", "compute_side": "memory"}

_N_OPTIONS = 2
"""Most ncu options to name where advice needs more counters."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A caveat for which verdicts are less certain."""

    name: Annotated[str, "of the caveat"]
    title: Annotated[str, "the same in words"]
    share: Annotated[str, "of the time"]


@dataclass(frozen=True, slots=True)
class RunRemark:
    """What to know of a run before trusting its numbers: a note of the summary, and a line at the top of the page."""

    text: Annotated[str, "the remark"]
    is_warning: Annotated[bool, "whether the numbers are not what they seem"] = False
    is_urgent: Annotated[bool, "whether a screen reader interrupts for it"] = False


def run_remarks(summary: SummaryEntry, failed: Sequence[str]) -> list[RunRemark]:
    """Return the remarks that apply to a run, in their order on the page and in the summary; a new one is one more entry.

    Args:
        summary: of a document.
        failed: short name of each launch that failed.
    """
    remarks = (
        RunRemark(selection_sentence(summary)),
        RunRemark(debug_build_sentence(summary), is_warning=True, is_urgent=True),
        RunRemark(failed_sentence(failed), is_warning=True),
    )
    return [remark for remark in remarks if remark.text]


def doubts_sentence(summary: SummaryEntry) -> str:
    """Return the remark, with words that `ncuroof explain` knows; empty where little of the time is concerned.

    Args:
        summary: of a document; its `by_doubt` has the largest doubts first. So for all functions here.
    """
    claim = doubts_claim(summary)
    shown = ", ".join(f"{doubt.title} {doubt.share}" for doubt in doubted(summary))
    return f"{claim}: {shown}" if claim else ""


def doubts_claim(summary: SummaryEntry) -> str:
    """Return the remark without the caveats."""
    doubted_frac = summary["doubted_frac"]
    if doubted_frac is None or doubted_frac < _LEAST_FRAC:
        return ""
    return f"verdicts are less certain for {formatting.share(doubted_frac)} of {gpu_time(summary)}"


def doubted(summary: SummaryEntry) -> Sequence[Doubt]:
    """Return the caveats with the largest shares of the time."""
    shown = list(summary["by_doubt"].items())[:_MOST_CAVEATS]
    return [Doubt(name, formatting.label(name), formatting.share(frac)) for name, frac in shown]


def locked_clock_remark(caveats: Collection[Sequence[str]]) -> str:
    """Return why the clock is low, for most launches of a GPU: "; ncu locks clocks by default"; or nothing.

    Args:
        caveats: of each launch.
    """
    measured = [each for each in caveats if _FAILED not in each]
    for caveat, remark in _CLOCK_REMARKS.items():
        if sum(caveat in each for each in measured) > _MOSTLY * len(measured):
            return f"; {remark}"
    return ""


def failed_sentence(names: Sequence[str]) -> str:
    """Return which launches were not measured, and what to do about it; empty where profiling failed for none.

    Args:
        names: short name of each launch that failed.
    """
    if not names:
        return ""
    n_by_name = Counter(formatting.shortened(formatting.printable(name), _MOST_NAME) for name in names).most_common()
    named = [f"{name} ×{n}" if n > 1 else name for name, n in n_by_name[:_N_NAMED]]
    n_more = len(n_by_name) - len(named)
    which = ", ".join(named) + (f" and {formatting.counted(n_more, 'other kernel')}" if n_more else "")
    failed, them, they = (
        ("a launch failed to profile and is", "it", "it")
        if len(names) == 1
        else (f"{len(names)} launches failed to profile and are", "them", "they")
    )
    what_to_do = f"see in ncu's output why {they} failed, then record {them} again"
    return f"{failed} in no sum: {which}; {what_to_do} (kernels that wait for other GPUs cannot be replayed)"


def debug_build_sentence(summary: SummaryEntry) -> str:
    """Return the warning; empty where no kernel is a debug build.

    Args:
        summary: of a document.
    """
    n_debug_builds, n_kernels, share_frac = summary["n_debug_builds"], summary["n_kernels"], summary["debug_build_frac"]
    if not n_debug_builds:
        return ""
    is_one, are_all = n_debug_builds == 1, n_debug_builds == n_kernels
    every = {1: "the kernel", 2: "both kernels"}.get(n_kernels, f"all {n_kernels} kernels")
    which = every if are_all else f"{n_debug_builds} of {n_kernels} kernels"
    time = "" if are_all or share_frac is None else f"{formatting.share(share_frac)} of {gpu_time(summary)}"
    takes = f", and {'takes' if is_one else 'take'} {time}" if time else ""
    is_first = are_all or come_first(share_frac)
    them = "" if is_first else " it" if is_one else " them"
    return (
        f"{which} {'was' if is_one else 'were'} compiled for debugging (nvcc -G), without optimisation{takes}: "
        f"rebuild{them} with optimisation and record again before {'anything else' if is_first else f'changing{them}'}"
    )


def come_first(share_frac: float | None) -> bool:
    """Return whether debug builds with this share of the time must be rebuilt before anything else is worth doing."""
    return share_frac is not None and share_frac > _MOST_FRAC


def is_debug_build(kernel: KernelEntry) -> bool:
    """Return whether a kernel of the document is a debug build."""
    return bool(kernel["check"].get("debug_build"))


def reached_roof_lines(analysed: Analysed) -> Iterator[str]:
    """Yield a line per GPU that a calibration fits: the number of roofs, and how close launches come to the nearest ones."""
    tables = analysed.roofline_tables
    roofs = tables.ceilings.filter(pl.col("source") == CeilingSource.MEASURED.value).cast({"kind": pl.String})
    launches = analysed.measurements.kernels.select("id", "device")
    shares = (
        tables.roof_shares.join(launches, on="id").group_by("device", "kind", "name").agg(pl.col("reached_frac").max())
    )
    roofs = roofs.join(shares, on=["device", "kind", "name"], how="left").sort(
        "reached_frac", descending=True, nulls_last=True, maintain_order=True
    )
    for (device,), of_device in roofs.group_by("device", maintain_order=True):
        where = f"GPU {device}: " if analysed.measurements.devices.height > 1 else ""
        nearest = of_device.filter(pl.col("reached_frac") >= _LEAST_REACHED_FRAC).head(_N_ROOFS)
        share_texts = [
            f"{share(frac)} of {label(name)}" for name, frac in nearest.select("name", "reached_frac").rows()
        ]
        reached = f"launches reach up to {', '.join(share_texts)} (roofs scaled to each launch's SM clock)"
        found = reached if share_texts else "no launch comes close to any of them"
        yield f"{where}{counted(of_device.height, 'measured roof')}; {found}"


def selection_sentence(summary: SummaryEntry) -> str:
    """Return what was selected, and that sums are its own; empty for a whole run.

    Args:
        summary: of a document.
    """
    selection = summary.get("selection")
    if selection is None:
        return ""
    nvtx, skip, count = selection["nvtx"], selection["skip"], selection["count"]
    which = [_which_kernels(selection["kernel"])]
    which += [f"in NVTX ranges matching {_quoted(nvtx)}"] if nvtx is not None else []
    numbers = [f"without the first {skip}" if skip > 1 else "without the first"] if skip else []
    numbers += [f"at most {count}"] if count is not None else []
    which += [f"({', '.join(numbers)})"] if numbers else []
    if summary["n_kernels"] == selection["of_n_kernels"]:
        return ""
    share = f", {formatting.share(selection['duration_frac'])} of its GPU time" if selection["duration_frac"] else ""
    return (
        f"only {' '.join(which)}: {summary['n_kernels']} of the run's {formatting.launches(selection['of_n_kernels'])}{share}; "
        "all totals, shares and savings are of these"
    )


def _which_kernels(kernel: str | None) -> str:
    """Return which kernels were selected: by an expression, or by the numbers of launches, as "#39"."""
    if kernel is None:
        return "launches"
    return f"launches of kernel {kernel}" if _NUMBERS.fullmatch(kernel) else f"kernels matching {_quoted(kernel)}"


def _quoted(pattern: str) -> str:
    return f"'{formatting.shortened(formatting.printable(pattern), _MOST_PATTERN)}'"


def to_know_more(kernel: KernelEntry, sources: Sequence[SourceEntry], *, only: str | None = None) -> str:
    """Return how to know quantities (`only`, or all) that a kernel lacks, as "collect --section X"; empty where none is missing.

    Args:
        kernel: an entry of the document.
        sources: of the document.
        only: name of a quantity.
    """
    if is_on_shared_slice(kernel):
        return SHARED_SLICE
    options = list(dict.fromkeys(entry["collect"] for entry in kernel["missing"] if only in (None, entry["quantity"])))
    if not options:
        return ""
    if raw_page_tells(kernel, sources):
        return f"print the raw page: ncu {RAW_PAGE}"
    return f"collect {' '.join(options[:_N_OPTIONS])}"


def flip_sentence(kernel: Record, rules: Rules) -> str:
    """Return which change would flip a kernel's verdict; empty where none is known."""
    flip = kernel["flip"]
    if not flip:
        return ""
    becomes, factor = rules.verdicts[flip["becomes"]].title, 1 + flip["change_frac"]
    if flip["becomes"] == Verdict.OVERHEAD:
        return f"Would be {becomes} if it were {formatting.share(1 - factor)} shorter: its launch would cost as much."
    group, _, key = flip["quantity"].partition(".")
    if key not in _SIDES:
        return f"Would become {becomes} at {factor:.3g} times its intensity."
    if Verdict.LATENCY in (kernel["verdict"], flip["becomes"]):
        return _at_the_threshold(kernel[group][key], flip, _SIDES[key], rules)
    less = f"Would be {becomes} if {_SIDES[key]} had {formatting.share(1 - factor)} less to do"
    if kernel["verdict"] == Verdict.BALANCED:
        return f"{less}."
    return f"{less}, and {rules.verdicts[_OTHER[key]].title} with still less."


def _at_the_threshold(now: float, flip: Record, side: str, rules: Rules) -> str:
    """Return which utilisation would make a kernel latency-bound, or no longer.

    The change is that of the launch that decides for all of its kind; the own utilisation of a launch differs a little.
    """
    becomes = rules.verdicts[flip["becomes"]].title
    wanted, found = formatting.share(rules.threshold("busy_enough")), formatting.share(now)
    if wanted == found:
        return f"Could as well be {becomes}: at {found} of {side}, the two verdicts meet."
    if flip["becomes"] == Verdict.BALANCED:  # in a shorter time the other side is busier, too
        faster = f"{1 + flip['change_frac']:.2g} times as fast"
        return f"Would be {becomes} if it ran {faster}, with {side} {wanted} busy instead of {found}."
    return f"Would be {becomes} if {side} were {wanted} busy instead of {found}."
