"""The sort for an embedding's gradient, by hand-made sequences of names."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.metrics.catalogue import load_catalogue
from ncuroof.metrics.neighbours import embedding_sort

IOTA = "void <unnamed>::elementwise_kernel_with_index<int, at::native::arange_cuda_out(const c10::Scalar &)>(T1)"
SORT = "void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<long, long>(T3 *)"
OLD_SORT = "void cub::DeviceRadixSortSingleTileKernel<long, long>(T3 *)"
UNIQUE = "void at_cuda_detail::cub::detail::unique_by_key::DeviceUniqueByKeySweepKernel<long *>(T1)"
SCAN = "void at_cuda_detail::cub::detail::scan::DeviceScanKernel<long>(T1)"
FILL = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, std::array<char *, 1>>(int)"
)
PARTIALS, OFFSETS, NUMBER = (
    f"void at::native::<unnamed>::{name}<long>(T1 *)"
    for name in ("krn_partials_per_segment", "krn_partial_segment_offset", "compute_num_of_partial_segments")
)
ROWS, SUMS = (
    f"void at::native::<unnamed>::{name}<float, long>(T1 *)" for name in ("compute_grad_weight", "sum_and_scatter")
)
PRODUCT = "nvjet_sm90_tst_64x512_64x4_2x1_v_bz_TNT"
MINE = "krn_partials_per_segment(long *)"


def parts(names: list[str | None], streams: list[int] | None = None) -> list[float | None]:
    kernels = pl.DataFrame(
        {"name": names, "source": 0, "process_id": 1, "context": 1, "stream": streams or [7] * len(names)},
        schema_overrides={"name": pl.String},
    )
    return embedding_sort(kernels, load_catalogue().embedding_gradient).to_list()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            [PRODUCT, IOTA, SORT, SORT, FILL, UNIQUE, PARTIALS, SCAN, NUMBER, OFFSETS, ROWS, SUMS, PRODUCT],
            [0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0],
        ),
        ([OLD_SORT, PARTIALS], [1, 1]),
        ([SORT, SORT], [0, 0]),  # torch.sort
        ([SORT, PRODUCT, PARTIALS], [0, 0, 1]),
        ([SORT, None, PARTIALS], [0, 0, 1]),  # a launch without a name may be anything
        ([PARTIALS, SCAN, SORT], [1, 0, 0]),  # of what comes next
        ([SORT, MINE], [0, 0]),
    ],
)
def test_the_sort_is_what_runs_before_equal_indices_are_counted(names: list[str | None], expected: list[float]) -> None:
    assert parts(names) == expected


def test_the_sort_runs_in_the_same_stream() -> None:
    assert parts([SORT, PRODUCT, PARTIALS], streams=[7, 8, 7]) == [1, 0, 1]
    assert parts([SORT, PARTIALS], streams=[8, 7]) == [0, 1]
