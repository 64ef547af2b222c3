"""The keys of a kernel's entry in the document `ncuroof.analysis/1`, with what they mean; `docs/documents.md` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict


class ProcessEntry(TypedDict):
    """A process."""

    id: Annotated[int, "process number"]
    name: Annotated[str | None, "name of the process"]


class WorkEntry(TypedDict):
    """The work of a kernel in one precision."""

    flop: Annotated[float, "work"]
    flop_per_s: Annotated[float | None, "rate over the duration"]
    peak_flop_per_s: Annotated[float | None, "peak at the clock of the launch"]
    fastest_peak_flop_per_s: Annotated[float | None, "peak of the fastest path of the precision, where it has several"]
    frac: Annotated[float | None, "share of the peak"]
    definition: Annotated[str, "counters used"]
    reliable: Annotated[bool, "whether verdicts may use it"]
    peak_source: Annotated[str | None, "`counters` or `datasheet`"]
    is_from_chart: Annotated[bool, "whether it comes from a chart in the report instead of counters"]
    accumulates_in: Annotated[
        str | None,
        "`fp16` or `fp32`: the accumulation type of most of the tensor work; null where names do not show it",
    ]
    datasheet_frac: Annotated[float | None, "share of the data sheet's roof, at boost clock"]
    reached_frac: Annotated[
        float | None,
        "share of the measured roof, at the launch's clock; null without a calibration",
    ]


class BandwidthEntry(TypedDict):
    """The traffic of a kernel at one memory level."""

    bytes_per_s: Annotated[float | None, "rate of roof traffic"]
    peak_bytes_per_s: Annotated[float | None, "peak of the same counter"]
    frac: Annotated[float | None, "share of the peak"]
    definition: Annotated[str, "counters used"]
    reliable: Annotated[bool, "whether it was counted where it flows, rather than estimated"]
    peak_source: Annotated[str | None, "`counters` or `datasheet`"]
    is_from_chart: Annotated[bool, "whether it comes from a chart in the report instead of counters"]
    datasheet_frac: Annotated[float | None, "share of the data sheet's roof"]
    reached_frac: Annotated[float | None, "share of the measured roof; null without a calibration"]


class CodeEntry(TypedDict):
    """The machine code of a function."""

    sha256: Annotated[
        str,
        "SHA-256 of its instructions, without the addresses that linker and loader fill in: equal code has an"
        " equal one in every build",
    ]
    n_instructions: Annotated[int, "how many these are, without those that only fill up"]


class PointEntry(TypedDict):
    """A point on the roofline."""

    level: Annotated[str, "memory level"]
    precision: Annotated[str, "precision"]
    intensity_flop_per_byte: Annotated[
        float | None,
        "FLOPs per byte of the level's roof traffic; null where the level moved nothing",
    ]
    flop_per_s: Annotated[float | None, "rate over the duration"]
    roof_flop_per_s: Annotated[float | None, "roof: min(peak, intensity × bandwidth)"]
    ridge_flop_per_byte: Annotated[float | None, "ridge: peak over bandwidth"]
    roof_frac: Annotated[float | None, "share of the roof: rate over roof"]


class InstructionPointEntry(TypedDict):
    """A point on the instruction roofline."""

    level: Annotated[str, "memory level"]
    intensity_inst_per_transaction: Annotated[float | None, "warp instructions per transaction"]
    inst_per_s: Annotated[float | None, "warp instructions/s"]
    roof_inst_per_s: Annotated[float | None, "roof: min(peak, intensity × transactions/s)"]
    ridge_inst_per_transaction: Annotated[float | None, "ridge: peak over transactions/s"]
    roof_frac: Annotated[float | None, "share of the roof: rate over roof"]


class InstructionsEntry(TypedDict):
    """The instructions of a kernel."""

    warp_executed: Annotated[float, "warp instructions"]
    inst_per_s: Annotated[float | None, "warp instructions/s"]
    peak_inst_per_s: Annotated[float | None, "peak: one per scheduler and cycle"]
    frac: Annotated[float | None, "share of the peak"]
    definition: Annotated[str, "counters used"]
    points: list[InstructionPointEntry]


class StepEntry(TypedDict):
    """A decision on the path to the verdict."""

    node: Annotated[str, "node of the decision tree"]
    quantity: Annotated[str, "quantity that was compared"]
    value: Annotated[float | None, "its value, in its unit"]
    op: Annotated[str, "comparison operator"]
    threshold: Annotated[float, "threshold, in the quantity's unit"]
    outcome: Annotated[bool | None, "result of the comparison; null where the value is unknown"]
    margin_frac: Annotated[float | None, "distance of the value from the threshold, over the threshold"]


class FlipEntry(TypedDict):
    """The nearest other verdict."""

    becomes: Annotated[str, "the other verdict"]
    quantity: Annotated[str, "quantity that would have to change"]
    change_frac: Annotated[
        float,
        "relative change of that quantity; for memory, compute and balanced kernels that do not become "
        "latency-bound, of the work behind it",
    ]


class EvidenceEntry(TypedDict):
    """A value that a finding rests on."""

    quantity: Annotated[str, "name of the quantity"]
    value: Annotated[float, "value, in `unit`"]
    unit: Annotated[str, "unit of the value"]


class PositionEntry(TypedDict):
    """A position in source code."""

    file: Annotated[str, "file name, without folder; a file of Julia's own packages with the package: `Base/int.jl`"]
    line: Annotated[int, "line number, from 1"]


class InlinedEntry(PositionEntry):
    """A position in code that may be inlined."""

    callers: Annotated[
        list[PositionEntry],
        "for an inlined line, its call chain, innermost call first; of several chains, the one with the largest share of the line",
    ]


class AwaitedEntry(InlinedEntry):
    """A line that another one waits for."""

    frac: Annotated[
        float,
        "share of the line's samples of that stall that wait for this line; a sample that waits for two lines counts for both",
    ]
    address_from: Annotated[
        PositionEntry | None,
        "the load that computes the address of the awaited load. If the awaited load is in a loop, only loads in that loop "
        "count. Null if there is no such load, or if it is unknown",
    ]


class LineEntry(InlinedEntry):
    """A source line with its share of a measure."""

    text: Annotated[str | None, "text of the line; null where the report does not contain its file"]
    value: Annotated[float, "value of the measure"]
    frac: Annotated[float, "share of the kernel's total"]
    awaits: Annotated[
        list[AwaitedEntry],
        "for stalls on data or at a barrier, the lines that are waited for, at most three; empty where they are unknown, and "
        "for other measures",
    ]


class WhereEntry(TypedDict):
    """The source lines of a finding."""

    measure: Annotated[str, "what was summed by line: a name of `by_line` in `profiles/metrics/lines.toml`"]
    of: Annotated[str, "its label"]
    lines: list[LineEntry]


class WasteEntry(TypedDict):
    """Unneeded traffic."""

    bytes: Annotated[float, "unneeded bytes"]
    frac: Annotated[float, "share of the level's traffic"]


class FindingEntry(TypedDict):
    """A finding."""

    id: Annotated[str, "id; `ncuroof explain ID` describes it"]
    title: Annotated[str, "title of the finding"]
    severity: Annotated[str, "`high`, `medium`, `low`"]
    advice: Annotated[str, "what to change"]
    evidence: Annotated[list[EvidenceEntry], "the quantities that it rests on"]
    where: Annotated[
        WhereEntry | None,
        "[source lines](lines.md) of its cause; null where they are unknown, or the cause is spread over many lines",
    ]
    gain_ns: Annotated[
        float | None,
        "the most that fixing it [saves](savings.md); null where the counters do not show it",
    ]
    gain_basis: Annotated[str | None, "what that assumes; null without a gain"]
    expected_ns: Annotated[float | None, "what fixing it is expected to save"]
    expected_low_ns: Annotated[float | None, "eight of ten such fixes save between this"]
    expected_high_ns: Annotated[float | None, "and this"]
    expected_basis: Annotated[str | None, "what limits the kernel then, or how sure that is"]
    is_most_worth: Annotated[
        bool,
        "whether it is the finding of the launch that `actions` count, since the savings of one launch "
        "overlap: the cause with the largest expected saving or, where no cause has one, what relieves the "
        "busiest unit whatever the cause; none for a launch whose results or input are in doubt "
        "(`alike_threads`, `almost_no_data`)",
    ]
    waste: Annotated[dict[str, WasteEntry], "waste by memory level"]


class SampledLineEntry(LineEntry):
    """A source line with its samples."""

    not_issued_frac: Annotated[
        float | None,
        "share of the kernel's samples in which the scheduler issued nothing, by which the lines are ranked; null where these "
        "were not taken, and the lines are ranked by all samples",
    ]
    stall: Annotated[
        str | None,
        "most frequent stall reason among its samples, not counting selected and not selected; null without one. Where it is "
        "for data or at a barrier, `awaits` has the lines that are waited for",
    ]


class ScalingEntry(TypedDict):
    """How much of a launch's time scales with which peak."""

    busy_ns: Annotated[
        dict[str, float | None],
        "time that each resource needs at its peak: `dram`, `l2`, `l2_slice`, `l1`, `sm`, `fp64`, `fp32`, "
        "`fp16`, `tensor`; `operands`, the part of `l1` that tensor instructions read themselves; `l2_whole`,"
        " L2's time also in stages that no counter names; and `l2_as_dram`, the time that the bytes of L2 "
        "take at the bandwidth of DRAM, null where they are not known",
    ]
    reached_frac: Annotated[float | None, "the largest of these over the duration, for SMs that had blocks"]
    reached_by_whole_l2_frac: Annotated[float | None, "the same with `l2_whole` among them"]
    tensor_precision: Annotated[
        str | None,
        "precision whose tensor work takes longest; `tensor_fp16_fp16_accumulate` where it accumulates in FP16",
    ]
    n_blocks: Annotated[float | None, "blocks in the grid"]
    n_resident_blocks: Annotated[float | None, "blocks resident at once on the whole GPU"]
    shared_bytes_per_block: Annotated[float | None, "shared memory per block that the program requests"]


