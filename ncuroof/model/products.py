"""Matrix and vector products: the models of `ncuroof model gemm`, `linear`, `bmm`, `gemv` and `dot`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from ncuroof.errors import ModelError
from ncuroof.model.dtypes import dtype_of, wider
from ncuroof.model.operation import EACH_ONCE, Operation, made, matrix, read, vector, written

Rereads = Literal["l2", "dram"]

TWICE_READ = "two products, each of which reads its operands once and writes its result once (compulsory traffic)"


def gemm(  # noqa: PLR0913  a product has that many sizes
    m: int,
    n: int,
    k: int,
    *,
    dtype: str = "bf16",
    b_dtype: str | None = None,
    c_dtype: str | None = None,
    accumulate: bool = False,
    tile_m: int | None = None,
    tile_n: int | None = None,
    rereads: Rereads = "l2",
    backward: bool = False,
) -> Operation:
    """Return the product C[M,N] = A[M,K] · B[K,N].

    FLOP   2·M·N·K                  a multiplication and an addition per term
    bytes  a·M·K + b·K·N + c·M·N    A and B are read, C is written; a, b, c in byte/element

    As M grows with N and K fixed, the intensity approaches 2·N·K / (a·K + c·N). While M « N, K it is 2·M/b, whatever N and K are.

    With tiles of TM × TN, each of the ceil(M/TM)·ceil(N/TN) tiles of C reads its rows of A and its columns of B:
    reads  a·M·K·ceil(N/TN) + b·K·N·ceil(M/TM)    that is 2·TM·TN / (b·TM + a·TN) flop/byte for large sizes
    These reads come from L2 (--rereads l2; device memory then moves each tensor once), or from device memory if nothing stays in
    L2 (--rereads dram). Partial tiles at the edges count as whole tiles in the reads of A and B, but not in the FLOPs.

    Backward: dA = dC·Bᵀ and dB = Aᵀ·dC, two products with 2·M·N·K FLOP each, both of which read dC.

    Args:
        m: rows of A and C; in a linear layer, tokens.
        n: columns of B and C.
        k: columns of A and rows of B, the contracted dimension.
        dtype: type of A and of the product.
        b_dtype: type of B, e.g. int4 weights that are dequantised on the chip; the product runs in the wider type.
        c_dtype: type of C; default: that of A.
        accumulate: add to C, which is then read as well; M·N FLOP more.
        tile_m: rows of a tile of C; needs tile_n too.
        tile_n: columns of a tile of C; needs tile_m too.
        rereads: where tiles read what other tiles have already read.
        backward: model the two products of the gradients instead.

    Raises:
        ModelError: a size is not positive, or only one side of a tile is given.
        UnknownNameError: no such element type.

    Source: Williams, Waterman, Patterson, CACM 52(4), 2009; Goto and van de Geijn, ACM TOMS 34(3), 2008, for the tiles.
    """
    a, b, c = dtype_of(dtype), dtype_of(b_dtype or dtype), dtype_of(c_dtype or dtype)
    sizes = {"m": m, "n": n, "k": k, "dtype": a.name, "b_dtype": b_dtype, "c_dtype": c_dtype, "accumulate": accumulate}
    sizes |= {"tile_m": tile_m, "tile_n": tile_n, "backward": backward}
    product = matrix(2 * m * n * k, wider(a, b))
    if backward:
        if tile_m or tile_n:
            raise ModelError("gemm: tiles apply to the forward product only", hint="leave out the tiles or --backward")
        traffic = [read("dC", m * n, c, times=2), read("A", m * k, a), read("B", k * n, b)]
        traffic += [written("dA", m * k, a), written("dB", k * n, a)]
        return made("gemm", sizes, [product, product], traffic, counted=TWICE_READ)
    added = [vector(m * n, c)] if accumulate else []
    traffic = [read("C", m * n if accumulate else 0, c), written("C", m * n, c)]
    once = [read("A", m * k, a), read("B", k * n, b)]
    if tile_m is None and tile_n is None:
        return made("gemm", sizes, [product, *added], [*once, *traffic])
    if tile_m is None or tile_n is None:
        raise ModelError("gemm: a tile needs both sides", hint="give tile_m and tile_n, e.g. tile_m=128 tile_n=256")
    made("gemm", {"tile_m": tile_m, "tile_n": tile_n}, [], [])  # refuses what is not positive before it divides
    tiled = [read("A", m * k, a, times=math.ceil(n / tile_n)), read("B", k * n, b, times=math.ceil(m / tile_m))]
    l2_bytes = sum(each.bytes for each in (*tiled, *traffic) if not each.is_written)
    counted = EACH_ONCE if rereads == "l2" else "A and B again for every tile, from device memory"
    return made(
        "gemm",
        sizes | {"rereads": rereads},
        [product, *added],
        [*(once if rereads == "l2" else tiled), *traffic],
        counted=counted,
        l2_bytes=l2_bytes,
    )


def bmm(
    batch: int,
    m: int,
    n: int,
    k: int,
    *,
    dtype: str = "bf16",
    b_dtype: str | None = None,
    backward: bool = False,
) -> Operation:
    """Return a batch of products C[i] = A[i] · B[i], each with its own matrices.

    FLOP   BATCH · 2·M·N·K
    bytes  BATCH · (a·M·K + b·K·N + a·M·N)

    The intensity is that of one product, whatever the batch size: with M = 1 (weights per example) at most 2/b. Backward as
    in gemm.

    Args:
        batch: number of products.
        m: rows of A and C.
        n: columns of B and C.
        k: contracted dimension.
        dtype: type of A, C and the product.
        b_dtype: type of B; the product runs in the wider type.
        backward: model the two products of the gradients instead.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: those of gemm.
    """
    one = gemm(m, n, k, dtype=dtype, b_dtype=b_dtype, backward=backward)
    work = [replace(each, flop=batch * each.flop) for each in one.work]
    traffic = [replace(each, bytes=batch * each.bytes) for each in one.traffic]
    return made("bmm", {"batch": batch, **one.sizes}, work, traffic, counted=one.counted)


def linear(
    batch: int,
    inputs: int,
    outputs: int,
    *,
    dtype: str = "bf16",
    weight_dtype: str | None = None,
    bias: bool = False,
    backward: bool = False,
) -> Operation:
    """Return a linear layer Y[B,F] = X[B,D] · W[D,F], B tokens at a time.

    FLOP   2·B·D·F (+ B·F with a bias)
    bytes  x·B·D + w·D·F + x·B·F (+ x·F)    X and W are read, Y is written; x, w in byte/element

    While B « D, F the intensity is 2·B/w, that is B flop/byte with 16-bit weights: the batch size decides. The layer is
    compute-bound from B > ridge·w/2, a little later for small layers. Backward: dX = dY·Wᵀ and dW = Xᵀ·dY, 2·B·D·F FLOP each, both
    of which read dY; the bias adds B·F.

    Args:
        batch: tokens, sequences × positions.
        inputs: input features, D.
        outputs: output features, F.
        dtype: type of the activations, and of the product unless the weights are wider.
        weight_dtype: type of the weights, e.g. int8 or int4; group scales are not counted, except those of mxfp4 and nvfp4.
        bias: add a bias per output feature.
        backward: model the gradients instead.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Austin et al., How to Scale Your Model, part 1, 2025.
    """
    x, w = dtype_of(dtype), dtype_of(weight_dtype or dtype)
    sizes = {"batch": batch, "inputs": inputs, "outputs": outputs, "dtype": x.name, "weight_dtype": weight_dtype}
    product = matrix(2 * batch * inputs * outputs, wider(x, w))
    added = [vector(batch * outputs, x)] if bias else []
    if backward:
        traffic = [
            read("dY", batch * outputs, x, times=2),
            read("X", batch * inputs, x),
            read("W", inputs * outputs, w),
        ]
        traffic += [
            written("dX", batch * inputs, x),
            written("dW", inputs * outputs, x),
            written("dbias", outputs if bias else 0, x),
        ]
        products = [product, product, *added]
        return made("linear", {**sizes, "bias": bias, "backward": True}, products, traffic, counted=TWICE_READ)
    traffic = [read("X", batch * inputs, x), read("W", inputs * outputs, w), read("bias", outputs if bias else 0, x)]
    traffic += [written("Y", batch * outputs, x)]
    return made("linear", {**sizes, "bias": bias}, [product, *added], traffic)


def gemv(m: int, k: int, *, dtype: str = "bf16", weight_dtype: str | None = None) -> Operation:
    """Return the product y[M] = W[M,K] · x[K].

    FLOP   2·M·K
    bytes  w·M·K + d·(K + M)    intensity at most 2/w: 1 flop/byte in 16 bits, 0.5 in FP32

    Counted on the FP32 pipes, as GEMV kernels run: no element of W is reused, so a faster unit would wait for the same bytes.

    Args:
        m: rows of W.
        k: columns of W.
        dtype: type of the vectors.
        weight_dtype: type of the matrix.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Williams, Waterman, Patterson, CACM 52(4), 2009.
    """
    x, w = dtype_of(dtype), dtype_of(weight_dtype or dtype)
    traffic = [read("W", m * k, w), read("x", k, x), written("y", m, x)]
    sizes = {"m": m, "k": k, "dtype": x.name, "weight_dtype": weight_dtype}
    return made("gemv", sizes, [vector(2 * m * k, wider(x, w))], traffic)


def dot(n: int, *, dtype: str = "bf16") -> Operation:
    """Return the dot product of two vectors of N elements.

    FLOP   N multiplications + (N − 1) additions = 2·N − 1
    bytes  d·(2·N + 1)    intensity at most 1/d: 0.5 flop/byte in 16 bits

    Args:
        n: elements of each vector.
        dtype: type of the vectors and of the result.

    Raises:
        ModelError: a size is not positive.
        UnknownNameError: no such element type.

    Source: Austin et al., How to Scale Your Model, part 1, 2025.
    """
    d = dtype_of(dtype)
    traffic = [read("x", n, d), read("y", n, d), written("result", 1, d)]
    return made("dot", {"n": n, "dtype": d.name}, [vector(2 * n - 1, d)], traffic)
