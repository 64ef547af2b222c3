"""The entries of the catalogue: quantities, pairs of achieved and peak rate, stalls, measures of lines, tensor work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ncuroof.metrics.formula import Formula

_REASON = "<reason>"


@dataclass(frozen=True, slots=True)
class Source:
    """One way to compute a quantity.

    Attributes:
        formula: over counters and other quantities.
        note: what a value from this source counts or misses, or None.
        capabilities: compute capabilities (major × 10 + minor) on which the formula is valid; empty: all.
    """

    formula: Formula
    note: str | None
    capabilities: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Quantity:
    """A canonical quantity.

    Attributes:
        name: dotted, the same in tables, JSON document and rules.
        unit: of the value; "share" is 0..1.
        doc: one sentence.
        collect: ncu options that collect it; None if every report has it or no option collects it by itself.
        sources: in order of preference; empty if it is computed from other tables or from machine code.
        is_defined: whether the tables say which source each value comes from.
        excludes: what the value does not count, or counts in addition; None if there is nothing worth saying.
        label: its name for people; None if the words of `name` serve.
        collect_on: pairs of compute capabilities (major × 10 + minor) and the ncu options that replace `collect` on them.
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
    """Achieved rate and peak rate of the traffic of one memory level, or of the work of one precision.

    Attributes:
        achieved: in byte/s or flop/s; a number of FLOPs if `is_count`.
        peak: in the same unit, at the measured clock; or None.
        definition: what is counted.
        is_count: `achieved` is a total that is still to be divided by the duration.
        is_reliable: a verdict may rest on it; False for bounds and estimates.
        capabilities: compute capabilities (major × 10 + minor) on which it is valid; empty: all.
        excludes: what it does not count, or counts in addition, beyond what applies to all pairs of its name; or None.
        peak_definition: what the peak is, if `definition` does not say so; or None.
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
        """What is counted and, if stated separately, what the peak is."""
        return f"{self.definition}; {self.peak_definition}" if self.peak_definition else self.definition


@dataclass(frozen=True, slots=True)
class Stalls:
    """How stall shares are computed: latency counter per reason over their total, else samples per reason over all samples.

    `counter` and `sampled_counters` contain `<reason>` as a placeholder. `reasons` has a sentence per reason on what a warp waits
    for. Every chip counts all reasons except those `only_on_some_chips`.
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
        """Return the latency counter of a stall reason: cycles that warps wait for it per issued instruction."""
        return self.counter.replace(_REASON, reason)

    def of_samples(self, reason: str) -> tuple[str, ...]:
        """Return the counters of samples that found a warp stalled for a reason; `sampled_names` has the reasons renamed there."""
        name = self.sampled_names.get(reason, reason)
        return tuple(counter.replace(_REASON, name) for counter in self.sampled_counters)

    def not_issued(self) -> tuple[str, ...]:
        """Return the counters, one per reason, of samples in which the warp's scheduler issued nothing."""
        return tuple(f"{self.of_samples(reason)[0]}_not_issued" for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class ByLine:
    """A measure that is summed over the instructions of a source line.

    Attributes:
        label: the kernel's total that a line has a share of, in words ("the samples").
        doc: one sentence.
        formulas: over per-instruction counters, in order of preference.
        only: which instructions count: allowed values by counter; empty: all.
        least: kernels with a smaller total are left out.
    """

    label: str
    doc: str
    formulas: tuple[Formula, ...]
    only: Mapping[str, tuple[float, ...]]
    least: float

    def counters(self) -> frozenset[str]:
        """Return the per-instruction counters that it reads."""
        return frozenset(self.only).union(*(formula.counters for formula in self.formulas))


@dataclass(frozen=True, slots=True)
class Neighbours:
    """How the parts of an attention that no kernel fuses, and chains of pointwise kernels, are recognised.

    All strings are regular expressions for kernel names.

    Attributes:
        product: matrix products.
        pointwise: pointwise kernels that may run between a launch and a product.
        most_pointwise: how many of these may run between the launch and the product on either side.
        most_work_ratio: largest ratio of the FLOPs of the two products.
        softmax: softmaxes, which in attention run between its two products.
        not_softmax: those of them that attention does not use (log-softmax).
        softmax_backward: those of them that compute a gradient.
        in_chain: pointwise kernels that one compiled kernel could replace.
        foreach: such kernels that process lists of tensors in several launches.
        copy: such kernels that only copy, convert or fill; no part of a chain.
        narrow: such kernels that work on types of 16 bits or fewer.
        most_mismatch: how far the bytes that one launch writes and the next one reads may differ from those of the same tensor,
            as a share of its bytes.
    """

    product: str
    pointwise: str
    most_pointwise: int
    most_work_ratio: float
    softmax: str
    not_softmax: str
    softmax_backward: str
    in_chain: str
    foreach: str
    copy: str
    narrow: str
    most_mismatch: float


@dataclass(frozen=True, slots=True)
class OptimizerStep:
    """How the step of an optimizer in pointwise kernels of its own is recognised.

    Attributes:
        parts: regular expressions for kernel names, all of which a step for one parameter contains.
        last: the same for its last kernel.
        range: regular expression for the NVTX range of a step.
        most_kernels: how many kernels a step for one parameter has at most.
        n_fused: how many tensors a fused kernel reads and writes for one parameter.
        foreach_range: regular expression for the NVTX range of a step whose foreach passes are known.
        torch_range: regular expression for the NVTX range of any of PyTorch's optimizers, which tells those of other optimizers.
        foreach_pass: regular expression for the names of passes that such a step consists of.
        foreach_parts: regular expressions for kernel names, all of which the passes of a step contain.
        foreach_last: the same for its last pass.
        n_foreach: how many tensors these passes together read and write for one parameter.
    """

    parts: tuple[str, ...]
    last: str
    range: str
    most_kernels: int
    n_fused: int
    foreach_range: str
    torch_range: str
    foreach_pass: str
    foreach_parts: tuple[str, ...]
    foreach_last: str
    n_foreach: int


@dataclass(frozen=True, slots=True)
class EmbeddingGradient:
    """How the launches that sort an embedding's indices for its gradient are recognised: regular expressions for kernel names.

    Attributes:
        sort: sorts, scans and the numbers 0, 1, 2, …; also of other operators.
        count: counts of equal indices; of embeddings alone.
        fill: fills that may run in between.
    """

    sort: str
    count: str
    fill: str


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """How a cross-entropy that no kernel fuses is recognised, and what its log-softmax moves.

    The first six are regular expressions for kernel names; numbers of tensors are of the logits' shape.

    Attributes:
        log_softmax: log-softmaxes.
        log_softmax_backward: their gradients.
        reads_once: those of both that read each row once; the others read it once per reduction and once more.
        loss: the losses behind them.
        loss_backward: their gradients.
        fill: fills, with which the loss's gradient begins.
        most_copies: how many copies may run between two of its parts.
        least_cast: how long a copy takes at least that casts the logits or their gradient, as a share of the log-softmax's time.
        cast_size: size of a tensor before a cast to the type of the log-softmax, as a share of its size behind it.
        n_forward, n_forward_again: tensors that a log-softmax moves if it reads each row once, or again.
        n_backward, n_backward_again: the same for its gradient.
    """

    log_softmax: str
    log_softmax_backward: str
    reads_once: str
    loss: str
    loss_backward: str
    fill: str
    most_copies: int
    least_cast: float
    cast_size: float
    n_forward: int
    n_forward_again: int
    n_backward: int
    n_backward_again: int


@dataclass(frozen=True, slots=True)
class TensorInstruction:
    """How many FLOPs a kernel's tensor instructions do, if their shape is known.

    Attributes:
        name_pattern: regular expression for the kernel's name, which contains the instruction's shape; empty: any name.
        precision: of the inputs.
        n_flop: FLOPs of one warp-level instruction.
        definition: what is counted.
        capabilities: compute capabilities (major × 10 + minor) on which it is valid; empty: all.
    """

    name_pattern: str
    precision: str
    n_flop: float
    definition: str
    capabilities: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TensorOpcodes:
    """What the opcodes of tensor instructions say.

    An opcode is a mnemonic and modifiers, separated by dots: `HMMA.16816.F32.BF16`.

    Attributes:
        counter: the counter whose instances are executed instructions by opcode.
        precision_by_mnemonic: of the inputs, unless a modifier says otherwise; "" for mnemonics that are only recognised.
        precision_by_modifier: of the inputs.
        other_paths: patterns of opcodes, each with the compute capabilities (major × 10 + minor) on which the data sheet's peak
            does not apply to them.
    """

    counter: str
    precision_by_mnemonic: Mapping[str, str]
    precision_by_modifier: Mapping[str, str]
    other_paths: tuple[tuple[re.Pattern[str], frozenset[int]], ...]

    def is_on_another_path(self, opcode: str, capability: float | None) -> bool:
        """Return whether the data sheet's peak does not apply to an opcode on a chip."""
        return any(capability in chips and pattern.fullmatch(opcode) for pattern, chips in self.other_paths)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the opcodes of tensor instructions begin with, including opcodes that are not known yet."""
        return tuple(self.precision_by_mnemonic)


@dataclass(frozen=True, slots=True)
class Tensor:
    """How tensor work is measured: by the counters `sm__ops_path_tensor_*`, else by opcodes, else by all tensor instructions.

    Attributes:
        counter_prefix: of the operation counters.
        cycles_per_second: counter of the clock by which their rates and peaks per cycle are multiplied.
        precision_by_source: precision by input type (`src_…`) in a counter's name.
        sparse_since: compute capability (major × 10 + minor) from which a counter not split by sparsity has the sparse peak.
        never_sparse: input types without structured sparsity.
        opcodes: what the opcodes of instructions say.
        instruction_rate: warp-level tensor instructions per second.
        instructions: FLOPs per tensor instruction; the first entry that fits a kernel applies.
    """

    counter_prefix: str
    cycles_per_second: str
    precision_by_source: Mapping[str, str]
    sparse_since: int
    never_sparse: frozenset[str]
    opcodes: TensorOpcodes
    instruction_rate: Formula
    instructions: tuple[TensorInstruction, ...]