class MissingEntry(TypedDict):
    """A quantity that was not collected."""

    quantity: Annotated[str, "quantity that a full diagnosis would use"]
    collect: Annotated[str, "ncu options that collect it"]


class VendorRuleEntry(TypedDict):
    """A message of one of NVIDIA's rules."""

    id: Annotated[str, "id of the rule"]
    type: Annotated[str | None, "e.g. `optimization`"]
    title: Annotated[str | None, "NVIDIA's text"]
    message: Annotated[str | None, "NVIDIA's text"]
    speedup_frac: Annotated[float | None, "NVIDIA's estimate"]
    scope: Annotated[str | None, "`local` or `global`"]


class VendorEntry(TypedDict):
    """What NVIDIA's rules say."""

    verdict: Annotated[str | None, "verdict of NVIDIA's rules in the report; null where they give none"]
    agreement: Annotated[str | None, "agreement of that verdict with ncuroof's"]
    why: Annotated[str | None, "why they differ, as a sentence; null where they agree"]
    rules: list[VendorRuleEntry]


class PhasePointEntry(TypedDict):
    """The point of a phase on the roofline."""

    level: Annotated[str, "`dram`"]
    precision: Annotated[str, "the kernel's dominant precision"]
    intensity_flop_per_byte: Annotated[float, "arithmetic intensity"]
    flop_per_s: Annotated[float, "achieved rate"]
    roof_frac: Annotated[float, "achieved rate over the roof"]


