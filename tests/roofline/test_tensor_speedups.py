"""How much faster than FP32 tensor cores are: by the data sheets, of the least narrow type that is faster."""

from __future__ import annotations

import pytest

from ncuroof.metrics import measure
from ncuroof.metrics.catalogue import DEVICE_NAME
from ncuroof.roofline import roofline
from ncuroof.roofline.gpu_profiles import load_profiles
from tests.support.raw import raw_report


@pytest.mark.parametrize(
    ("name", "capability", "tf32", "tensor"),
    [
        ("NVIDIA A100-SXM4-80GB", (8, 0), 8.0, 8.0),  # 156 over 19.5 Tflop/s
        ("NVIDIA GeForce RTX 4090", (8, 9), 1.0, 2.0),  # TF32 has 82.6 as FP32, BF16 165.2
        ("Tesla T4", (7, 5), None, 65 / 8.1),  # FP16 alone
        ("NVIDIA GeForce GTX 1650", (7, 5), None, None),
        ("a GPU without a data sheet", (8, 6), None, None),
    ],
)
def test_speedup_of_tensor_cores_over_fp32(
    name: str, capability: tuple[int, int], tf32: float | None, tensor: float | None
) -> None:
    kernel = {"gpu__time_duration.sum": 1e6, DEVICE_NAME: name}
    numbers = zip(("major", "minor"), capability, strict=True)
    kernel |= {f"device__attribute_compute_capability_{part}": float(number) for part, number in numbers}
    bounds = roofline(measure([raw_report(kernel)])).bounds
    for quantity, speedup in (("device.tf32_speedup", tf32), ("device.tensor_speedup", tensor)):
        assert bounds[quantity].item() == (None if speedup is None else pytest.approx(speedup, rel=1e-3)), quantity


def test_tf32_is_either_not_faster_than_fp32_or_clearly_faster() -> None:
    peaks = [profile.peak_flop_per_s for profile in load_profiles()]
    speedups = [each["tensor_tf32"] / each["fp32"] for each in peaks if {"tensor_tf32", "fp32"} <= each.keys()]
    assert len(speedups) > 50
    assert not [each for each in speedups if 1.01 < each < 1.6]


def test_a_gpu_without_a_tf32_rate_has_no_tf32() -> None:
    # The advice of `idle_tensor_cores_of_halves` says so: the CUDA C++ Programming Guide has TF32 from compute capability 8.0 on.
    without = [
        each
        for each in load_profiles()
        if "tensor_tf32" not in each.peak_flop_per_s and {"tensor_bf16", "tensor_fp16"} & each.peak_flop_per_s.keys()
    ]
    assert len(without) > 10
    assert [each.name for each in without if float(each.compute_capability) >= 8] == []
