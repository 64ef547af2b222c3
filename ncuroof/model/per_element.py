"""Elementwise operations and lookups: activations, RoPE, embeddings, AdamW; and custom operations of known work and bytes."""

from __future__ import annotations

from typing import Literal

from ncuroof.model.dtypes import DTYPES, dtype_of
from ncuroof.model.operation import Operation, made, matrix, read, vector, written

_FP32, _INDEX = DTYPES["fp32"], DTYPES["int64"]

_FLOP_PER_ELEMENT = {"relu": (1, 1), "gelu": (5, 11), "silu": (4, 9)}
"""Forward and backward, as derived in `activation`; `profiles/operators.toml` counts PyTorch's operators the same way."""

_ADAMW_FLOP_PER_PARAMETER = 14


def elementwise(
    n: int, *, inputs: int = 1, outputs: int = 1, flop_per_element: int = 1, dtype: str = "bf16"
) -> Operation:
    """Return an elementwise operation on N elements; a fused one has the sum of the work of its parts.

    FLOP   flop_per_element · N    in FP32 for types up to 32 bits
    bytes  (inputs + outputs) · d·N    intensity flop_per_element / ((inputs + outputs)·d), whatever N is

    Fusing cos(cos(x)) into one kernel keeps the FLOPs, halves the bytes, and so doubles the intensity.

    Args:
        n: elements of each tensor.
        inputs: number of tensors read.
        outputs: number of tensors written.
        flop_per_element: FLOP per element.
        dtype: type of all tensors.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Williams, Waterman, Patterson, CACM 52(4), 2009.
    """
    d = dtype_of(dtype)
    sizes = {"n": n, "inputs": inputs, "outputs": outputs, "flop_per_element": flop_per_element, "dtype": d.name}
    work = [vector(flop_per_element * n, d)]
    return made("elementwise", sizes, work, [read("inputs", inputs * n, d), written("outputs", outputs * n, d)])


def activation(
    n: int, *, function: Literal["relu", "gelu", "silu"] = "gelu", dtype: str = "bf16", backward: bool = False
) -> Operation:
    """Return an activation function on N elements.

    FLOP   N · 1 (relu), 5 (gelu: x/√2, erf, +1, ·x, ·½), 4 (silu: −x, exp, +1, x/…); a special function counts 1
           backward N · 1, 11 (gelu: 4 for Φ, 4 for φ, ·x, +, ·dy), 9 (silu: 4 for the sigmoid s, 5 for dy·s·(1 + x·(1 − s)))
    bytes  2·d·N, read and written; backward 3·d·N: x (relu: y) and dy are read, dx is written

    Special functions run on their own pipe (XU), which is narrower than the FP32 pipe. The model ignores this: it matters only for
    data in caches.

    Args:
        n: number of elements.
        function: relu, gelu (with erf) or silu.
        dtype: type of all tensors.
        backward: model the gradient instead.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Hendrycks and Gimpel, arXiv 1606.08415 (GELU); the counts are those of the formulas.
    """
    d = dtype_of(dtype)
    work = [vector(_FLOP_PER_ELEMENT[function][backward] * n, d)]
    traffic = [read("x", n, d), read("dy", n if backward else 0, d), written("dx" if backward else "y", n, d)]
    return made("activation", {"n": n, "function": function, "dtype": d.name, "backward": backward}, work, traffic)


def rope(tokens: int, heads: int, head_dim: int, *, dtype: str = "bf16") -> Operation:
    """Return a rotary position embedding (RoPE) of all heads; its gradient, the inverse rotation, has the same counts.

    FLOP   3·T·H·D: 4 multiplications and 2 additions per pair of elements
    bytes  d·(2·T·H·D + T·D): x is read, y is written; a cosine and a sine per token and pair are read

    0.75 flop/byte in 16 bits. Fused into a kernel that has queries and keys on the chip anyway, it saves all bytes of x and y.

    Args:
        tokens: sequences × positions.
        heads: heads of queries and keys together.
        head_dim: elements per head.
        dtype: type of all tensors, tables included.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Su et al., arXiv 2104.09864.
    """
    d, n = dtype_of(dtype), tokens * heads * head_dim
    sizes = {"tokens": tokens, "heads": heads, "head_dim": head_dim, "dtype": d.name}
    traffic = [read("x", n, d), read("cosines, sines", tokens * head_dim, d), written("y", n, d)]
    return made("rope", sizes, [vector(3 * n, d)], traffic)


