"""Measuring what a machine reaches, on the CPU: amounts, names, and what cannot be measured."""

from __future__ import annotations

import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

from ncuroof.collect import reachable_roofs  # noqa: E402
from ncuroof.collect.reachable_roofs import Case, measure  # noqa: E402


class Event:
    """An event of CUDA by the clock of the CPU, which has done its work when a call returns."""

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: Event) -> float:
        """Return the time until another event, in ms."""
        return 1e3 * (other.at - self.at)


class OnTheCpu:
    """PyTorch with a GPU that is the CPU: 163 840 free bytes, no compiler, no clock that can be read."""

    cuda = SimpleNamespace(
        get_device_properties=lambda device: SimpleNamespace(
            name="CPU", major=9, minor=0, multi_processor_count=2, L2_cache_size=1 << 20
        ),
        device=nullcontext,
        Event=Event,
        mem_get_info=lambda device: (163_840, 1 << 30),
    )

    def __getattr__(self, name: str) -> object:
        return getattr(torch, name)


def measured(**options: bool):
    return measure(OnTheCpu(), device="cpu", seconds=0.0, matrix=64, **options)


def test_each_way_is_measured_or_says_why_not() -> None:
    found = measured()
    roofs = [(roof.name, roof.how.split(" of ")[0]) for roof in found.roofs]
    for expected in (
        ("dram", "copy"),
        ("dram", "sum"),
        ("dram", "fill"),
        ("fp32", "product"),
        ("tensor_bf16", "product"),
    ):
        assert expected in roofs
    assert (found.gpu, found.compute_capability, found.sm_count) == ("CPU", "9.0", 2)
    assert [name for name, _ in found.not_measured if "read" in name] == ["l2 read", "shared read"]
    assert all(roof.per_s > 0 and roof.n_repeats >= 5 for roof in found.roofs)


def test_products_in_fp64_are_named_after_the_unit_that_runs_them() -> None:
    for has_them, name in ((True, "tensor_fp64"), (False, "fp64")):
        found = measured(has_fp64_tensor_cores=has_them)
        assert [roof.name for roof in found.roofs if roof.name.endswith("fp64")] == [name]


def test_rates_are_amounts_over_times(monkeypatch) -> None:
    # every call takes 20 ms by this clock
    monkeypatch.setattr(reachable_roofs, "_elapsed_s", lambda torch, call, n_calls, meanwhile=None: 0.02 * n_calls)
    found = {(roof.name, roof.how.split(" ")[0]): roof for roof in measured().roofs}
    # a tenth of the free bytes, in numbers of 4 bytes: 16 384 bytes a buffer
    assert found["dram", "copy"].per_s == pytest.approx(2 * 16384 / 0.02)
    assert found["dram", "triad"].per_s == pytest.approx(3 * 16384 / 0.02)
    assert found["fp32", "product"].per_s == pytest.approx(2 * 64**3 / 0.02)
    assert found["fp32", "product"].spread_frac == 0


def test_a_roof_that_cannot_be_measured_does_not_stop_the_rest(monkeypatch) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED\n when calling …")

    monkeypatch.setattr(torch, "_int_mm", fail)
    found = measured()
    assert ("tensor_int8", "CUBLAS_STATUS_NOT_SUPPORTED when calling …") in found.not_measured
    assert "tensor_bf16" in {roof.name for roof in found.roofs}


def test_the_clock_is_the_median_of_readings_under_load(monkeypatch) -> None:
    readings = iter([1.2e9, None, 1.5e9, 1.98e9, 1.4e9])
    monkeypatch.setattr(reachable_roofs, "_sm_clock_hz", lambda torch, device: next(readings))
    n_silent = []

    def elapse(torch, call, n_calls, meanwhile=None) -> float:
        if meanwhile is None:
            n_silent.append(n_calls)
        else:
            meanwhile()
        return 0.02

    monkeypatch.setattr(reachable_roofs, "_elapsed_s", elapse)
    roof = reachable_roofs._reached_roof(torch, "cuda", Case("compute", "fp32", 1.0, lambda: None, "product"), 0.0)
    # 1.2, 1.4, 1.5 and 1.98 GHz in 5 repeats, after one that sets the number of calls and two that let the clock settle
    assert roof.sm_clock_hz == pytest.approx(1.45e9)
    assert (roof.n_repeats, len(n_silent)) == (5, 3)


def test_a_machine_without_a_compiler_or_its_headers_still_has_the_other_roofs(monkeypatch) -> None:
    def fail(*_args: object) -> None:
        raise OSError("CUDA_HOME environment variable is not set")

    monkeypatch.setattr(reachable_roofs, "l2_read", fail)
    found = measured()
    assert ("l2 read", "CUDA_HOME environment variable is not set") in found.not_measured


def test_int8_products_take_the_second_matrix_by_columns(monkeypatch) -> None:
    strides = []
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: strides.append((a.stride(), b.stride())))
    reachable_roofs._product(torch, "cpu", "tensor_int8", 64).call()
    assert strides == [((64, 1), (1, 64))]
