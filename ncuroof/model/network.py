"""A matrix product sharded over devices: what each device computes, moves and sends."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ncuroof.errors import ModelError
from ncuroof.model.dtypes import dtype_of
from ncuroof.model.operation import Operation
from ncuroof.model.products import gemm
from ncuroof.resources import FrozenMapping

Axis = Literal["m", "n", "k"]


def sharded_gemm(  # noqa: PLR0913  a product has that many sizes
    m: int,
    n: int,
    k: int,
    *,
    axis: Axis = "k",
    devices: int = 2,
    dtype: str = "bf16",
    b_dtype: str | None = None,
    c_dtype: str | None = None,
) -> Operation:
    """Return one device's share of C[M,N] = A[M,K] · B[K,N], sharded along an axis.

    FLOP and bytes are those of the share, as in gemm. Sent over the link, by axis:

    k  each device sums K/devices terms; a ring all-reduce adds the partial sums and sends
       2·(devices − 1)/devices · c·M·N bytes per device. Compute-bound against the link when
       2·M·N·K/devices / (flop/s) > 2·(devices − 1)/devices · c·M·N / (byte/s), that is K > (devices − 1) · c · (flop/s) / (byte/s)
    n  each device computes N/devices columns and receives the others: (devices − 1)/devices · c·M·N bytes
    m  each device computes M/devices rows with all of B; nothing is sent

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: the contraction.
        axis: axis that is sharded.
        devices: number of devices.
        dtype: type of A and of the product.
        b_dtype: type of B.
        c_dtype: type of C and of the partial sums that are sent.

    Raises:
        ModelError: a size is not positive, or the axis is not a multiple of the devices.
        UnknownNameError: no such element type.

    Source: Austin et al., How to Scale Your Model, part 1, 2025; Patarasuk and Yuan, J. Parallel Distrib. Comput. 69(2), 2009
    (ring).
    """
    sizes = {"m": m, "n": n, "k": k}
    if devices < 1 or sizes[axis] % devices:
        raise ModelError(
            f"sharded-gemm: {axis} must be a multiple of the number of devices, found {sizes[axis]} and {devices}"
        )
    of_share = sizes | {axis: sizes[axis] // devices}
    share = gemm(of_share["m"], of_share["n"], of_share["k"], dtype=dtype, b_dtype=b_dtype, c_dtype=c_dtype)
    result_bytes = m * n * dtype_of(c_dtype or dtype).bytes
    parts_by_axis = {"k": 2 * (devices - 1) / devices, "n": (devices - 1) / devices, "m": 0.0}
    given = {**share.sizes, **sizes, "axis": axis, "devices": devices}
    return replace(
        share, name="sharded-gemm", sizes=FrozenMapping(given), network_bytes=parts_by_axis[axis] * result_bytes
    )


def critical_contraction(
    peak_flop_per_s: float, link_bytes_per_s: float, *, devices: int = 2, dtype: str = "bf16"
) -> float:
    """Return the size K above which a product sharded along K is compute-bound rather than bound by the link.

    K = (devices − 1) · c · (flop/s) / (byte/s), with c in byte/element. Each term is 2 FLOP, and the all-reduce sends twice around
    the ring.

    Args:
        peak_flop_per_s: peak of the product on one device.
        link_bytes_per_s: bandwidth at which a device sends to the others.
        devices: number of devices.
        dtype: type of the partial sums that are sent.

    Raises:
        UnknownNameError: no such element type.

    Source: those of `sharded_gemm`.
    """
    return (devices - 1) * dtype_of(dtype).bytes * peak_flop_per_s / link_bytes_per_s