class PhaseEntry(TypedDict):
    """A phase of a kernel."""

    start_ns: Annotated[float, "from the kernel's start"]
    duration_ns: Annotated[float, "length"]
    kind: Annotated[str, "`ramp`, `steady`, `tail`, `gap`"]
    utilisation: Annotated[
        dict[str, float],
        "use of a unit that was sampled, as a share of its peak, at the level of the kernel's own counter",
    ]
    inferred: Annotated[
        dict[str, float],
        "use of a unit that was not sampled: in proportion to the instructions issued, at most as much as on average",
    ]
    sm_active_frac: Annotated[float | None, "share of the SMs with work"]
    verdict: Annotated[str, "verdict, by the tree that judges kernels"]
    limiter: Annotated[str | None, "limiter; null where the series do not say"]
    stall: Annotated[str | None, "what warps wait for most; null where their states were not sampled"]
    stall_frac: Annotated[float | None, "share of their time that they wait for it"]
    point: Annotated[
        PhasePointEntry | None,
        "point on the roofline; null where DRAM or the unit of the kernel's work was not sampled",
    ]


class LevelEntry(TypedDict):
    """The level of a series, as sampled and as counted."""

    sampled_frac: Annotated[float | None, "mean of the series over the kernel"]
    counted_frac: Annotated[
        float | None,
        "the kernel's counter, to which the series is scaled; null where it was not collected",
    ]


