"""Measuring what a machine reaches, on the CPU: amounts, names, and what cannot be measured."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from ncuroof.collect import reachable_roofs  # noqa: E402
from ncuroof.collect.reachable_roofs import Case, measure  # noqa: E402


def test_each_way_is_measured_or_says_why_not() -> None:
    found = measure(torch, device="cpu", seconds=0.0, matrix=64)
    measured = [(roof.name, roof.how.split(" of ")[0]) for roof in found.roofs]
    for expected in (
        ("dram", "copy"),
        ("dram", "sum"),
        ("dram", "fill"),
        ("fp32", "product"),
        ("tensor_bf16", "product"),
    ):
        assert expected in measured
    assert ("l2 read", "expected a GPU, found the CPU") in found.not_measured
    assert all(roof.per_s > 0 and roof.n_repeats >= 5 for roof in found.roofs)


def test_products_in_fp64_are_called_by_what_they_run_on() -> None:
    for has_them, name in ((True, "tensor_fp64"), (False, "fp64")):
        found = measure(torch, device="cpu", seconds=0.0, matrix=64, has_fp64_tensor_cores=has_them)
        assert [roof.name for roof in found.roofs if roof.name.endswith("fp64")] == [name]


def test_rates_are_amounts_over_times(monkeypatch) -> None:
    # every call takes 20 ms by this clock
    monkeypatch.setattr(
        reachable_roofs, "_elapsed_s", lambda torch, device, call, n_calls, meanwhile=None: 0.02 * n_calls
    )
    found = {
        (roof.name, roof.how.split(" ")[0]): roof for roof in measure(torch, device="cpu", seconds=0.0, matrix=64).roofs
    }
    # 4 * 64² / 0.1 "free" bytes, a tenth of it in numbers of 4 bytes: 16 384 bytes a buffer
    assert found["dram", "copy"].per_s == pytest.approx(2 * 16384 / 0.02)
    assert found["dram", "triad"].per_s == pytest.approx(3 * 16384 / 0.02)
    assert found["fp32", "product"].per_s == pytest.approx(2 * 64**3 / 0.02)
    assert found["fp32", "product"].spread_frac == 0


def test_what_a_machine_lacks_does_not_stop_the_rest(monkeypatch) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED\n when calling …")

    monkeypatch.setattr(torch, "_int_mm", fail)
    found = measure(torch, device="cpu", seconds=0.0, matrix=64)
    assert ("tensor_int8", "CUBLAS_STATUS_NOT_SUPPORTED when calling …") in found.not_measured
    assert "tensor_bf16" in {roof.name for roof in found.roofs}


def test_the_clock_is_the_median_of_readings_under_load(monkeypatch) -> None:
    readings = iter([1.2e9, None, 1.5e9, 1.98e9, 1.4e9])
    monkeypatch.setattr(reachable_roofs, "_sm_clock_hz", lambda torch, device: next(readings))
    n_silent = []

    def elapse(torch, device, call, n_calls, meanwhile=None) -> float:
        if meanwhile is None:
            n_silent.append(n_calls)
        else:
            meanwhile()
        return 0.02

    monkeypatch.setattr(reachable_roofs, "_elapsed_s", elapse)
    roof = reachable_roofs._reach(torch, "cuda", Case("compute", "fp32", 1.0, lambda: None, "product"), 0.0)
    # 1.2, 1.4, 1.5 and 1.98 GHz in 5 repeats, after one that sets the number of calls and two that let the clock settle
    assert roof.sm_clock_hz == pytest.approx(1.45e9)
    assert (roof.n_repeats, len(n_silent)) == (5, 3)


def test_a_machine_without_a_compiler_or_its_headers_still_has_the_other_roofs(monkeypatch) -> None:
    def fail(*_args: object) -> None:
        raise OSError("CUDA_HOME environment variable is not set")

    monkeypatch.setattr(reachable_roofs, "l2_read", fail)
    found = measure(torch, device="cpu", seconds=0.0, matrix=64)
    assert ("l2 read", "CUDA_HOME environment variable is not set") in found.not_measured


def test_int8_products_take_the_second_matrix_by_columns(monkeypatch) -> None:
    strides = []
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: strides.append((a.stride(), b.stride())))
    reachable_roofs._product(torch, "cpu", "tensor_int8", 64).call()
    assert strides == [((64, 1), (1, 64))]
