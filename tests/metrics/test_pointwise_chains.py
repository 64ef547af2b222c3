"""Chains of pointwise kernels, by hand-made sequences of names and bytes."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.metrics.catalogue import load_catalogue
from ncuroof.metrics.pointwise_chains import fusable_share
from ncuroof.sidecars.counts import Counts, KernelCount
from ncuroof.sidecars.predecessors import Predecessor

P = "nvjet_sm90_tst_64x512_64x4_2x1_v_bz_TNT"
SCALE = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float>>(int)"
NORM = "void at::native::vectorized_layer_norm_kernel<float>(int)"
MIB = 2**20
COS = "void at::native::vectorized_elementwise_kernel<4, at::native::cos_kernel_cuda(at::TensorIteratorBase &)>(int)"
ADD_BF16 = "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>>(int)"
TO_BF16 = "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(int)>(int)"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(int)>(int)"
ZERO = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"
FOREACH = "void at::native::<unnamed>::multi_tensor_apply_kernel<TensorListMetadata<1>, {}<float>>(T1)"
MULTIPLY, ADD = FOREACH.format("BinaryOpScalarFunctor"), FOREACH.format("PointwiseOpScalarFunctor")
FUSED = FOREACH.format("FusedAdamMathFunctor")


def moving(*launches: tuple[str, float, float]) -> pl.DataFrame:
    """Return launches of one stream: name, MiB that the SMs read, MiB that they write, and in DRAM as many."""
    names = [name for name, *_ in launches]
    reads, writes = ([float(each[place]) for each in launches] for place in (1, 2))
    return pl.DataFrame(
        {"id": range(len(names)), "name": names, "source": 0, "process_id": 1, "context": 1, "stream": 7}
        | {"access.load_sectors": [read * MIB / 32 for read in reads]}
        | {"access.store_sectors": [written * MIB / 32 for written in writes]}
        | {"traffic_bytes.l2": [(read + written) * MIB for read, written in zip(reads, writes, strict=True)]}
        | {"traffic_bytes.dram_read": [read * MIB for read in reads]}
        | {"traffic_bytes.dram_write": [written * MIB for written in writes]}
    )


def fusable(*launches: tuple[str, float, float], **columns: list[float | None] | float | None) -> list[float | None]:
    """Return what is known of launches, but for what is changed of them."""
    kernels = moving(*launches)
    changed = [
        pl.Series(name, values, kernels.schema[name])
        if isinstance(values, list)
        else pl.lit(values, kernels.schema[name]).alias(name)
        for name, values in columns.items()
    ]
    return fusable_share(kernels.with_columns(changed), load_catalogue().neighbours).to_list()


@pytest.mark.parametrize(
    ("launches", "shares"),
    [
        # reads 4, writes 4: in one kernel the first does not write, and the second does not read
        ([(COS, 4, 4), (COS, 4, 4)], [1 / 2, 1 / 2]),
        ([(COS, 4, 4), (SCALE, 4, 4), (COS, 4, 4)], [1 / 2, 1, 1 / 2]),  # nothing is left to move for the one between
        ([(COS, 4, 4), (COS, 4, 4), (COS, 4, 4)], [0, 0, 0]),  # one operation on three tensors
        ([(SCALE, 4, 4), *[(COS, 4, 4)] * 4, (SCALE, 4, 4)], [1 / 2, 1 / 2, 0, 0, 1 / 2, 1 / 2]),
        ([(COS, 4, 4), (COS, 2, 2), (COS, 2, 2), (COS, 1, 1)], [0, 1 / 2, 1 / 2, 0]),  # two of a size
        ([(COS, 4, 4)], [0]),
        ([(COS, 4, 4), (SCALE, 8, 4)], [4 / 8, 4 / 12]),  # x * y of a cosine x
        (
            [(SCALE, 4, 1), (SCALE, 5, 4)],
            [1 / 5, 1 / 9],
        ),  # x > 0, a byte each, and where(): both read x, which is not seen
        ([(COS, 4, 4), (SCALE, 4.05, 4)], [4 / 8, 4 / 8.05]),  # and a row that all add
        ([(COS, 4, 4), (SCALE, 4.4, 4)], [0, 0]),
        ([(COS, 4, 4), (SCALE, 3.8, 3.8)], [0, 0]),  # reads less than what was written
        ([(COS, 4, 4), (SCALE, 3.95, 3.95)], [4 / 8, 1 / 2]),
        ([(COS, 4, 4), (SCALE, 8, 3)], [0, 0]),  # three quarters as many elements
        ([(COS, 4, 4), (NORM, 4, 4), (COS, 4, 4)], [0, 0, 0]),
        ([(COS, 4, 4), (P, 4, 4)], [0, 0]),
        ([(COS, 4, 4), ("triton_poi_fused_cos_0", 4, 4)], [0, 0]),  # what a compiler left apart
        ([(COS, 4, 4), (COPY, 4, 4), (COS, 4, 4)], [0, 0, 0]),  # left out by another finding, whole
        ([(COS, 4, 4), (TO_BF16, 4, 2), (ADD_BF16, 4, 2)], [0, 0, 0]),
        ([(ZERO, 0, 4), (SCALE, 8, 4)], [0, 0]),
        ([(ADD_BF16, 8, 4), (COS, 4, 4)], [0, 0]),  # twice as many elements of half the size
        ([(ADD_BF16, 8, 4), (ADD_BF16, 8, 4)], [4 / 12, 4 / 12]),
        ([(MULTIPLY, 4, 4), (ADD, 12, 4)], [4 / 8, 4 / 16]),
        ([(MULTIPLY, 4, 4), (MULTIPLY, 4, 4)], [0, 0]),  # the same operation on the next tensors
        ([(MULTIPLY, 4, 4), (COS, 4, 4)], [0, 0]),  # a list of tensors, and one
        ([(MULTIPLY, 4, 4), (FUSED, 16, 12)], [0, 0]),
    ],
)
def test_what_one_pointwise_kernel_writes_and_the_next_one_reads(
    launches: list[tuple[str, float, float]], shares: list[float]
) -> None:
    assert fusable(*launches) == pytest.approx(shares)


@pytest.mark.parametrize(
    ("columns", "shares"),
    [
        ({"stream": [7, 8]}, [0, 0]),
        ({"context": [1, 2]}, [0, 0]),
        ({"process_id": [1, 2]}, [0, 0]),
        ({"source": [0, 1]}, [0, 0]),
        ({"stream": None}, [0.5, 0.5]),  # of old reports
        # L2 keeps what the first wrote until it ends: DRAM's bytes give nothing back there, and all that the second reads
        ({"traffic_bytes.dram_write": 0.0}, [0, 0.5]),
        ({"traffic_bytes.dram_read": None, "traffic_bytes.dram_write": None}, [0.5, 0.5]),  # L2's alone
        ({"traffic_bytes.dram_read": 0.0, "traffic_bytes.dram_write": 0.0}, [0.5, 0.5]),
        ({"access.load_sectors": [None, MIB / 8]}, [None, 0.5]),  # what the first writes is known
        ({"traffic_bytes.l2": None}, [0.5, 0.5]),
        ({"access.load_sectors": [MIB / 4, MIB / 8]}, [0.5, 0.5]),  # x * x: the second load finds it in L1
    ],
)
def test_the_same_queue_and_known_bytes_are_asked_for(
    columns: dict[str, list[float | None] | float | None], shares: list[float | None]
) -> None:
    assert fusable((COS, 4, 4), (COS, 4, 4), **columns) == shares


def test_launches_of_other_streams_may_lie_between() -> None:
    assert fusable((COS, 4, 4), (NORM, 4, 4), (COS, 4, 4), stream=[7, 8, 7]) == [0.5, 0, 0.5]


def counted(*launches: tuple[str, int, dict[str, int] | None]) -> Counts:
    """Return the counts of kernels of one shape: name, launches, and how many of them ran behind which."""
    one = (1, 1, 1)
    return Counts(
        tuple(
            KernelCount(name, one, one, n, 1000.0, predecessors=before if before is None else tuple(
                Predecessor(each, one, one, times) for each, times in before.items()
            ))
            for name, n, before in launches
        )
    )  # fmt: skip


def as_counted(counts: Counts | None, *launches: tuple[str, float, float]) -> list[float | None]:
    one = [[1, 1, 1]] * len(launches)
    kernels = moving(*launches).with_columns(pl.Series("grid", one), pl.Series("block", one), failed=False)
    return fusable_share(kernels, load_catalogue().neighbours, {0: counts}).to_list()


ONE, TWO = (COS, 4.0, 4.0), (SCALE, 4.0, 4.0)


@pytest.mark.parametrize(
    ("counts", "launches", "shares"),
    [
        (None, (ONE, TWO), [None, None]),
        (counted((COS, 8, None), (SCALE, 8, None)), (ONE, TWO), [None, None]),  # of an earlier version
        # recorded beside each other, and never run so
        (counted((COS, 8, {NORM: 8}), (SCALE, 8, {NORM: 8})), (ONE, TWO), [0, 0]),
        (counted((COS, 8, {NORM: 8}), (SCALE, 8, {COS: 8})), (ONE, TWO), [1 / 2, 1 / 2]),
        (counted((COS, 8, {NORM: 8}), (SCALE, 8, {COS: 8})), (TWO, (NORM, 4.0, 4.0), ONE), [1 / 2, 0, 1 / 2]),
        # a quarter of the 8 cosines hands on, which is what half of the 4 products take over
        (counted((COS, 8, {NORM: 8}), (SCALE, 4, {COS: 2, NORM: 2})), (ONE, TWO), [1 / 8, 1 / 4]),
        # of the two products that were recorded each stands for half of them
        (counted((COS, 8, {NORM: 8}), (SCALE, 4, {COS: 4})), (ONE, TWO, TWO), [1 / 4, 1 / 2, 1 / 2]),
        # of which one is of other bytes, and reads nothing that a cosine wrote
        (counted((COS, 8, {NORM: 8}), (SCALE, 4, {COS: 4})), (ONE, TWO, (SCALE, 2.0, 2.0)), [1 / 8, 1 / 2, 0]),
        (counted((COS, 8, {COS: 4, NORM: 4})), (ONE,), [1 / 2]),  # pairs of it
        (counted((COS, 8, {COS: 7})), (ONE,), [0]),  # a loop of it alone
        (counted((COS, 9, {COS: 6, NORM: 3})), (ONE, ONE), [0, 0]),  # three in a row
    ],
)
def test_where_launches_stand_for_others_their_neighbours_are_those_that_were_counted(
    counts: Counts | None, launches: tuple[tuple[str, float, float], ...], shares: list[float | None]
) -> None:
    assert as_counted(counts, *launches) == pytest.approx(shares)


def test_a_report_with_gaps_takes_no_neighbours_from_another() -> None:
    two = moving(ONE, TWO, ONE, TWO).with_columns(pl.Series("source", [0, 0, 1, 1]))
    assert fusable_share(two, load_catalogue().neighbours, {0: None}).to_list() == [None, None, 0.5, 0.5]
