"""What a study of an operation says: its table, what makes up its times, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ncuroof.formatting import (
    MISSING,
    byte_count,
    byte_rate,
    duration,
    flop_count,
    flop_rate,
    in_operations,
    label,
    share,
    work_units,
)
from ncuroof.present.schemas.model import (
    CriticalEntry,
    DistanceEntry,
    ModelDocument,
    ModelRowEntry,
    ResidencyEntry,
    TrafficEntry,
)

WORDS = frozenset({"machine", "type", "bound"})
"""Columns of the table that hold no numbers."""

_PRODUCT = ("m", "n", "k")
_MOST_CROSSINGS = 6
_GRADES = {
    "near": "at its roof",
    "note": "some headroom",
    "warn": "large headroom",
    "above": "above its roof: the kernel did less work, or moved fewer bytes, than counted here",
}


def counted(document: ModelDocument) -> list[str]:
    """Return what is counted, and for one operation its traffic and work on any machine."""
    first = document["rows"][0]
    return list(_asked(first)) if _is_single(document) else [f"bytes counted: {first['counted']}"]


def table(document: ModelDocument) -> list[list[str]]:
    """Return the headings and a row of cells per row of the study."""
    columns = _columns(document)
    rows = ([cell(row) for _, cell in columns] for row in document["rows"])
    return [[heading for heading, _ in columns], *rows]


def explained(document: ModelDocument) -> list[list[str]]:
    """Return blocks of lines: for one operation a block per machine on what makes up its times, then notes."""
    rows: Sequence[ModelRowEntry] = document["rows"]
    blocks = [list(_explained(row, is_alone=len(rows) == 1)) for row in rows if _is_single(document)]
    return [block for block in (*blocks, list(notes(document))) if block]


def _is_single(document: ModelDocument) -> bool:
    return len({_point(row) for row in document["rows"]}) == 1


def subject(document: ModelDocument) -> str:
    """Return what is modelled: "gemm 4096×4096×4096 bf16 on h100-sxm", "gemv m=1…4096 k=8192 fp16 on a100-sxm-80gb, h100-sxm"."""
    first, last = document["rows"][0], document["rows"][-1]
    machines = dict.fromkeys(row["machine"]["id"] for row in document["rows"])
    values = {
        name: f"{value}…{last['sizes'][name]}" if name in document["swept"] else str(value)
        for name, value in first["sizes"].items()
    }
    is_product = tuple(values) == _PRODUCT and not document["swept"]
    sizes = "×".join(values.values()) if is_product else " ".join(f"{name}={value}" for name, value in values.items())
    what = [document["operation"]["name"], sizes, *options(first), ", ".join(dtypes(document))]
    return f"{' '.join(what)} on {', '.join(machines)}"


def options(row: ModelRowEntry) -> list[str]:
    """Return the options of an operation that are no sizes: "causal", "window=1024"."""
    return [
        f"{name}={value}" if value is not True else name for name, value in row["options"].items() if name != "dtype"
    ]


def dtypes(document: ModelDocument) -> list[str]:
    """Return the element types of a study, in order of first appearance."""
    return list(dict.fromkeys(each["dtype"] for each in document["rows"]))


def is_on_one_machine(document: ModelDocument) -> bool:
    """Return whether a study has a single machine."""
    return len({row["machine"]["id"] for row in document["rows"]}) == 1


def _point(row: ModelRowEntry) -> tuple[object, ...]:
    return (*row["sizes"].values(), row["dtype"])


def _asked(row: ModelRowEntry) -> Iterator[str]:
    """Yield the traffic and work of one operation, on any machine."""
    for word, is_written in (("reads", False), ("writes", True)):
        moved = [_moved(each) for each in row["traffic"] if each["is_written"] is is_written]
        if moved:
            yield f"{word} {', '.join(moved)}"
    work = flop_count(row["flop"], row["precision"])
    yield f"{work} over {byte_count(row['bytes'])}: {_bare(row['intensity_flop_per_byte'])} {_per_byte([row])}"
    yield f"bytes counted: {row['counted']}"
    if row["l2_read_bytes"] is not None:
        l2 = (
            f"{byte_count(row['l2_read_bytes'])} from L2, {_bare(row['l2_intensity_flop_per_byte'])} {_per_byte([row])}"
        )
        yield f"SMs read {l2}; {share(row['l2_hit_frac'])} of it must hit in L2"
    if row["network_bytes"]:
        yield f"each device sends {byte_count(row['network_bytes'])}"


def _moved(each: TrafficEntry) -> str:
    times = "" if each["times"] == 1 else f"{each['times']:.4g} × "
    return f"{each['tensor']} {times}{byte_count(each['bytes'] / each['times'])}"


def _columns(document: ModelDocument) -> list[tuple[str, Any]]:
    """Return headings and what stands under them."""
    rows = document["rows"]
    columns: list[tuple[str, Any]] = [
        (name, lambda row, name=name: str(row["sizes"][name])) for name in document["swept"]
    ]
    if len({row["dtype"] for row in rows}) > 1:
        columns.append(("type", lambda row: row["dtype"]))
    if not (is_on_one_machine(document) and document["swept"]):
        columns.append(("machine", lambda row: row["machine"]["id"]))
    return [
        *columns,
        (_per_byte(rows), lambda row: _bare(row["intensity_flop_per_byte"])),
        ("ridge", lambda row: _bare(row["ridge_flop_per_byte"])),
        ("bound", _bound),
        ("max rate", lambda row: flop_rate(row["attainable_flop_per_s"], row["precision"])),
        ("of peak", lambda row: share(row["peak_frac"])),
        ("min time", lambda row: duration(row["least_ns"])),
    ]


def _bare(value: float | None) -> str:
    """Return an intensity with four digits and no prefix: "1365", "0.9995"."""
    if value is None:
        return MISSING
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def _per_byte(rows: Sequence[ModelRowEntry]) -> str:
    return f"{work_units(row['precision'] or '' for row in rows)}/B".replace(" or ", "/B or ")


def _bound(row: ModelRowEntry) -> str:
    if row["bound"] == "memory" and row["memory_level"] == "l2":
        return "L2"
    return row["bound"] or MISSING


def _explained(row: ModelRowEntry, *, is_alone: bool) -> Iterator[str]:
    """Yield what makes up the times of one row, and what else follows."""
    name = "" if is_alone else f"{row['machine']['id']}: "
    parts = [
        ("compute", row["compute_ns"]),
        ("other arithmetic", row["other_compute_ns"] or None),
        ("DRAM", row["dram_ns"]),
        ("L2", row["l2_ns"]),
        ("network", row["network_ns"]),
    ]
    times = ", ".join(f"{word} {duration(value)}" for word, value in parts if value is not None)
    total = "" if row["most_ns"] is None else f"; {duration(row['most_ns'])} if nothing overlaps"
    yield f"{name}{times}{total}"
    if row["precision"] is not None:
        roof = f"{label(row['precision'])} {flop_rate(row['peak_flop_per_s'], row['precision'])}"
        if row["peak_flop_per_s"] is None:
            roof = f"the data sheet states no {label(row['precision'])} peak"
        is_l2_lost = row["l2_read_bytes"] is not None and row["l2_ns"] is None
        l2 = "; L2 bandwidth not stated, L2 time not counted" if is_l2_lost else ""
        yield f"  roofs: {roof}, DRAM {byte_rate(row['bandwidth_bytes_per_s'])}{l2}"
    if row["side"] == "near_ridge":
        yield "  near the ridge: compute and memory both matter"
    if row["is_shorter_than_a_launch"]:
        yield "  shorter than a kernel launch: launch overhead dominates; batch, fuse, or use a CUDA graph"
    yield from _cached(row["l2"])
    if row["distance"] is not None:
        yield in_operations(_measured(row["distance"]), row["precision"])


def _cached(l2: ResidencyEntry) -> Iterator[str]:
    if l2["hit_frac"] is None:
        return
    size = f"{byte_count(l2['working_set_bytes'])} in an L2 of {byte_count(l2['capacity_bytes'])}"
    rate = "" if l2["bandwidth_bytes_per_s"] is None else f" up to {byte_rate(l2['bandwidth_bytes_per_s'])}"
    if l2["does_fit"]:
        yield f"  {size}: fits{rate and f'; reads that hit reach{rate}'}"
    else:
        hits = f"at most {share(l2['hit_frac'])} hits"
        yield f"  {size}: does not fit; swept in order repeatedly: {hits}{rate and f',{rate}'}"


def _measured(found: DistanceEntry) -> str:
    gap = "" if found["gap_factor"] is None else f", {found['gap_factor']:.2f}× below"
    return (
        f"  measured {flop_rate(found['achieved_flop_per_s'])} of {flop_rate(found['limit_flop_per_s'])}: "
        f"{share(found['efficiency_frac'])}{gap if found['grade'] != 'above' else ''} ({found['grade']}: {_GRADES[found['grade']]})"
    )


def notes(document: ModelDocument) -> Iterator[str]:
    """Yield critical sizes, and which sizes cross the ridge between machines."""
    has_types = len({row["dtype"] for row in document["rows"]}) > 1
    for each in document["critical"]:
        where = f"{each['machine']}{', ' + each['dtype'] if has_types else ''}"
        if document["operation"]["name"] == "sharded-gemm":
            yield f"{where}: compute-bound against the link from {each['size']} > {each['of_large']:.0f}"
        elif each["lacks"] is not None:
            roof = f"{label(each['lacks'])} {'bandwidth' if each['lacks'] == 'dram' else 'peak'}"
            yield f"{where}: unknown whether compute-bound: the data sheet states no {roof}"
        elif each["value"] is None:
            yield f"{where}: never compute-bound, however large {each['size']} is"
        else:
            yield f"{where}: compute-bound from {each['size']} = {each['value']}{_large(each)}"
    crossing = document["crossing"]
    for crossed in crossing[:_MOST_CROSSINGS]:
        point = " ".join(f"{name}={value}" for name, value in crossed["sizes"].items() if name in document["swept"])
        bounds = ", ".join(f"{bound}-bound on {machine}" for machine, bound in crossed["bound_by_machine"].items())
        yield f"crosses the ridge{' at ' + point if point else ''}: {bounds}"
    if len(crossing) > _MOST_CROSSINGS:
        yield f"and {len(crossing) - _MOST_CROSSINGS} more sizes that cross the ridge"


def _large(each: CriticalEntry) -> str:
    return "" if each["of_large"] is None else f" (a very large layer: from {each['of_large']:.0f})"
