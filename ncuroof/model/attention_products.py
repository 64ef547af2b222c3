"""Attention, forward and backward: flash or naive, causal or not, with one or several query heads per key head."""

from __future__ import annotations

import math
from typing import Literal

from ncuroof.errors import ModelError
from ncuroof.model.dtypes import DTYPES, Dtype, dtype_of
from ncuroof.model.operation import EACH_ONCE, Operation, Traffic, Work, made, matrix, read, vector, written

_FP32 = DTYPES["fp32"]
_SOFTMAX_FLOP, _SOFTMAX_BACKWARD_FLOP, _RECOMPUTED_BACKWARD_FLOP = 5, 4, 5


def pairs(seq: int, keys: int, *, is_causal: bool, is_at_end: bool = True) -> int:
    """Return the number of scores, pairs of a query and a key: all pairs, or with a causal mask each query up to its position.

    Args:
        seq: number of queries.
        keys: number of keys.
        is_causal: whether there is a causal mask.
        is_at_end: queries and keys are aligned at their ends: the last query sees all keys, as in FlashAttention since 2.1. Else at
            their starts: the first query sees one key, as in `torch.nn.functional.scaled_dot_product_attention(is_causal=True)`.
    """
    if not is_causal:
        return seq * keys
    if not is_at_end:
        n_growing = min(seq, keys)
        return n_growing * (n_growing + 1) // 2 + (seq - n_growing) * keys
    first = keys - seq + 1  # keys that the first query sees
    most = max(first + seq - 1, 0)
    least = max(first, 1)
    return (least + most) * (most - least + 1) // 2 if most else 0


