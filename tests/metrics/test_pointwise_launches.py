"""What remains of pointwise kernels that a neighbour's kernel does, by hand-made sequences of names and bytes."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.metrics.catalogue import load_catalogue
from ncuroof.metrics.pointwise_chains import kept_share
from ncuroof.sidecars.counts import Counts, KernelCount
from ncuroof.sidecars.predecessors import Predecessor

MIB = 2**20
PRODUCT = "nvjet_sm90_tst_64x512_64x4_2x1_v_bz_TNT"
NORM = "void at::native::vectorized_layer_norm_kernel<float>(int)"
ADD = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, "
    "std::array<char *, (unsigned long)3>>(int)"
)
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(), std::array<char *, 2>>(int)"
GREATER = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CompareFunctor<float>, std::array<char *, 3>>(int)"
)
STRIDED = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float>>>(int)"
CAST = "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(), std::array<char *, 2>>(int)"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char *, 1>>(int)"
FOREACH = (
    "void at::native::<unnamed>::multi_tensor_apply_kernel<TensorListMetadata<1>, BinaryOpScalarFunctor<float>>(T1)"
)

Launch = tuple[str, float | None, float | None]


def table(*launches: Launch) -> pl.DataFrame:
    """Return launches of one stream: name, MiB read and MiB written; None where these were not counted."""
    names = [name for name, *_ in launches]
    read, written = ([None if each[i] is None else each[i] * MIB for each in launches] for i in (1, 2))
    kernels = pl.DataFrame(
        {
            "id": range(len(names)),
            "name": names,
            "source": 0,
            "process_id": 1,
            "context": 1,
            "stream": 7,
            "failed": False,
        }
        | {"read": pl.Series(read, dtype=pl.Float64), "written": pl.Series(written, dtype=pl.Float64)}
        | {"grid": [[8, 1, 1]] * len(names), "block": [[128, 1, 1]] * len(names)},
        schema_overrides={"id": pl.UInt32, "source": pl.UInt32},
    )
    return kernels.with_columns(
        (pl.col("read") / 32).alias("access.load_sectors"),
        (pl.col("written") / 32).alias("access.store_sectors"),
        (pl.col("read") + pl.col("written")).alias("traffic_bytes.l2"),
    )


def kept(*launches: Launch, streams: list[int] | None = None) -> list[float | None]:
    kernels = table(*launches)
    if streams:
        kernels = kernels.with_columns(stream=pl.Series(streams))
    return kept_share(kernels, load_catalogue().neighbours).to_list()


def beside_a_product(name: str, read: float | None, written: float | None) -> float | None:
    return kept((PRODUCT, 4, 4), (name, read, written))[1]


@pytest.mark.parametrize(
    ("name", "read", "written", "share"),
    [
        (GELU, 4, 4, 0),  # the product writes the activation in place of its result
        (ADD, 8, 4, 1 / 3),  # and reads what is added, one of three tensors
        (ADD, 6, 4, 1 / 5),  # of 16 bits
        (STRIDED, 8, 4, 1 / 3),
        (STRIDED, 4.01, 4, pytest.approx(0.01 / 8.01)),  # a bias
        (GREATER, 8, 1, 1 / 3),  # by their bytes seven ninths, but a byte is written for eight that are read
        (GELU, None, None, 0),
        (ADD, None, None, 1 / 3),
        (STRIDED, None, None, None),
        (STRIDED, 0, 0, None),
        (CAST, 4, 2, None),
        (FILL, 0, 4, None),
        (FOREACH, 4, 4, None),
        (NORM, 4, 4, None),
    ],
)
def test_what_a_product_still_moves_that_does_the_work_of_a_pointwise_kernel(
    name: str, read: float | None, written: float | None, share: float | None
) -> None:
    assert beside_a_product(name, read, written) == (share if share is None else pytest.approx(share))


def test_a_kernel_needs_another_one_beside_it() -> None:
    assert kept((GELU, 4, 4)) == [None]
    assert kept((GELU, 4, 4), (GELU, 4, 4)) == [None, None]
    assert kept((PRODUCT, 4, 4), (GELU, 4, 4), (GELU, 4, 4)) == [None, None, None]  # one operation on two tensors
    assert kept((GELU, 4, 4), (PRODUCT, 4, 4)) == [0, None]
    assert kept((PRODUCT, 4, 4), (GELU, 4, 4), streams=[7, 8]) == [None, None]


@pytest.mark.parametrize(
    ("n_behind_product", "n_behind_itself", "share"),
    [
        (8, 0, 0.0),
        (7, 1, 0.0),
        (4, 0, 0.0),
        (3, 0, None),
        (6, 2, None),
    ],  # two of eight behind itself, and two before itself
)
def test_launches_that_represent_others_have_the_neighbours_that_most_of_these_have(
    n_behind_product: int, n_behind_itself: int, share: float | None
) -> None:
    kernels, known = table((PRODUCT, 4, 4), (GELU, 4, 4)), load_catalogue().neighbours
    shape = ((8, 1, 1), (128, 1, 1))
    before = tuple(
        Predecessor(name, *shape, times)
        for name, times in ((PRODUCT, n_behind_product), (GELU, n_behind_itself))
        if times
    )
    counts = Counts(
        (KernelCount(PRODUCT, *shape, 8, 1000.0), KernelCount(GELU, *shape, 8, 1000.0, predecessors=before))
    )
    assert kept_share(kernels, known, {0: counts}).to_list() == [None, share]
    assert kept_share(kernels, known, {0: None}).to_list() == [None, None]
