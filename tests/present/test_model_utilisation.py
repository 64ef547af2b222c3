"""The model FLOP utilisation in words."""

from __future__ import annotations

from ncuroof.present.sentences.model_utilisation import mfu_line, mfu_value, utilisation_sentence


def test_the_rest_of_the_peak_is_told_by_size() -> None:
    known = {
        "precision": "tensor_bf16", "peak_flop_per_s": 989e12, "extrapolated_frac": 0.01, "mfu_frac": 0.4,
        "wall_mfu_frac": None,
        "extra_work_frac": 0.0, "tail_frac": 0.05,
        "low_efficiency_frac": 0.2, "unknown_products_frac": 0.0, "memory_bound_frac": 0.3, "short_frac": 0.05, "other_frac": 0.0,
    }  # fmt: skip
    assert utilisation_sentence(known, {}) == (
        "MFU: the model's matrix products reach 40.0 % of the BF16 tensor peak of 989 TFLOP/s over GPU time; the rest goes "
        "30.0 % to memory-bound kernels, 20.0 % to matrix products running below the peak, 5.0 % to partial last waves (tail "
        "effect), 5.0 % to kernels too short for their launch."
    )
    assert utilisation_sentence(None, {}) == ""
    extrapolated = utilisation_sentence(known | {"extrapolated_frac": 0.33}, {"weighting": {"covered_frac": 0.9}})
    assert extrapolated.startswith(
        "MFU: the model's matrix products reach about 40.0 % of the BF16 tensor peak of 989 TFLOP/s over profiled GPU time; "
    )
    assert (
        ". 33.0 % of their work is extrapolated from time: a profiled launch represents launches of other sizes"
        in extrapolated
    )


def test_mfu_over_wall_time_lacks_what_was_not_profiled() -> None:
    known = {
        "precision": "tensor_bf16", "peak_flop_per_s": 989e12, "extrapolated_frac": 0.0, "mfu_frac": 0.4, "wall_mfu_frac": 0.3,
        "extra_work_frac": 0.0, "tail_frac": 0.0, "low_efficiency_frac": 0.6, "unknown_products_frac": 0.0,
        "memory_bound_frac": 0.0, "short_frac": 0.0, "other_frac": 0.0,
    }  # fmt: skip
    whole, part = (utilisation_sentence(known, {"weighting": {"covered_frac": frac}}) for frac in (1.0, 0.9))
    assert "989 TFLOP/s over GPU time (30.0 % over wall-clock time); the rest goes 60.0 %" in whole
    assert "989 TFLOP/s over profiled GPU time (at least 30.0 % over wall-clock time); the rest" in part
    assert mfu_line(known, {"weighting": {"covered_frac": 0.9}}) == (
        "MFU 40.0 % of the BF16 tensor peak of 989 TFLOP/s over profiled GPU time (at least 30.0 % over wall-clock time)"
    )
    assert mfu_value(known, {"weighting": {"covered_frac": 1.0}}) == "40.0 % (30.0 % over wall-clock time)"
    assert mfu_value(known | {"wall_mfu_frac": None, "extrapolated_frac": 0.1}, {}) == "about 40.0 %"
