"""The parts of a report for `report_writer`: kernels, counters, sections, rules and the session.

Sections and rules, which have the deepest nesting, are also encoded here.

Source: Nsight Compute Customization Guide, "Report File Format".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tests.support.wire_encoder import double, integer, message, text

if TYPE_CHECKING:
    from collections.abc import Mapping

METRICS_BY_CHIP: dict[str, dict[str, int]] = {
    name: {
        "device__attribute_implementation": chip_id,
        "device__attribute_compute_capability_major": major,
        "device__attribute_compute_capability_minor": minor,
    }
    for name, chip_id, major, minor in (
        ("GV100", 0x140, 7, 0),
        ("TU104", 0x164, 7, 5),
        ("GA100", 0x170, 8, 0),
        ("GA102", 0x172, 8, 6),
        ("GA10B", 0x17B, 8, 7),
        ("AD102", 0x192, 8, 9),
        ("GH100", 0x180, 9, 0),
        ("GB100", 0x1A0, 10, 0),
        ("GB110", 0x1A3, 10, 3),
        ("GB10B", 0x1AB, 11, 0),
        ("GB202", 0x1B2, 12, 0),
        ("GB20B", 0x1BB, 12, 1),
    )
}
"""For `Kernel.metrics`: the device attributes by which a reader identifies a kernel's chip, and so the units of its counters."""


@dataclass(frozen=True)
class Uint32:
    """A counter value stored as a 32-bit unsigned integer; a plain int is stored with 64 bits."""

    value: int


@dataclass(frozen=True)
class Float32:
    """A counter value stored in single precision; a plain float is stored in double precision."""

    value: float


Scalar = float | int | str | Uint32 | Float32


@dataclass(frozen=True)
class Instances:
    """A counter with one value per instance (SASS address, sample, …), with or without a value for the whole."""

    values: tuple[Scalar, ...]
    correlation_ids: tuple[Scalar, ...] | None = None
    total: Scalar | None = None


Metric = Scalar | Instances
Kind = Literal["kernel", "range", "cmdlist", "graph"]


@dataclass(frozen=True)
class PerCycle:
    """A roofline value as NVIDIA defines it: the sum of per-cycle counters times the clock."""

    per_cycle: tuple[str, ...]
    cycles_per_second: str


RooflineValue = float | str | PerCycle
"""A constant, the name of a counter, or counters times a clock."""


@dataclass(frozen=True)
class RooflinePair:
    """A roof (peak work and peak traffic) or a point (achieved work and achieved traffic) of a chart."""

    work: RooflineValue
    traffic: RooflineValue
    label: str = ""


@dataclass(frozen=True)
class RooflineChart:
    """A roofline chart as a section embeds it."""

    label: str
    roofs: tuple[RooflinePair, ...] = ()
    points: tuple[RooflinePair, ...] = ()


@dataclass(frozen=True)
class Section:
    """A section that was collected for a kernel.

    Attributes:
        breakdowns: names of text metrics, `breakdown:…`, each of which lists the counters of a table.
    """

    identifier: str
    name: str = ""
    header_metrics: tuple[str, ...] = ()
    charts: tuple[RooflineChart, ...] = ()
    breakdowns: tuple[str, ...] = ()


@dataclass(frozen=True)
class FocusMetric:
    """A counter that a rule refers to."""

    name: str
    value: float
    severity: Literal["default", "low", "high"] = "default"
    info: str = ""


