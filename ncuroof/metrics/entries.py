"""The entries of the catalogue: a quantity, a pair of roof traffic or work, stalls, tensor work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ncuroof.metrics.formula import Formula

_REASON = "<reason>"


@dataclass(frozen=True, slots=True)
class Source:
    """One way to get a quantity.

    Attributes:
        formula: over counters and other quantities.
        note: what the number then counts or misses, or None.
        capabilities: compute capabilities (major × 10 + minor) on which it holds; empty: all.
    """

    formula: Formula
    note: str | None
    capabilities: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Quantity:
    """A canonical quantity.

    Attributes:
        name: dotted, as in tables, document and rules.
        unit: of the value; "share" is 0..1.
        doc: one sentence.
        collect: options of ncu that collect it, or None where every report has it or nothing collects it alone.
        sources: in order of preference; none where it is computed from other tables.
        is_defined: the tables say by which of its sources each number was found.
        excludes: what the number does not count, or counts besides, or None where nothing is worth saying.
        label: what people call it, or None where the words of its name say it.
        collect_on: compute capabilities (major × 10 + minor) on which other options collect it, with these.
    """

    name: str
    unit: str
    doc: str
    collect: str | None
    sources: tuple[Source, ...]
    is_defined: bool = False
    excludes: str | None = None
    label: str | None = None
    collect_on: tuple[tuple[tuple[int, ...], str], ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Achieved and peak of one kind of roof traffic or work.

    Attributes:
        achieved: byte/s or flop/s; a count in flop where `is_count`.
        peak: per second at the measured clock, or None.
        definition: what is counted.
        is_count: `achieved` is a total, to be divided by the duration.
        is_reliable: a verdict may rest on it; False for bounds and estimates.
        capabilities: compute capabilities (major × 10 + minor) on which it holds; empty: all.
        excludes: what it does not count, or counts besides, apart from what holds for all pairs of its name, or None.
        peak_definition: what the peak is, where `definition` does not say it, or None.
    """

    achieved: Formula
    peak: Formula | None
    definition: str
    is_count: bool = False
    is_reliable: bool = True
    capabilities: tuple[int, ...] = ()
    excludes: str | None = None
    peak_definition: str | None = None

    @property
    def whole_definition(self) -> str:
        """What is counted, and what the peak is."""
        return f"{self.definition}; {self.peak_definition}" if self.peak_definition else self.definition


@dataclass(frozen=True, slots=True)
class Stalls:
    """How stall shares are found: counters per reason over their total, else samples over all samples.

    `reasons` is, by name, what a warp waits for: one sentence. All but those `only_on_some_chips` are counted on every chip.
    """

    doc: str
    excludes: str
    reasons: Mapping[str, str]
    counter: str
    total: str
    only_on_some_chips: tuple[str, ...]
    sampled_counters: tuple[str, ...]
    sampled_names: Mapping[str, str]
    collect: str

    def of_latency(self, reason: str) -> str:
        """Return the counter of the cycles that warps stall for a reason."""
        return self.counter.replace(_REASON, reason)

    def of_samples(self, reason: str) -> tuple[str, ...]:
        """Return the counters of the samples that found a warp stalled for a reason; two reasons have other names there."""
        name = self.sampled_names.get(reason, reason)
        return tuple(counter.replace(_REASON, name) for counter in self.sampled_counters)


@dataclass(frozen=True, slots=True)
class ByLine:
    """What is summed over the instructions of a line.

    Attributes:
        label: what a line has a share of.
        doc: one sentence.
        formulas: over counters of instructions, in order of preference.
        only: of which instructions: by counter the values that it may have.
        least: kernels with a smaller total are left out.
    """

    label: str
    doc: str
    formulas: tuple[Formula, ...]
    only: Mapping[str, tuple[float, ...]]
    least: float

    def counters(self) -> frozenset[str]:
        """Return the counters that it reads."""
        return frozenset(self.only).union(*(formula.counters for formula in self.formulas))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """How launches between two matrix products are told, and chains of pointwise kernels.

    Attributes:
        product: pattern of the names of matrix products.
        pointwise: of pointwise kernels.
        most_pointwise: how many of these may lie between.
        most_work_ratio: how far the work of the two products may differ.
        in_chain: pattern of the names of pointwise kernels that one compiled kernel could replace.
        foreach: of such kernels that work on lists of tensors in several launches.
        copy: of those that only copy, convert or fill.
        narrow: of those that work on types of 16 bits or fewer.
        most_mismatch: by which share of its bytes a tensor may differ that one writes and the next one reads.
    """

    product: str
    pointwise: str
    most_pointwise: int
    most_work_ratio: float
    in_chain: str
    foreach: str
    copy: str
    narrow: str
    most_mismatch: float


@dataclass(frozen=True, slots=True)
class TensorInstruction:
    """What one tensor instruction of a kernel is worth, where its shape can be told.

    Attributes:
        name_pattern: regular expression that the kernel's name fits; it names the instruction's shape.
        precision: of the inputs.
        n_flop: of one warp-level instruction.
        definition: what is counted.
        capabilities: compute capabilities (major × 10 + minor) on which it holds; empty: all.
    """

    name_pattern: str
    precision: str
    n_flop: float
    definition: str
    capabilities: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TensorOpcodes:
    """What the names of tensor instructions tell.

    Attributes:
        counter: whose instances are counts by opcode.
        precision_by_mnemonic: of the inputs, where no modifier says another.
        precision_by_modifier: of the inputs.
        other_paths: patterns of names, with the compute capabilities on which these instructions have other peaks than the data
            sheet says.
    """

    counter: str
    precision_by_mnemonic: Mapping[str, str]
    precision_by_modifier: Mapping[str, str]
    other_paths: tuple[tuple[re.Pattern[str], frozenset[int]], ...]

    def is_on_another_path(self, opcode: str, capability: float | None) -> bool:
        """Return whether an instruction has another peak on a chip than the data sheet says."""
        return any(capability in chips and pattern.fullmatch(opcode) for pattern, chips in self.other_paths)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the names of tensor instructions begin with, those included that are not known yet."""
        return tuple(self.precision_by_mnemonic)


@dataclass(frozen=True, slots=True)
class Tensor:
    """How tensor work is found: by the names of `sm__ops_path_tensor_*`, else by opcodes, else by instructions.

    Attributes:
        counter_prefix: of the counters of operations.
        cycles_per_second: the clock that goes with their rates and peaks per cycle.
        precision_by_source: precision by the input types in a counter's name.
        sparse_since: compute capability from which a counter that is not split by sparsity has the sparse peak.
        never_sparse: input types without structured sparsity.
        opcodes: what the names of instructions tell.
        instruction_rate: warp-level tensor instructions per second.
        instructions: what these are worth, the first that fits.
    """

    counter_prefix: str
    cycles_per_second: str
    precision_by_source: Mapping[str, str]
    sparse_since: int
    never_sparse: frozenset[str]
    opcodes: TensorOpcodes
    instruction_rate: Formula
    instructions: tuple[TensorInstruction, ...]
