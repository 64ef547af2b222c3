"""What NVIDIA prints of a card against its profile: SMs times clock times rate, pins times data rate."""

from __future__ import annotations

import pytest

from ncuroof.roofline.gpu_names import profile_by_name

# TFLOP/s of FP32; a tensor peak, dense, where one is printed; Gbit/s per pin and bits of the bus.
PUBLISHED = [
    ("a2", 4.5, "tensor_int8", 36, 12.5, 128),
    ("a800-pcie-80gb", 19.5, "tensor_bf16", 312, 3.024, 5120),
    ("a800-sxm-80gb", 19.5, "tensor_bf16", 312, 3.186, 5120),
    ("h800-pcie", 51, "tensor_bf16", 756.5, 3.186, 5120),
    ("h800-sxm", 67, "tensor_bf16", 989, 5.238, 5120),
    ("quadro-rtx-6000", 16.3, "tensor_fp16", 130.5, 14, 384),
    ("quadro-rtx-8000", 16.3, "tensor_fp16", 130.5, 14, 384),
    ("titan-rtx", 16.3, "tensor_fp16", 130.5, 14, 384),
    ("titan-v", 14.9, None, None, 1.7, 3072),
    ("rtx-2060", 6.5, None, None, 14, 192),
    ("rtx-2070", 7.5, "tensor_fp16_fp16_accumulate", 59.7, 14, 256),
    ("rtx-2080", 10.1, "tensor_fp16_fp16_accumulate", 80.5, 14, 256),
    ("rtx-2080-super", 11.2, None, None, 15.5, 256),
    ("rtx-3050", 9.1, None, None, 14, 128),
    ("rtx-3060", 12.7, None, None, 15, 192),
    ("rtx-3070", 20.3, "tensor_fp16_fp16_accumulate", 81.3, 14, 256),
    ("rtx-3070-laptop", 16.6, None, None, 14, 256),
    ("rtx-3080-laptop", 21.0, None, None, 14, 256),
    ("rtx-3080-ti", 34.1, None, None, 19, 384),
    ("rtx-3090-ti", 40.0, None, None, 21, 384),
    # AI TOPS of Ada are INT8 with sparsity, of Blackwell FP4 with sparsity: halved.
    ("rtx-4070", 29.1, "tensor_int8", 466 / 2, 21, 192),
    ("rtx-4070-super", 35.5, "tensor_int8", 568 / 2, 21, 192),
    ("rtx-4070-ti", 40.1, "tensor_int8", 641 / 2, 21, 192),
    ("rtx-4070-ti-super", 44.1, "tensor_int8", 706 / 2, 21, 256),
    ("rtx-4080", 48.7, "tensor_int8", 780 / 2, 22.4, 256),
    ("rtx-4090-d", 73.5, "tensor_int8", 1177 / 2, 21, 384),
    ("rtx-4070-laptop", 20.0, "tensor_int8", 321 / 2, 16, 128),
    ("rtx-4080-laptop", 33.9, "tensor_int8", 542 / 2, 18, 192),
    ("rtx-4090-laptop", 39.7, None, None, 18, 256),
    ("rtx-5060", 19.2, "tensor_fp4", 614 / 2, 28, 128),
    ("rtx-5070", 30.9, "tensor_fp4", 988 / 2, 28, 192),
    ("rtx-5070-ti", 43.9, "tensor_fp4", 1406 / 2, 28, 256),
    ("rtx-5080", 56.3, "tensor_fp4", 1801 / 2, 30, 256),
    ("rtx-a2000", 8.0, "tensor_fp16", 63.9 / 2, 12, 192),
    ("rtx-a4000", 19.2, "tensor_fp16", 153.4 / 2, 14, 256),
    ("rtx-a4500", 23.7, "tensor_fp16", 189.2 / 2, 16, 320),
    ("rtx-a5000", 27.8, "tensor_fp16", 222.2 / 2, 16, 384),
    ("rtx-a5500", 34.1, None, None, 16, 384),
    ("rtx-2000-ada", 12.0, "tensor_fp8", 191.9 / 2, 14, 128),
    ("rtx-4000-ada", 26.7, "tensor_fp8", 427.6 / 2, 18, 160),
    ("rtx-4500-ada", 39.6, None, None, 18, 192),
    ("rtx-5000-ada", 65.3, "tensor_fp8", 1044.4 / 2, 18, 256),
    ("rtx-pro-6000-max-q", 110, "tensor_fp4", 3511 / 2, 28, 512),
    ("rtx-pro-6000-server", 117, "tensor_tf32", 234, 24.962, 512),  # NVIDIA rounds its FP32 to 120
]


@pytest.mark.parametrize(("name", "fp32_tflops", "precision", "tensor_tflops", "gbit_per_s", "bus_bits"), PUBLISHED)
def test_clock_sms_and_rates_give_what_is_published(
    name: str,
    fp32_tflops: float,
    precision: str | None,
    tensor_tflops: float | None,
    gbit_per_s: float,
    bus_bits: int,
) -> None:
    profile = profile_by_name(name)
    clock_hz, tensor_clock_hz = profile.sm_boost_clock_hz, profile.tensor_boost_clock_hz or profile.sm_boost_clock_hz
    assert profile.peak_at_clock_flop_per_s("fp32", clock_hz) == pytest.approx(fp32_tflops * 1e12, rel=0.01)
    assert profile.peak_flop_per_s["fp32"] == pytest.approx(fp32_tflops * 1e12, rel=0.01)
    if precision is not None and tensor_tflops is not None:
        computed = profile.peak_at_clock_flop_per_s(precision, tensor_clock_hz)
        assert computed == pytest.approx(tensor_tflops * 1e12, rel=0.01)
        assert profile.peak_flop_per_s[precision] == pytest.approx(tensor_tflops * 1e12, rel=0.01)
    assert profile.memory_bus_width_bits == bus_bits
    assert profile.bandwidth_bytes_per_s["dram"] == pytest.approx(gbit_per_s * 1e9 * bus_bits / 8, rel=0.01)


def test_an_h20_has_a_quarter_of_the_tensor_rates_of_an_h100_and_all_of_its_fp32() -> None:
    h20, h100 = profile_by_name("h20"), profile_by_name("h100-sxm")
    assert h20.peak_flop_per_s["tensor_bf16"] == 148e12
    assert h20.peak_flop_per_s["fp32"] == pytest.approx(39.54e12, rel=1e-3)  # 256 x 78 x 1.98e9
    for precision in ("tensor_tf32", "tensor_bf16", "tensor_fp8", "tensor_int8"):
        assert 4 * h20.peak_flop_per_clock_per_sm[precision] == h100.peak_flop_per_clock_per_sm[precision]
    assert "fp64" not in h20.peak_flop_per_s  # cut, at a rate that no document gives


@pytest.mark.parametrize(
    ("professional", "geforce"),
    [("rtx-a5000", "rtx-3080-ti"), ("rtx-5000-ada", "rtx-4090-d"), ("quadro-rtx-6000", "rtx-2080")],
)
def test_only_geforce_cards_halve_accumulation_in_fp32(professional: str, geforce: str) -> None:
    full, half = profile_by_name(professional), profile_by_name(geforce)
    assert full.peak_flop_per_clock_per_sm["tensor_fp16"] == 2 * half.peak_flop_per_clock_per_sm["tensor_fp16"]
    assert "tensor_fp16_fp16_accumulate" not in full.peak_flop_per_s
    assert (
        half.peak_flop_per_clock_per_sm["tensor_fp16_fp16_accumulate"] == full.peak_flop_per_clock_per_sm["tensor_fp16"]
    )
