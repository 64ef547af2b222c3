"""The catalogue of canonical quantities, read from `profiles/metrics.toml` and `profiles/metrics/`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ncuroof.enums import SPARSE_SUFFIX, TENSOR_PREFIX, Precision
from ncuroof.errors import ProfileError
from ncuroof.metrics.catalogue_types import (
    ByLine,
    CrossEntropy,
    EmbeddingGradient,
    Neighbours,
    OptimizerStep,
    Pair,
    Quantity,
    Source,
    Stalls,
    Tensor,
    TensorInstruction,
    TensorOpcodes,
)
from ncuroof.metrics.formula import Formula, parse
from ncuroof.resources import profile_file

_BREAKDOWN = "breakdown:{}.avg.pct_of_peak_sustained_elapsed"
BREAKDOWNS = {
    "memory": _BREAKDOWN.format("gpu__compute_memory_throughput"),
    "compute": _BREAKDOWN.format("sm__throughput"),
}
"""By side: the text metric that lists the counters behind Nsight Compute's Speed of Light throughput."""

DEVICE_NAME = "device__attribute_display_name"

_IDENTITY_COUNTERS = frozenset(
    f"launch__{name}"
    for name in (
        "grid_dim_x", "grid_dim_y", "grid_dim_z", "block_dim_x", "block_dim_y", "block_dim_z",
        "stream_id", "context_id", "device_id", "uses_green_context",
    )
) | {"device__attribute_compute_capability_major", "device__attribute_compute_capability_minor"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The content of `profiles/metrics.toml` and `profiles/metrics/`.

    Attributes:
        capabilities: compute capabilities (major × 10 + minor) of the chips whose counters it lists.
        quantities: quantities with formulas.
        computed: quantities that other code computes; without sources.
        measured: `bandwidth.<level>`, `work.<precision>` and `work.tensor`: what their pairs have in common; without sources.
        bandwidth: pairs by memory level, in order of preference.
        work: pairs by precision, in order of preference.
        tensor: how tensor work is measured.
        stalls: how the shares of the stall reasons are computed.
        by_line: measures of source lines, including the samples of each stall reason (`stalls.<reason>`).
        neighbours: how launches between two matrix products, and chains of pointwise kernels, are recognised.
        cross_entropy: how a cross-entropy in several kernels is recognised.
        embedding_gradient: how the sort for an embedding's gradient is recognised.
        optimizer_step: how the step of an optimizer in pointwise kernels is recognised.
        resources: resource by prefix of a counter's name, for each side of Speed of Light ("memory", "compute").
    """

    capabilities: tuple[int, ...]
    quantities: tuple[Quantity, ...]
    computed: tuple[Quantity, ...]
    measured: tuple[Quantity, ...]
    bandwidth: Mapping[str, tuple[Pair, ...]]
    work: Mapping[str, tuple[Pair, ...]]
    tensor: Tensor
    stalls: Stalls
    by_line: Mapping[str, ByLine]
    neighbours: Neighbours
    cross_entropy: CrossEntropy
    embedding_gradient: EmbeddingGradient
    optimizer_step: OptimizerStep
    resources: Mapping[str, Mapping[str, str]]

    def described(self) -> tuple[Quantity, ...]:
        """Return all quantities: those with formulas, then those that other code computes, which have no sources."""
        return self.quantities + self.computed

    def pairs(self, name: str) -> tuple[Pair, ...]:
        """Return the pairs of `bandwidth.<level>` or `work.<precision>`; none for any other name."""
        table, _, key = name.partition(".")
        return {"bandwidth": self.bandwidth, "work": self.work}.get(table, {}).get(key, ())

    def quantity(self, name: str) -> Quantity:
        """Return the quantity called `name`, also if other code computes it or it is `bandwidth.<level>` or `work.<precision>`.

        Raises:
            ProfileError: nothing has that name.
        """
        for quantity in (*self.described(), *self.measured):
            if quantity.name == name:
                return quantity
        raise ProfileError(f"metrics.toml: nothing is called {name!r}")

    def formulas(self) -> Iterator[Formula]:
        """Yield every formula of the catalogue."""
        for quantity in self.quantities:
            yield from (source.formula for source in quantity.sources)
        for pairs in (*self.bandwidth.values(), *self.work.values()):
            for pair in pairs:
                yield pair.achieved
                if pair.peak is not None:
                    yield pair.peak
        yield self.tensor.instruction_rate

    def counters(self) -> frozenset[str]:
        """Return every counter that the catalogue reads by name."""
        named = frozenset().union(*(formula.counters for formula in self.formulas()))
        stalls = self.stalls
        by_reason = {
            name for reason in stalls.reasons for name in (stalls.of_latency(reason), *stalls.of_samples(reason))
        }
        return named | by_reason | {stalls.total, self.tensor.cycles_per_second} | _IDENTITY_COUNTERS


@cache
def load_catalogue() -> Catalogue:
    """Return the catalogue that ships with ncuroof.

    Raises:
        ProfileError: `profiles/metrics.toml` is malformed.
    """
    with profile_file("metrics.toml") as raw:
        return _catalogue(raw)


@cache
def quantity_unit(name: str) -> str:
    """Return the unit of a quantity: stall reasons, which the catalogue does not list one by one, are shares."""
    return {quantity.name: quantity.unit for quantity in load_catalogue().described()}.get(name, "share")


def precisions() -> tuple[str, ...]:
    """Return the names of all precisions, each tensor precision that has structured sparsity followed by its sparse variant."""
    tensor = load_catalogue().tensor
    dense = {tensor.precision_by_source[source] for source in tensor.never_sparse}
    return tuple(
        name
        for each in Precision
        for name in (each.value, f"{each.value}{SPARSE_SUFFIX}")
        if name == each.value or (name.startswith(TENSOR_PREFIX) and each.value not in dense)
    )


def _catalogue(raw: Mapping[str, Any]) -> Catalogue:
    tensor, stalls = raw["tensor"], _stalls(raw["stalls"])
    return Catalogue(
        capabilities=tuple(raw["chips"]["compute_capabilities"]),
        quantities=tuple(_quantity(name, entry) for name, entry in raw["quantity"].items()),
        computed=tuple(_described(name, entry) for name, entry in raw["computed"].items()),
        measured=tuple(_described(name, entry) for name, entry in raw["measured"].items()),
        bandwidth={level: tuple(map(_pair, pairs)) for level, pairs in raw["bandwidth"].items()},
        work={precision: tuple(map(_pair, pairs)) for precision, pairs in raw["work"].items()},
        tensor=Tensor(
            counter_prefix=tensor["counter_prefix"],
            cycles_per_second=tensor["cycles_per_second"],
            precision_by_source=tensor["precision_by_source"],
            sparse_since=tensor["sparse_since"],
            never_sparse=frozenset(tensor["never_sparse"]),
            opcodes=_opcodes(tensor["opcodes"]),
            instruction_rate=parse(tensor["instruction_rate"]),
            instructions=tuple(map(_instruction, tensor["instruction"])),
        ),
        stalls=stalls,
        by_line={name: _by_line(entry, raw["by_line"]) for name, entry in raw["by_line"].items()}
        | _samples(stalls, least=float(raw["by_line"]["samples"]["least"])),
        neighbours=Neighbours(**raw["neighbours"]),
        cross_entropy=CrossEntropy(**raw["cross_entropy"]),
        embedding_gradient=EmbeddingGradient(**raw["embedding_gradient"]),
        optimizer_step=OptimizerStep(
            **raw["optimizer_step"] | {key: tuple(raw["optimizer_step"][key]) for key in ("parts", "foreach_parts")}
        ),
        resources=raw["resource"],
    )


def _by_line(entry: Mapping[str, Any], others: Mapping[str, Any]) -> ByLine:
    formulas = tuple(parse(source["formula"]) for source in entry["sources"])
    chosen = others[entry["only_as"]]["only"] if "only_as" in entry else entry.get("only", {})
    only = {name: tuple(map(float, values)) for name, values in chosen.items()}
    return ByLine(entry["label"], entry["doc"], formulas, only, float(entry.get("least", 0)))


def _samples(stalls: Stalls, least: float) -> dict[str, ByLine]:
    """Return the measures of source lines that count samples: those of each stall reason, and those without an issue."""
    not_issued = ByLine(
        "the samples without an issue",
        "Samples in a cycle in which the warp's scheduler issued nothing: unlike others, these cost time.",
        (parse(f"sum({', '.join(stalls.not_issued())})"),),
        {},
        least,
    )
    return {"not_issued": not_issued} | {
        f"stalls.{reason}": ByLine(
            "the samples of this stall",
            f"Samples that found a warp stalled: {reason}.",
            tuple(map(parse, stalls.of_samples(reason))),
            {},
            least,
        )
        for reason in stalls.reasons
    }


def _stalls(entry: Mapping[str, Any]) -> Stalls:
    lists = {name: tuple(entry[name]) for name in ("only_on_some_chips", "sampled_counters")}
    return Stalls(**{**entry, **lists})


def _quantity(name: str, entry: Mapping[str, Any]) -> Quantity:
    return _described(name, entry, tuple(map(_source, entry["sources"])))


def _source(entry: Mapping[str, Any]) -> Source:
    return Source(parse(entry["formula"]), entry.get("note"), tuple(entry.get("compute_capability", ())))


def _described(name: str, entry: Mapping[str, Any], sources: tuple[Source, ...] = ()) -> Quantity:
    return Quantity(
        name,
        entry["unit"],
        entry["doc"],
        entry.get("collect"),
        sources,
        entry.get("defined", False),
        entry.get("excludes"),
        entry.get("label"),
        tuple((tuple(each["compute_capability"]), each["options"]) for each in entry.get("collect_on", ())),
    )


def _pair(entry: Mapping[str, Any]) -> Pair:
    is_count = "count" in entry
    achieved = entry["count"] if is_count else entry.get("rate") or entry["achieved"]
    peak = parse(entry["peak"]) if "peak" in entry else None
    return Pair(
        parse(achieved),
        peak,
        entry["definition"],
        is_count,
        entry.get("reliable", True),
        tuple(entry.get("compute_capability", ())),
        entry.get("excludes"),
        entry.get("peak_definition"),
    )


def _opcodes(entry: Mapping[str, Any]) -> TensorOpcodes:
    paths = ((re.compile(path["pattern"]), frozenset(path["compute_capability"])) for path in entry["other_path"])
    return TensorOpcodes(entry["counter"], entry["precision_by_mnemonic"], entry["precision_by_modifier"], tuple(paths))


def _instruction(entry: Mapping[str, Any]) -> TensorInstruction:
    return TensorInstruction(
        entry.get("name_pattern", ""),
        entry["precision"],
        entry["flop"],
        entry["definition"],
        tuple(entry.get("compute_capability", ())),
    )
