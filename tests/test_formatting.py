from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncuroof import formatting


@pytest.mark.parametrize(
    ("value_ns", "written"),
    [
        (0.0, "0 s"),
        (0.5, "0.500 ns"),
        (850.0, "850 ns"),
        (12_340.0, "12.3 µs"),
        (999_950.0, "1.00 ms"),  # rounds to 1 000 µs, which is 1 ms
        (49.96e9, "50.0 s"),
        (12_345e9, "12345 s"),  # no kiloseconds, and a whole number stays whole
        (None, "—"),
        (float("nan"), "—"),
        (float("inf"), "—"),
    ],
)
def test_durations_are_written_with_three_digits_and_a_prefix(value_ns, written):
    assert formatting.duration(value_ns) == written


def test_rates_amounts_and_intensities_have_their_units():
    assert formatting.flop_rate(1.894342536e12) == "1.89 TFLOP/s"
    assert formatting.byte_rate(3.35e12) == "3.35 TB/s"
    assert formatting.byte_count(268_435_456.0) == "268 MB"
    assert formatting.flop_count(270_057_472.0) == "270 MFLOP"
    assert formatting.intensity(1.1210875) == "1.12 FLOP/B"
    assert formatting.intensity(0.0391) == "0.0391 FLOP/B"
    assert formatting.byte_count(32.0) == "32 B"
    assert formatting.byte_count(1024.0) == "1.02 kB"


@pytest.mark.parametrize(
    ("value_frac", "written"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.834, "83.4 %"),
        (0.0004, "<0.1 %"),
        (0.9994, "99.9 %"),
        (0.9997, ">99.9 %"),
        (-0.25, "-25.0 %"),
        (1.0003, "100.0 %"),
        (None, "—"),
    ],
)
def test_a_share_that_is_not_zero_does_not_look_like_zero(value_frac, written):
    assert formatting.share(value_frac) == written


@pytest.mark.parametrize(
    ("value_frac", "written"), [(0.834, "up to 83.4 %"), (0.0004, "less than 0.1 %"), (0.0, "up to 0 %")]
)
def test_a_share_as_a_bound(value_frac, written):
    assert formatting.at_most(value_frac) == written


def test_quantities_are_written_in_their_unit():
    assert formatting.quantity(1056.0, "count") == "1056"
    assert formatting.quantity(8_388_608.0, "count") == "8.39 M"
    assert formatting.quantity(1.509e9, "hz") == "1.51 GHz"
    assert formatting.quantity(4.0, "byte/sector") == "4 B/sector"
    assert formatting.quantity(0.6, "share") == "60.0 %"
    assert formatting.quantity(None, "ratio") == "—"
    assert formatting.quantity(2.0, "furlong") == "2 furlong"


def test_thresholds_claim_no_precision():
    assert formatting.threshold(5000.0, "ns") == "5 µs"
    assert formatting.threshold(0.6, "share") == "60 %"
    assert formatting.threshold(0.125, "share") == "12.5 %"
    assert formatting.threshold(100.0, "ratio") == "100"


@given(st.floats(min_value=1e-12, max_value=1e21))
def test_a_written_number_is_within_half_of_its_third_digit(value):
    number, prefix = (*formatting.scaled(value, exponents=(-9, 18)).split(), "")[:2]
    factor = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}[
        prefix
    ]
    assert abs(float(number) * factor - value) <= 0.00501 * value


def test_names_become_words():
    assert formatting.label("dram") == "DRAM"
    assert formatting.label("tensor_tf32") == "TF32 tensor"
    assert formatting.label("tensor_tf32_sparse") == "TF32 tensor (sparse)"
    assert formatting.label("tensor_fp8_fp16_accumulate") == "FP8 tensor (FP16 accumulation)"
    assert formatting.label("tensor") == "tensor"
    assert formatting.label("n_active_warps") == "active warps"
    assert formatting.label("l1_hit_frac") == "L1 hit share"
    assert formatting.label(None) == "—"


def test_control_characters_of_a_report_become_visible():
    assert formatting.printable("a\u202eb") == "a\\u202eb"
    assert formatting.printable("\x1b[31mred\x07") == "\\u001b[31mred\\u0007"
    assert formatting.printable("two\r\nlines\tand a tab") == "two  lines and a tab"
    assert formatting.printable("\ud800").encode() == b"\\ud800"


