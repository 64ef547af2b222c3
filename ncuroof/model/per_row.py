"""Row-wise operations: normalisations, softmax, cross-entropy."""

from __future__ import annotations

from ncuroof.model.dtypes import DTYPES, dtype_of
from ncuroof.model.operation import EACH_ONCE, Operation, made, read, vector, written

_FP32, _INDEX = DTYPES["fp32"], DTYPES["int64"]

_FLOP_PER_ELEMENT = {"layernorm": (8, 13), "rmsnorm": (4, 9), "softmax": (5, 4), "cross-entropy": (4, 3)}
"""Forward and backward, as derived in the docstrings below; `profiles/operators.toml` counts PyTorch's operators the same way."""


def layernorm(rows: int, columns: int, *, dtype: str = "bf16", backward: bool = False) -> Operation:
    """Return a layer normalisation (LayerNorm) with scale and shift.

    FLOP   8·R·C: mean 1, variance 3 (−, ², +), normalise 2, scale and shift 2
           backward 13·R·C: x̂ 2, g = dy·γ 1, Σg 1, Σg·x̂ 2, dx 4, dγ 2, dβ 1
    bytes  d·(2·R·C + 2·C): x, γ and β are read, y is written; a row stays on the chip between its passes
           backward d·(3·R·C + 3·C) + 8·R: x, dy, γ, mean and 1/σ (FP32) are read, dx, dγ and dβ are written

    2 flop/byte in 16 bits. Sources that count 7 FLOP (no variance about the mean), or γ and β once per row, arrive at 0.9 to 1.3.

    Args:
        rows: number of tokens.
        columns: features, which are normalised together.
        dtype: type of x, y and the parameters.
        backward: model the gradients instead.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Ba, Kiros, Hinton, arXiv 1607.06450.
    """
    return _normalisation("layernorm", rows, columns, dtype, n_parameters=2, backward=backward)


def rmsnorm(rows: int, columns: int, *, dtype: str = "bf16", backward: bool = False) -> Operation:
    """Return a root-mean-square normalisation (RMSNorm) with scale.

    FLOP   4·R·C: square 1, sum 1, normalise 1, scale 1
           backward 9·R·C: x̂ 1, g = dy·γ 1, Σg·x̂ 2, dx 3, dγ 2
    bytes  d·(2·R·C + C); backward d·(3·R·C + 2·C) + 4·R: 1/rms (FP32) is read

    Args:
        rows: number of tokens.
        columns: features, which are normalised together.
        dtype: type of x, y and the parameters.
        backward: model the gradients instead.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Zhang and Sennrich, arXiv 1910.07467.
    """
    return _normalisation("rmsnorm", rows, columns, dtype, n_parameters=1, backward=backward)


def _normalisation(name: str, rows: int, columns: int, dtype: str, *, n_parameters: int, backward: bool) -> Operation:
    d, n = dtype_of(dtype), rows * columns
    sizes = {"rows": rows, "columns": columns, "dtype": d.name, "backward": backward}
    work = [vector(_FLOP_PER_ELEMENT[name][backward] * n, d)]
    if not backward:
        parameters = read("parameters", n_parameters * columns, d)
        return made(name, sizes, work, [read("x", n, d), parameters, written("y", n, d)])
    traffic = [
        read("x", n, d),
        read("dy", n, d),
        read("scale", columns, d),
        read("statistics", n_parameters * rows, _FP32),
    ]
    return made(name, sizes, work, [*traffic, written("dx", n, d), written("dparameters", n_parameters * columns, d)])


def softmax(rows: int, columns: int, *, dtype: str = "bf16", reads: int = 1, backward: bool = False) -> Operation:
    """Return a softmax over the columns of each row.

    FLOP   5·R·C: maximum, subtract, exp, sum, divide; backward 4·R·C: y·dy, its sum, subtract, multiply
    bytes  d·(reads + 1)·R·C; backward 3·d·R·C: y and dy are read, dx is written

    --reads is 1 if a row stays in registers or shared memory, 2 for an online softmax of longer rows, and 3 for separate passes
    for maximum, sum and result.

    Args:
        rows: number of rows.
        columns: elements per row.
        dtype: type of input and output.
        reads: how often the input is read from memory.
        backward: model the gradient instead.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Milakov and Gimelshein, arXiv 1805.02867.
    """
    d, n = dtype_of(dtype), rows * columns
    sizes = {"rows": rows, "columns": columns, "dtype": d.name, "reads": reads, "backward": backward}
    work = [vector(_FLOP_PER_ELEMENT["softmax"][backward] * n, d)]
    if backward:
        return made("softmax", sizes, work, [read("y", n, d), read("dy", n, d), written("dx", n, d)])
    counted = EACH_ONCE if reads == 1 else f"the input {reads} times, the output once"
    return made("softmax", sizes, work, [read("x", n, d, times=reads), written("y", n, d)], counted=counted)


def cross_entropy(tokens: int, vocabulary: int, *, dtype: str = "bf16", backward: bool = False) -> Operation:
    """Return a fused cross-entropy of logits with one target per token; probabilities are not written.

    FLOP   4·T·V: maximum, subtract, exp, sum (+ 2 per token); backward 3·T·V: subtract, exp, scale
    bytes  d·T·V + 12·T: logits, targets (8 byte) and losses (FP32); backward 2·d·T·V + 16·T: logits are read, their gradient
           is written; targets, and the logarithms of the sums and the losses' gradients (FP32) are read

    PyTorch's log_softmax and nll_loss also write all log-probabilities: another d·T·V.

    Args:
        tokens: rows of logits.
        vocabulary: number of classes.
        dtype: type of the logits.
        backward: model the gradient instead.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Wijmans et al., arXiv 2411.09009 (Cut Your Losses), for what fusing saves.
    """
    d, n = dtype_of(dtype), tokens * vocabulary
    sizes = {"tokens": tokens, "vocabulary": vocabulary, "dtype": d.name, "backward": backward}
    flop = _FLOP_PER_ELEMENT["cross-entropy"][backward] * n + (0 if backward else 2 * tokens)
    traffic = [read("logits", n, d), read("targets", tokens, _INDEX)]
    if backward:
        traffic += [read("log-sums, dloss", 2 * tokens, _FP32), written("dlogits", n, d)]
    else:
        traffic += [written("losses", tokens, _FP32)]
    return made("cross-entropy", sizes, [vector(flop, d)], traffic)