class SamplesEntry(TypedDict):
    """The series of a kernel: how they were sampled, and their course."""

    interval_ns: Annotated[float, "time between two samples of the finest series"]
    n: Annotated[int, "samples of it within the kernel"]
    passes: Annotated[int, "runs of the kernel that the series come from"]
    series: Annotated[dict[str, str], "unit of each series, by its name in the report"]
    levels: Annotated[dict[str, LevelEntry], "the level of each unit, by course"]
    courses: Annotated[
        dict[str, Sequence[float | None]],
        "use of the unit, or share of the SMs with work, in at most 60 equal parts of the kernel's time; null"
        " where it was not sampled",
    ]
    caveat: Annotated[str | None, "what makes the series less certain, as a sentence; null if nothing does"]


class LaunchEntry(TypedDict):
    """Which workload it is, and how long it took."""

    id: Annotated[int, "number of the launch, over all reports"]
    source: Annotated[int, "index in `sources`"]
    device: Annotated[int, "index in `devices`"]
    name: Annotated[str | None, "demangled name, with template arguments and parameters"]
    short_name: Annotated[str | None, "short name, for tables"]
    family: Annotated[str | None, "kernel family: a name of `profiles/families.toml`, or `user`"]
    workload: Annotated[str | None, "`kernel`, `range`, `graph`, `cmdlist`"]
    failed: Annotated[bool, "whether profiling failed: no counter has a value"]
    grid: Annotated[Sequence[int] | None, "blocks in x, y, z; null if it is not a kernel"]
    block: Annotated[Sequence[int] | None, "threads per block in x, y, z; null if it is not a kernel"]
    stream: Annotated[int | None, "number of the CUDA stream"]
    context: Annotated[int | None, "number of the CUDA context"]
    process: Annotated[ProcessEntry | None, "the process that launched it"]
    nvtx: Annotated[Sequence[str], "open NVTX ranges, outermost first"]
    duration_ns: Annotated[float | None, "GPU time of this launch"]


class StandsForEntry(TypedDict, total=False):
    """How many launches a profiled one represents; absent where launches were not counted."""

    n_represented: Annotated[float, "launches that it represents; absent where launches were not counted"]
    weight: Annotated[float, "factor for its times in sums; absent in the same case"]
    counted_average_ns: Annotated[
        float | None,
        "average of the counted launches of its kernel and shape; null where it was not counted; absent in "
        "the same case",
    ]
    counted_shortest_ns: Annotated[
        float | None,
        "shortest of the launches that it represents; null where the counts do not contain it; absent in the same case",
    ]
    counted_longest_ns: Annotated[float | None, "longest of them; null or absent in the same cases"]


class RatesEntry(TypedDict):
    """The work and traffic of a workload, against the roofs."""

    sm_clock_hz: Annotated[float | None, "SM clock while it ran"]
    passes: Annotated[int | None, "replay passes"]
    work: Annotated[dict[str, WorkEntry], "work by precision; a precision that was not counted is absent"]
    bandwidth: Annotated[dict[str, BandwidthEntry], "rates of roof traffic by memory level"]