def test_no_text_of_a_report_is_a_command_to_what_builds_software():
    assert formatting.printable("a ##[group]b ##vso[task.x]c ###[d") == (
        "a #\\u0023[group]b #\\u0023vso[task.x]c ##\\u0023[d"
    )
    assert formatting.printable("## heading [a]") == "## heading [a]"
    assert formatting.inert("at::f\n  ::error file=x::y\n\n::g") == "at::f\n  \\u003a:error file=x::y\n\n\\u003a:g"


def test_long_text_that_is_not_ascii_is_searched_fast():
    """A search that compared each character with all 512 tags took 50 s for the names of 1 700 kernels in 500 ranges."""
    begin = time.process_time()
    assert formatting.printable("größe · " * 500_000).count("·") == 500_000
    assert time.process_time() - begin < 2


def test_ordinary_text_stays_as_it_is():
    for ordinary in ("gemm<float, 4>", "größe", "核", "👩\u200d🚀", ""):
        assert formatting.printable(ordinary) == ordinary


def test_long_text_is_cut_with_an_ellipsis():
    assert formatting.shortened("abcdef", 6) == "abcdef"
    assert formatting.shortened("abcdefg", 6) == "abcde…"


def test_the_first_names_stand_for_many():
    assert formatting.first_of(["a", "b", "c", "d", "e"], 3) == "a, b, c and 2 more"
    assert formatting.first_of(["a", "b", "c"], 3) == "a, b, c"
    assert formatting.first_of([], 1) == ""


def test_counts_agree_with_their_noun():
    assert [formatting.counted(n, "kernel") for n in (0, 1, 2)] == ["0 kernels", "1 kernel", "2 kernels"]


def test_a_size_is_written_with_its_extents():
    assert formatting.extent([1056, 1, 1]) == "1056 × 1 × 1"
    assert formatting.extent(None) == "—"


def test_labels_are_words_of_the_field():
    for name, label in (
        ("tensor_bf16_sparse", "BF16 tensor (sparse)"),
        ("tensor_fp8_slower_path", "FP8 tensor (slower path)"),
        ("tensor_split_frac", "tensor split share"),
        ("l2_all", "L2 all"),
    ):
        assert formatting.label(name) == label


def test_comparisons_of_the_rules_are_written_as_signs():
    written = {op: formatting.operator(op) for op in (">=", "<=", ">", "known >", "known >=")}
    assert written == {">=": "≥", "<=": "≤", ">": ">", "known >": ">", "known >=": "≥"}


def test_a_kernel_is_called_what_it_is_called():
    assert formatting.kernel_name({"name": "gemm<float>(int)", "short_name": "gemm"}) == "gemm"
    assert formatting.kernel_name({"name": "gemm<float>(int)", "short_name": None}, 5) == "gemm…"
    assert formatting.kernel_name({"name": "", "short_name": ""}) == "(no name)"


def test_a_gpu_without_a_name_is_told_by_what_is_known_of_it() -> None:
    assert formatting.gpu_name({"name": "NVIDIA H200", "compute_capability": "9.0"}) == "NVIDIA H200"
    assert formatting.gpu_name({"name": None, "compute_capability": "9.0"}) == "GPU of compute capability 9.0"
    assert formatting.gpu_name({"name": None, "compute_capability": None}) == "unknown GPU"


def test_numbers_of_one_kind_are_written_alike():
    # 9999 is short; beside "147 k" nothing stands as "16512".
    assert [formatting.quantity(value, "count") for value in (9999.0, 16512.0, 147_456.0)] == [
        "9999",
        "16.5 k",
        "147 k",
    ]
    assert [formatting.quantity(-0.0, unit) for unit in ("share", "count")] == ["0 %", "0"]
    assert formatting.kibibytes(132_096.0) == "129 KiB"
    assert formatting.label("tensor_speedup") == "tensor speedup"


def test_work_of_integers_is_in_operations_as_nvidia_writes_it():
    assert formatting.flop_rate(4.66e14, "tensor_int8_sparse") == "466 TOP/s"
    assert formatting.flop_rate(4.66e14, "tensor_bf16") == formatting.flop_rate(4.66e14) == "466 TFLOP/s"
    assert formatting.flop_count(1e6, "tensor_int4") == "1.00 MOP"
    assert formatting.work_units(["fp32", "tensor_int8", "tensor_fp8"]) == "FLOP or OP"
    assert formatting.work_units(["tensor_int1"]) == "OP"
    assert formatting.work_units([]) == "FLOP"


@pytest.mark.parametrize(("frac", "written"), [(0.793, "+79.3 %"), (-0.442, "−44.2 %"), (0.0, "+0.0 %")])
def test_a_change_has_its_sign(frac, written):
    assert formatting.signed_percent(frac) == written
