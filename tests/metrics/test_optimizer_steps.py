"""Steps of an optimizer in pointwise kernels, by hand-made sequences of names."""

from __future__ import annotations

import polars as pl
import pytest

from ncuroof.metrics.catalogue import load_catalogue
from ncuroof.metrics.pointwise_chains import optimizer_parts

KERNEL = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::{}, std::array<char *, (unsigned long){}>>(int)"
)
MUL, SQRT = KERNEL.format("AUnaryFunctor<float>", 2), KERNEL.format("sqrt_kernel_cuda()", 2)
LERP, ADDCMUL = KERNEL.format("lerp_scalar_kernel()", 3), KERNEL.format("addcmul_cuda_kernel()", 4)
ADDCDIV = KERNEL.format("addcdiv_cuda_kernel()", 4)
STRIDED = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::lerp_scalar_kernel()>>"
)
FILL = KERNEL.format("FillFunctor<float>", 1)
NORM = "void at::native::vectorized_layer_norm_kernel<float>(int)"
STEP = [MUL, LERP, MUL, ADDCMUL, SQRT, MUL, MUL, ADDCDIV]
"""AdamW: 2 + 3 + 2 + 4 + 2 + 2 + 2 + 4 = 21 tensors, of which a fused kernel reads four and writes three."""


def steps(
    names: list[str], grids: list[int] | None = None, nvtx: list[str] | None = None, streams: list[int] | None = None
) -> tuple[list[float | None], list[float]]:
    """Return what is known of launches with these grids, 8 where nothing is said of them: fused shares, and parts of a step."""
    kernels = pl.DataFrame(
        {"name": names, "source": 0, "process_id": 1, "context": 1, "stream": streams or 7}
        | {"grid": [[grid, 1, 1] for grid in grids or [8] * len(names)], "block": [[128, 1, 1]] * len(names)}
        | {"nvtx": [nvtx or []] * len(names)},
        schema_overrides={"nvtx": pl.List(pl.String)},
    )
    catalogue = load_catalogue()
    shares, parts = optimizer_parts(kernels, catalogue.neighbours, catalogue.optimizer_step)
    return shares.to_list(), parts.to_list()


THIRD = pytest.approx(7 / 21)
FOREACH = (
    "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::TensorListMetadata<(int)1>, "
    "at::native::<unnamed>::{}<float, (int)1, (int)1, (int)0>, std::multiplies<float>, float>(T1, T2, T3...)"
)


@pytest.mark.parametrize(
    ("name", "nvtx", "share"),
    [
        (FOREACH.format("BinaryOpScalarFunctor"), ["training", "Optimizer.step#AdamW.step"], pytest.approx(7 / 20)),
        (FOREACH.format("PointwiseOpScalarFunctor"), ["Optimizer.step#Adam.step"], pytest.approx(7 / 20)),
        (FOREACH.format("FusedAdamMathFunctor"), ["Optimizer.step#AdamW.step"], None),
        (FOREACH.format("BinaryOpScalarFunctor"), ["Optimizer.step#Adamax.step"], None),  # has other passes
        (FOREACH.format("BinaryOpScalarFunctor"), ["Optimizer.step#SGD.step"], None),
        (FOREACH.format("BinaryOpScalarFunctor"), ["clip"], None),  # gradient clipping
        (FOREACH.format("BinaryOpScalarFunctor"), [], None),
    ],
)
def test_foreach_passes_of_adam_are_known_by_their_range(name: str, nvtx: list[str], share: float | None) -> None:
    assert steps([name], nvtx=nvtx)[0] == [share]


def foreach(functor: str, operation: str) -> str:
    """Return the name of a foreach pass with a functor of ForeachFunctors.cuh and an operation, as a report has it."""
    return FOREACH.format(functor).replace("std::multiplies<float>", operation)


