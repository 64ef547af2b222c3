"""The keys of the document `ncuroof.model/1`, with what they mean; `docs/documents.md` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from ncuroof.present.schemas.analysis import ToolEntry


class OperationEntry(TypedDict):
    """An operation."""

    name: Annotated[str, "e.g. `gemm`"]
    summary: Annotated[str, "description of the operation"]


class MachineEntry(TypedDict):
    """A machine."""

    id: Annotated[str, "id of the data sheet"]
    name: Annotated[str, "full name"]


class TrafficEntry(TypedDict):
    """The traffic of a tensor."""

    tensor: Annotated[str, "name of the tensor"]
    bytes: Annotated[float, "bytes of all times together"]
    is_written: Annotated[bool, "whether it is written; otherwise it is read"]
    times: Annotated[float, "how often the tensor moves"]


class ResidencyEntry(TypedDict):
    """How the operation fits into L2."""

    working_set_bytes: Annotated[float, "bytes of all tensors, each once"]
    capacity_bytes: Annotated[float | None, "capacity of L2"]
    does_fit: Annotated[bool | None, "whether the working set fits into L2"]
    hit_frac: Annotated[
        float | None,
        "best-case share of repeated uses that hit: 1 where everything fits, less for data swept in order; "
        "null for matrix products and attention that do not fit",
    ]
    bandwidth_bytes_per_s: Annotated[float | None, "resulting bandwidth"]


class DistanceEntry(TypedDict):
    """The distance of a measurement from the limit."""

    limit_flop_per_s: Annotated[float | None, "the limit, `attainable_flop_per_s`"]
    achieved_flop_per_s: Annotated[float, "measured rate"]
    efficiency_frac: Annotated[float | None, "share of the limit"]
    gap_factor: Annotated[float | None, "limit over achieved"]
    grade: Annotated[
        str,
        "`above` (over 100 %: the measured code does or moves less than is counted), `near`, `note` (below 80"
        " %), `warn` (below 50 %)",
    ]


class AskedEntry(TypedDict):
    """The work and traffic that an operation needs on any machine."""

    flop: Annotated[float, "all work"]
    matrix_flop: Annotated[float, "work of matrix products"]
    bytes: Annotated[float, "DRAM bytes, both directions"]
    read_bytes: Annotated[float, "bytes read"]
    written_bytes: Annotated[float, "bytes written"]
    traffic: Annotated[list[TrafficEntry], "what moves"]
    counted: Annotated[str, "which traffic is counted, as a sentence"]
    intensity_flop_per_byte: Annotated[float | None, "FLOPs per DRAM byte"]
    l2_read_bytes: Annotated[float | None, "bytes that the SMs read from L2; null without tiles"]
    l2_intensity_flop_per_byte: Annotated[float | None, "FLOPs per byte read from L2; null without tiles"]
    l2_hit_frac: Annotated[
        float | None,
        "L2 hit rate required so that device memory moves no more than `bytes`; null without tiles",
    ]
    network_bytes: Annotated[float, "bytes that each device sends"]


class ModelRowEntry(AskedEntry):
    """An operation on a machine."""

    sizes: Annotated[dict[str, int], "sizes that were given"]
    options: Annotated[dict[str, Any], "other options, given or default; null where they do not apply"]
    dtype: Annotated[str, "type of the operands"]
    machine: MachineEntry
    precision: Annotated[
        str | None,
        "precision of the work's roof; of several kinds of work, the one that takes longest, even if the data"
        " sheet lacks its peak; null without work",
    ]
    peak_flop_per_s: Annotated[float | None, "peak of that precision; null where the data sheet has none"]
    bandwidth_bytes_per_s: Annotated[float | None, "bandwidth of device memory"]
    l2_bandwidth_bytes_per_s: Annotated[float | None, "bandwidth of L2"]
    ridge_flop_per_byte: Annotated[float | None, "ridge: peak over bandwidth"]
    compute_ns: Annotated[float | None, "time of the kind of work that takes longest, at its peak"]
    other_compute_ns: Annotated[
        float | None,
        "time of the other kinds, each at its own peak, such as softmax in addition to the products of attention",
    ]
    dram_ns: Annotated[float | None, "time of the bytes at the DRAM bandwidth"]
    l2_ns: Annotated[float | None, "time of the bytes read from L2, at its bandwidth"]
    network_ns: Annotated[float | None, "time of the bytes sent over the link; null without a link"]
    bound: Annotated[str | None, "`compute`, `memory`, `network`"]
    memory_level: Annotated[str | None, "memory level that bounds, or would bound"]
    side: Annotated[str | None, "side of the ridge: `memory`, `near_ridge`, `compute`"]
    least_ns: Annotated[float | None, "longest of these times: everything overlaps"]
    most_ns: Annotated[float | None, "sum of these times: nothing overlaps"]
    attainable_flop_per_s: Annotated[
        float | None,
        "all work over `least_ns`: min(peak, intensity × bandwidth) where there is one kind of work and "
        "neither L2 nor a link bounds",
    ]
    peak_frac: Annotated[float | None, "share of the peak: `compute_ns` over `least_ns`"]
    is_shorter_than_a_launch: Annotated[bool | None, "whether launching would take longer than the kernel"]
    l2: Annotated[ResidencyEntry, "how the operation fits into L2"]
    distance: Annotated[
        DistanceEntry | None,
        "distance of a measurement from the limit; null where nothing was measured",
    ]


class CriticalEntry(TypedDict):
    """A critical size."""

    machine: Annotated[str, "id of the data sheet"]
    dtype: Annotated[str, "type of the operands"]
    size: Annotated[str, "size that has several values"]
    value: Annotated[int | None, "smallest value from which compute bounds, or null if no value does or it is unknown"]
    of_large: Annotated[float | None, "the same in the limit of infinitely large other sizes"]
    lacks: Annotated[
        str | None,
        "roof that the data sheet does not state, which leaves the value unknown: a precision or `dram`; null"
        " where it states both",
    ]


class CrossingEntry(TypedDict):
    """Sizes at which the machines differ in what bounds."""

    sizes: Annotated[dict[str, int], "sizes at which the machines differ in what bounds"]
    dtype: Annotated[str, "type of the operands"]
    bound_by_machine: Annotated[
        dict[str, str | None],
        "what bounds on each machine, by its id: `compute`, `memory`, `network`",
    ]


class ModelDocument(TypedDict):
    """The document `ncuroof.model/1`."""

    schema: Annotated[str, "the schema name above"]
    tool: ToolEntry
    operation: OperationEntry
    swept: Annotated[Sequence[str], "sizes that have several values"]
    rows: Annotated[list[ModelRowEntry], "every combination of sizes, element types and machines"]
    critical: Annotated[list[CriticalEntry], "from which size on compute bounds"]
    crossing: Annotated[list[CrossingEntry], "sizes at which what bounds differs between the machines"]