@dataclass(frozen=True)
class Rule:
    """A message of one of NVIDIA's rules about a kernel."""

    identifier: str
    name: str
    section: str
    title: str
    message: str
    type: Literal["none", "ok", "warning", "error", "optimization"] = "optimization"
    speedup: tuple[Literal["unknown", "local", "global"], float] | None = None
    focus_metrics: tuple[FocusMetric, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A profiled workload.

    Attributes:
        name: function name.
        metrics: counters by name, in the order in which they are written.
        mangled: mangled name; defaults to `name`.
        demangled: demangled name; defaults to `name` with an empty parameter list.
        kind: what was profiled. In the file, only kernels and command lists have names and rules, and only kernels
            have grids; readers call ranges and graphs `range` and `graph`.
        thread_id: id of the launching thread; defaults to the process id, as for a main thread on Linux.
        nvtx: names of the push/pop ranges that were open at the launch, outermost first.
        nvtx_domain: the domain of these ranges; the default domain if empty.
        source: reference of the kernel's code.
        code: the code itself, if it is stored in the kernel.
    """

    name: str
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    mangled: str | None = None
    demangled: str | None = None
    kind: Kind = "kernel"
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    stream: int = 7
    context: int = 1
    process_id: int = 4242
    thread_id: int | None = None
    nvtx: tuple[str, ...] = ()
    nvtx_domain: str = ""
    sections: tuple[str | Section, ...] = ()
    rules: tuple[Rule, ...] = ()
    source: int = 1
    code: bytes = b""


@dataclass(frozen=True)
class Device:
    """A GPU of the session, with `attributes` by full name (`device__attribute_multiprocessor_count`)."""

    id: int = 0
    name: str = "NVIDIA Test GPU"
    attributes: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class Session:
    """How the report claims to have been recorded; None leaves a detail out of the file."""

    ncu_version: str | None = "2025.3.1"
    cuda_version: str | None = "13.0"
    driver_version: str | None = "580.65"
    command_line: str | None = "ncu --set roofline -o test ./program"
    executable: tuple[str, str] | None = None
    """Path and arguments, as the graphical interface stores them."""
    clock_control: str | None = None
    replay_mode: str | None = None
    processes: tuple[tuple[int, str], ...] = ((4242, "/opt/test/program"),)
    devices: tuple[Device, ...] = (Device(),)
    creation_time_s: int = 1_700_000_000
    host_name: str = "host.invalid"


# ---- how sections, charts and rules are encoded ------------------------------------------------------


def encode_section(number: int, section: str | Section) -> bytes:
    if isinstance(section, str):
        section = Section(section)
    header = message(4, *(message(2, text(1, name), text(2, name)) for name in section.header_metrics))
    return message(
        number,
        text(1, section.identifier),
        text(2, section.name or section.identifier),
        header if section.header_metrics else b"",
        *(message(5, message(1, message(6, *_chart(chart)))) for chart in section.charts),
        *(message(5, message(1, message(1, *_breakdown_table(name)))) for name in section.breakdowns),
    )


def _breakdown_table(name: str) -> list[bytes]:
    """Return the fields of a table of the counters that a breakdown lists, as the section file of Speed of Light has it."""
    return [integer(3, 1), message(5, text(1, name), text(2, "{UNIT}: {COMPOUND_NAME}"))]


def _chart(chart: RooflineChart) -> list[bytes]:
    return [
        text(1, chart.label),
        message(2, text(1, "Arithmetic Intensity [FLOP/byte]")),
        message(3, text(1, "Performance [FLOP/s]")),
        *(_pair(4, roof) for roof in chart.roofs),
        *(_pair(5, point) for point in chart.points),
    ]


def _pair(number: int, pair: RooflinePair) -> bytes:
    return message(
        number,
        message(1, _roofline_value(pair.work)),
        message(2, _roofline_value(pair.traffic)),
        message(3, text(1, pair.label)),
    )


def _roofline_value(value: RooflineValue) -> bytes:
    if isinstance(value, str):
        return message(2, text(1, value))
    if isinstance(value, PerCycle):
        per_cycle = (message(1, text(1, name)) for name in value.per_cycle)
        return message(3, *per_cycle, message(2, text(1, value.cycles_per_second)))
    return double(1, value)


_MESSAGE_TYPES = ("none", "ok", "warning", "error", "optimization")
_SPEEDUP_TYPES = ("unknown", "local", "global")
_SEVERITIES = ("default", "low", "high")


def encode_rule(number: int, rule: Rule) -> bytes:
    # One body item for everything: readers take a second item for a second result of the same rule.
    spoken = message(
        1,
        text(1, rule.message),
        integer(2, _MESSAGE_TYPES.index(rule.type)),
        integer(3, 1),
        text(4, rule.title),
    )
    focus = (_focus_metric(metric) for metric in rule.focus_metrics)
    speedup = b""
    if rule.speedup:
        scope, value = rule.speedup
        speedup = message(10, integer(1, _SPEEDUP_TYPES.index(scope)), double(2, value))
    body = message(3, message(1, spoken, *focus, speedup))
    return message(number, text(1, rule.identifier), text(2, rule.name), body, text(4, rule.section))


def _focus_metric(metric: FocusMetric) -> bytes:
    severity = integer(4, _SEVERITIES.index(metric.severity))
    return message(8, integer(1, 1), text(2, metric.name), double(3, metric.value), severity, text(5, metric.info))