PASSES = [
    foreach("BinaryOpScalarFunctor", "std::multiplies<float>"),
    foreach("TernaryOpScalarFunctor", "at::native::LerpFunctor<float>"),
    foreach("BinaryOpScalarFunctor", "std::multiplies<float>"),
    foreach("PointwiseOpScalarFunctor", "std::multiplies<float>"),
    foreach("UnaryOpFunctor", "at::native::Sqrt<float>"),
    foreach("BinaryOpScalarListFunctor", "std::divides<float>"),
    foreach("BinaryOpScalarFunctor", "std::plus<float>"),
    foreach("PointwiseOpScalarListFunctor", "std::divides<float>"),
]
"""AdamW with foreach, as recorded on an H200; there each pass takes two launches."""
CLIP = foreach("BinaryOpScalarTensorFunctor", "std::multiplies<float>")
UNSCALE = foreach("UnaryOpFunctor", "at::native::_amp_foreach_non_finite_check_and_unscale_cuda_()")
OF_20 = pytest.approx(7 / 20)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (PASSES, [OF_20] * 8),
        (PASSES[1:], [OF_20] * 7),  # without weight decay
        ([each for each in PASSES for _ in range(2)], [OF_20] * 16),  # a second launch for the last parameters
        ([*PASSES, *PASSES], [OF_20] * 16),
        ([NORM, CLIP, *PASSES, PASSES[1]], [None, None, *[OF_20] * 8, None]),  # clipped before, averaged after the step
        ([UNSCALE, *PASSES], [None, *[OF_20] * 8]),
        (PASSES[:-1], [None] * 7),  # without addcdiv
        ([PASSES[0], *PASSES[2:]], [None] * 7),  # without lerp
        ([*PASSES[:3], *PASSES[4:]], [None] * 7),  # without addcmul
        ([*PASSES[:4], NORM, *PASSES[4:]], [None] * 9),
    ],
)
def test_foreach_passes_of_adam_are_known_by_their_operations(names: list[str], expected: list[float | None]) -> None:
    assert steps(names)[0] == expected


def test_foreach_passes_of_another_optimizer_are_known_by_its_range() -> None:
    assert steps(PASSES, nvtx=["Optimizer.step#NAdam.step"])[0] == [None] * 8
    assert steps(PASSES, nvtx=["optimizer"])[0] == [OF_20] * 8


def test_foreach_passes_are_of_one_stream() -> None:
    assert steps(PASSES, streams=[7] * 4 + [8] * 4)[0] == [None] * 8


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (STEP, [THIRD] * 8),
        ([*STEP, *STEP], [THIRD] * 16),  # one parameter after another
        ([LERP, ADDCMUL, ADDCDIV], [pytest.approx(7 / 11)] * 3),
        ([NORM, *STEP, NORM], [None, *[THIRD] * 8, None]),
        ([FILL, *STEP], [None, *[THIRD] * 8]),  # a gradient set to zero is no part of the step
        (STEP[:-1], [None] * 7),  # without addcdiv
        ([MUL, MUL, ADDCMUL, SQRT, MUL, MUL, ADDCDIV], [None] * 7),  # without lerp
        ([*STEP[:4], NORM, *STEP[4:]], [None] * 9),
        ([*[MUL] * 5, *STEP], [None] * 13),  # longer than any step
        ([*[MUL] * 4, *STEP], [pytest.approx(7 / 29)] * 12),
        ([STRIDED, *STEP], [None] * 9),  # how many tensors the first one has is unknown
    ],
)
def test_a_step_of_adam_is_known_by_its_kernels(names: list[str], expected: list[float | None]) -> None:
    shares, parts = steps(names)
    assert shares == expected
    assert parts == [float(share is not None) for share in expected]


def test_a_step_has_one_grid_and_one_stream() -> None:
    assert steps(STEP, grids=[8] * 4 + [9] * 4)[0] == [None] * 8
    assert steps(STEP, streams=[7] * 4 + [8] * 4)[0] == [None] * 8
    assert steps([*STEP, *STEP], grids=[8] * 8 + [9] * 8)[0] == [THIRD] * 16


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        (["step", "Optimizer.step#SGD.step"], 1),
        (["optimizer"], 1),
        (["Optimiser step"], 1),
        (["Optimizer.zero_grad#SGD.zero_grad"], 0),
        (["optimizer setup"], 0),
        ([], 0),
    ],
)
def test_a_step_is_known_by_its_range_as_well(ranges: list[str], expected: float) -> None:
    assert steps([MUL, NORM, FILL], nvtx=ranges) == ([None] * 3, [expected, 0, 0])