def embedding(
    tokens: int, features: int, *, vocabulary: int | None = None, dtype: str = "bf16", backward: bool = False
) -> Operation:
    """Return an embedding lookup: one row of a table per token.

    FLOP   none; backward T·F additions
    bytes  8·T + d·F·(rows + T): indices and rows are read, T rows are written; rows = min(T, vocabulary)
           backward 8·T + d·F·(T + 2·rows): dY is read, rows of the gradient are read and written

    Rows are scattered: short ones waste part of each 32-byte sector, and too few lookups in flight leave bandwidth unused. Both
    keep a lookup below this roof. Zeroing a dense gradient first would write d·vocabulary·F more.

    Args:
        tokens: number of lookups.
        features: elements per row.
        vocabulary: rows of the table; tokens beyond them repeat a row, which caches may hold. Default: one row per token.
        dtype: type of the table.
        backward: model the gradient of the table instead.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: the operation's definition (torch.nn.Embedding).
    """
    d, rows = dtype_of(dtype), min(tokens, vocabulary or tokens)
    sizes = {"tokens": tokens, "features": features, "vocabulary": vocabulary, "dtype": d.name, "backward": backward}
    indices, n = read("indices", tokens, _INDEX), tokens * features
    if backward:
        traffic = [indices, read("dY", n, d), read("dtable", rows * features, d), written("dtable", rows * features, d)]
        return made("embedding", sizes, [vector(n, d)], traffic)
    return made("embedding", sizes, [], [indices, read("rows", rows * features, d), written("Y", n, d)])


def adamw(
    parameters: int,
    *,
    dtype: str = "fp32",
    gradient_dtype: str | None = None,
    state_dtype: str = "fp32",
    master_weights: bool = False,
) -> Operation:
    """Return a fused AdamW step.

    FLOP   14·P: m 3, v 4, decay 1, √v/√c + ε 3, update 3
    bytes  P·(w + g + 2·s) read, P·(w + 2·s) written: 28 byte per parameter in FP32; with FP32 master weights those are read
           and written, and the narrow copy is only written: P·(4 + g + 2·s) and P·(4 + w + 2·s)

    Args:
        parameters: number of parameters.
        dtype: type of the weights that the model computes with.
        gradient_dtype: type of the gradients; default: that of the weights.
        state_dtype: type of both moments.
        master_weights: keep and update an FP32 copy of the weights.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Loshchilov and Hutter, arXiv 1711.05101, algorithm 2.
    """
    w, g, s = dtype_of(dtype), dtype_of(gradient_dtype or dtype), dtype_of(state_dtype)
    sizes = {"parameters": parameters, "dtype": w.name, "gradient_dtype": gradient_dtype, "state_dtype": s.name}
    kept = _FP32 if master_weights else w
    traffic = [read("weights", parameters, kept), read("gradients", parameters, g), read("moments", 2 * parameters, s)]
    traffic += [written("weights", parameters, kept), written("moments", 2 * parameters, s)]
    traffic += [written("narrow weights", parameters if master_weights else 0, w)]
    work = [vector(_ADAMW_FLOP_PER_PARAMETER * parameters, kept)]
    return made("adamw", {**sizes, "master_weights": master_weights}, work, traffic)


def custom(flop: int, bytes: int, *, dtype: str = "bf16", vector_work: bool = False) -> Operation:  # noqa: A002  what it is
    """Return an operation of known work and traffic, such as your own kernel or one from a paper.

    FLOP and bytes are those given.

    Args:
        flop: work in FLOP.
        bytes: device-memory traffic, reads and writes.
        dtype: selects the compute roof: tensor cores if the type has them.
        vector_work: the work is not a matrix product, so the FP32 roof applies (FP64's for FP64).

    Raises:
        ModelError: a number is not positive, or no matrix product is made in that type.
        UnknownNameError: no such element type.

    Source: the caller.
    """
    d = dtype_of(dtype)
    work = [vector(flop, d) if vector_work else matrix(flop, d)]
    sizes = {"flop": flop, "bytes": bytes, "dtype": d.name, "vector_work": vector_work}
    return made("custom", sizes, work, [read("as given", bytes / d.bytes, d)], counted="as given")
