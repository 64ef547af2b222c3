"""A calibration for people: shares at boost clock and at the clock that was seen, by hand."""

from __future__ import annotations

from dataclasses import replace

from ncuroof.present.texts.hardware import to_text
from ncuroof.sidecars.calibration import Calibration, ReachedRoof

H100 = Calibration(
    gpu="NVIDIA H100 80GB HBM3",
    compute_capability="9.0",
    sm_count=132,
    torch_version="2.11.0",
    cuda_version="13.0",
    roofs=(
        ReachedRoof("bandwidth", "dram", 3.02e12, 0.002, 43, "copy of 4.29 GB", 1.98e9),
        ReachedRoof("compute", "tensor_bf16", 709e12, 0.132, 44, "product", 1.425e9),
        ReachedRoof("compute", "fp32", 51.7e12, 0.016, 23, "product", None),
    ),
    not_measured=(),
)


def line(text: str, beginning: str) -> str:
    return " ".join(next(each for each in text.splitlines() if each.startswith(beginning)).split())


def test_a_roof_is_compared_at_boost_clock_and_at_the_clock_seen() -> None:
    text = to_text(H100)
    # 709 / 989 = 71.7 %; at 1.425 GHz 4096 * 132 * 1.425e9 = 770.5e12, and 709 / 770.5 = 92.0 %
    assert line(text, "BF16") == ("BF16 tensor 709 TFLOP/s ±6.6 % 71.7 % of 989 TFLOP/s 92.0 % at 1.42 GHz product")
    # DRAM has a clock of its own: 3.02 / 3.35 = 90.1 %
    assert line(text, "DRAM") == "DRAM 3.02 TB/s ±0.1 % 90.1 % of 3.35 TB/s at 1.98 GHz copy of 4.29 GB"
    # no clock was read: 51.7 / 67 = 77.2 %
    assert line(text, "FP32") == "FP32 51.7 TFLOP/s ±0.8 % 77.2 % of 67.0 TFLOP/s product"
    assert "at boost clock" in text


def test_a_gpu_without_a_data_sheet_shows_rates_and_clocks() -> None:
    text = to_text(replace(H100, gpu="NVIDIA X1"))
    assert line(text, "BF16") == "BF16 tensor 709 TFLOP/s ±6.6 % at 1.42 GHz product"
    assert "boost" not in text