class QuantityEntries(TypedDict):
    """The quantities of a kernel, by group: `access` holds `access.*`."""

    traffic_bytes: Annotated[
        dict[str, float | None],
        "two-way traffic, the [quantity](quantities/README.md) `traffic_bytes.*`",
    ]
    utilisation: Annotated[dict[str, float | None], "the quantity `utilisation.*`"]
    occupancy: Annotated[
        dict[str, Any],
        "the quantity `occupancy.*`, and `limiters`: what limits the number of resident blocks; empty where unknown",
    ]
    access: Annotated[dict[str, float | None], "the quantity `access.*`"]
    stalls: Annotated[dict[str, float], "share of warps' time by stall reason; unknown reasons are absent"]
    scheduler: Annotated[dict[str, float | None], "the quantity `scheduler.*`"]
    launch: Annotated[dict[str, float | None], "the quantity `launch.*`"]
    arithmetic: Annotated[dict[str, float | None], "the quantity `arithmetic.*`"]
    check: Annotated[dict[str, float | None], "the quantity `check.*`"]
    traffic_definition: Annotated[
        dict[str, str | None],
        "how that traffic was obtained; null where it was counted by the formula on the quantity's page",
    ]


class DiagnosisEntry(TypedDict):
    """What bounds a workload, why, and what is known of it beyond."""

    code: Annotated[
        CodeEntry | None,
        "the machine code of the function; null where the report does not have it, and below compute capability 7.0",
    ]
    points: Annotated[list[PointEntry], "points on the roofline"]
    instructions: Annotated[InstructionsEntry | None, "null where the number of executed instructions is unknown"]
    verdict: Annotated[str, "`memory`, `compute`, `balanced`, `latency`, `overhead`, `unknown`"]
    limiter: Annotated[str | None, "limiter: the resource or cause"]
    side: Annotated[str | None, "side of the ridge: `memory`, `near_ridge`, `compute`"]
    dominant_precision: Annotated[str | None, "precision whose work takes longest at its peak; null without FLOPs"]
    confidence: Annotated[str | None, "`high`, `medium`, `low`"]
    path: Annotated[list[StepEntry], "decisions on the path to the verdict"]
    flip: Annotated[FlipEntry | None, "nearest other verdict; null where no change of a single quantity leads to one"]
    caveats: Annotated[Sequence[str], "ids; `ncuroof explain ID` describes each"]
    above_roof_cause: Annotated[str | None, "likely cause of a rate above its roof, as a sentence; null without one"]
    findings: Annotated[list[FindingEntry], "findings, the one that saves most first"]
    lines: Annotated[
        list[SampledLineEntry], "source lines that cost the most, at most ten; their `value` is a number of samples"
    ]
    min_time_ns: Annotated[float | None, "roofline time: the minimum time at the roofs"]
    min_time_frac: Annotated[float | None, "roofline time as a share of the duration; 1 is at the roofline"]
    min_time_by: Annotated[
        str | None,
        "roof that determines the roofline time: `dram`, a precision, or a pipe; null where the time is zero "
        "or unknown",
    ]
    recoverable_ns: Annotated[float | None, "time above the roofline: duration minus roofline time, at least 0"]
    scaling: Annotated[
        ScalingEntry | None,
        "inputs of [whatif](whatif.md); null for kernels that are described on their own",
    ]
    missing: Annotated[list[MissingEntry], "what was not collected"]
    vendor: Annotated[VendorEntry, "NVIDIA's own rules in the report"]


class TimeInsideEntry(TypedDict, total=False):
    """The time inside a kernel; absent where its report holds no counters that were sampled while it ran."""

    phases: Annotated[
        list[PhaseEntry],
        "parts of the kernel's time, in order; together they are its duration. Empty where there are too few samples",
    ]
    samples: Annotated[SamplesEntry, "how the series were sampled, and their course"]


class KernelEntry(LaunchEntry, StandsForEntry, RatesEntry, QuantityEntries, DiagnosisEntry, TimeInsideEntry):
    """A workload."""