def attention(  # noqa: PLR0913  attention has that many sizes
    seq: int,
    head_dim: int,
    *,
    heads: int = 1,
    batch: int = 1,
    kv_heads: int | None = None,
    keys: int | None = None,
    value_dim: int | None = None,
    method: Literal["flash", "naive"] = "flash",
    causal: bool = False,
    softmax_kernel: bool = False,
    tile_q: int | None = None,
    rereads: Literal["l2", "dram"] = "l2",
    dtype: str = "bf16",
    backward: bool = False,
) -> Operation:
    """Return attention softmax(Q·Kᵀ)·V of B·H heads with L queries and S keys each, head dimension D (E of values).

    FLOP   B·H·P·(2·D + 2·E + 5)    two products and a softmax of 5 FLOP per score; P = L·S scores, or with a causal mask
           L·(L + 1)/2 for L = S (naive kernels compute all scores, then mask them: P = L·S)
    bytes  (flash) d·B·(H·L·D + G·S·(D + E) + H·L·E)    Q, K, V are read, O is written, G key heads; scores never leave the chip
    bytes  (naive) d·B·H·2·L·S more: one product writes the scores and the other reads them, softmax is fused into one of them;
           with a separate softmax kernel (--softmax-kernel) d·B·H·4·L·S more

    With --tile-q TQ, a flash kernel reads K and V again for each of the ceil(L/TQ) blocks of queries (causal: only the keys
    that the block sees). These reads come from L2 (--rereads l2; device memory then moves each tensor once), or from device memory
    if nothing stays in L2 (--rereads dram): about TQ flop/byte in 16 bits. That is why real kernels measure 60 to 90 flop/byte
    where the ideal is L/2.

    Backward, flash
    FLOP   B·H·(P·(6·D + 4·E + 5) + 2·L·E)    five products (Q·Kᵀ again, dV, dP, dQ, dK), 5 FLOP per score, 2·E per query
    bytes  Q, K, V, O, dO and a log-sum per query (FP32) are read, dQ, dK, dV are written

    Backward, naive
    FLOP   B·H·P·(4·D + 4·E + 4)    four products, 4 FLOP per score
    bytes  those of flash and d·B·H·5·L·S: P is read for dV and for dS, dS is written, and read for dQ and for dK

    Args:
        seq: queries per head, L; 1 when decoding.
        head_dim: head dimension of queries and keys, D.
        heads: number of query heads.
        batch: number of sequences.
        kv_heads: number of key and value heads, fewer with grouped-query or multi-query attention; default: heads.
        keys: keys per head, S; default: as many as queries. With a causal mask, queries and keys are aligned at their ends.
        value_dim: head dimension of values and outputs, E; default: that of keys.
        method: flash keeps the scores on the chip, naive stores them.
        causal: each query sees only the keys up to its own position.
        softmax_kernel: softmax is a separate kernel, in a naive forward pass.
        tile_q: queries per block of a flash kernel.
        rereads: where blocks read K and V that other blocks have already read.
        dtype: type of all tensors.
        backward: model the gradients instead.

    Raises:
        ModelError: a size is not positive, heads is not a multiple of kv_heads, or an option does not apply to the method.
        UnknownNameError: no such element type.

    Source: Dao et al., arXiv 2205.14135, and Dao, arXiv 2307.08691, section 2; Shazeer, arXiv 1911.02150 (key heads).
    """
    d, groups, n_keys, e = dtype_of(dtype), kv_heads or heads, keys or seq, value_dim or head_dim
    is_naive = method == "naive"
    sizes: dict[str, object] = {"seq": seq, "head_dim": head_dim, "heads": heads, "batch": batch}
    sizes |= {"kv_heads": kv_heads, "keys": keys, "value_dim": value_dim, "method": method, "causal": causal}
    sizes |= {"softmax_kernel": softmax_kernel, "tile_q": tile_q, "dtype": d.name, "backward": backward}
    made("attention", sizes, [], [])  # refuses what is not positive before it divides
    _refuse(heads, groups, tile_q=tile_q, is_flash_forward=not (is_naive or backward))
    scores = batch * heads * pairs(seq, n_keys, is_causal=causal and not is_naive)
    recomputed_rows = 0 if is_naive else batch * heads * seq
    work = attention_work(scores, head_dim, e, d, recomputed_rows=recomputed_rows, backward=backward)
    traffic = _tensors(batch * seq * heads, batch * n_keys * groups, head_dim, e, d, backward=backward)
    if is_naive:
        n_read, n_written = (4, 1) if backward else (2, 2) if softmax_kernel else (1, 1)
        traffic += [read("scores", scores, d, times=n_read), written("scores", scores, d, times=n_written)]
        counted = f"each tensor once, and the scores written {_times(n_written)} and read {_times(n_read)}"
        return made("attention", sizes, work, traffic, counted=counted)
    if tile_q is None:
        return made("attention", sizes, work, traffic)
    rows = batch * groups * n_keys
    times = batch * heads * _keys_read(seq, n_keys, tile_q, is_causal=causal) / rows
    tiled = [read("K", rows * head_dim, d, times=times), read("V", rows * e, d, times=times)]
    tiled += [each for each in traffic if each.tensor not in {"K", "V"}]
    return made(
        "attention",
        sizes | {"rereads": rereads},
        work,
        traffic if rereads == "l2" else tiled,
        counted=EACH_ONCE if rereads == "l2" else "K and V again for every block of queries, from device memory",
        l2_bytes=sum(each.bytes for each in tiled if not each.is_written),
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _refuse(heads: int, groups: int, *, tile_q: int | None, is_flash_forward: bool) -> None:
    if heads % groups:
        raise ModelError(f"attention: heads must be a multiple of kv_heads, found {heads} and {groups}")
    if tile_q is not None and not is_flash_forward:
        raise ModelError("attention: tile_q applies only to the forward pass of a flash kernel", hint="leave it out")


def attention_work(
    scores: int, dim: int, value_dim: int, d: Dtype, *, recomputed_rows: int, backward: bool
) -> list[Work]:
    """Return the work of the products and of the softmax; a flash kernel's backward pass recomputes the scores.

    Args:
        scores: number of scores of all heads and sequences.
        dim: head dimension of queries and keys.
        value_dim: head dimension of values and outputs.
        d: type of all tensors.
        recomputed_rows: number of queries whose scores were not stored; 0 if scores were stored.
        backward: return the work of the gradients instead.

    Raises:
        ModelError: there are no matrix products in the type.
    """
    if not backward:
        return [matrix(scores * 2 * (dim + value_dim), d), vector(scores * _SOFTMAX_FLOP, d)]
    if not recomputed_rows:
        return [matrix(scores * 4 * (dim + value_dim), d), vector(scores * _SOFTMAX_BACKWARD_FLOP, d)]
    others = scores * _RECOMPUTED_BACKWARD_FLOP + 2 * recomputed_rows * value_dim
    again = matrix(scores * 2 * dim, d, is_recomputed=True)
    return [matrix(scores * 4 * (dim + value_dim), d), again, vector(others, d)]


def _tensors(queries: int, keys: int, dim: int, value_dim: int, d: Dtype, *, backward: bool) -> list[Traffic]:
    inputs = [read("Q", queries * dim, d), read("K", keys * dim, d), read("V", keys * value_dim, d)]
    if not backward:
        return [*inputs, written("O", queries * value_dim, d)]
    inputs += [read("O", queries * value_dim, d), read("dO", queries * value_dim, d), read("log-sums", queries, _FP32)]
    return [*inputs, written("dQ", queries * dim, d), written("dK", keys * dim, d), written("dV", keys * value_dim, d)]


def _keys_read(seq: int, keys: int, tile_q: int, *, is_causal: bool) -> int:
    """Return how many keys the blocks of queries of one head read in total."""
    if not is_causal:
        return math.ceil(seq / tile_q) * keys
    whole, rest = divmod(seq, tile_q)
    # Full block b (b = 1, 2, …) ends with query b·tile_q, which sees keys − seq + b·tile_q keys, or none if that is negative.
    first = max(1, (seq - keys) // tile_q + 1)
    n_seeing = max(0, whole - first + 1)
    return n_seeing * (keys - seq) + tile_q * n_seeing * (first + whole) // 2 + (keys if rest else 0)
