"""`ncuroof calibrate` where it cannot run, and what `ncuroof report --calibration` does with its file."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ncuroof.sidecars.calibration import calibration_json
from tests.cli.running import run_main
from tests.roofline.test_calibration import H200
from tests.support import demo


def test_without_pytorch_it_says_what_to_install(monkeypatch, capfd) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert run_main("calibrate") == 1
    assert "pip install 'ncuroof[torch]'" in capfd.readouterr().err


@pytest.mark.torch
def test_without_a_gpu_it_says_so(capfd, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert run_main("calibrate", "-o", tmp_path / "c.json") == 1
    assert "expected GPU 0, found no GPU that PyTorch can use" in capfd.readouterr().err
    assert not (tmp_path / "c.json").exists()


def test_quiet_leaves_the_result_on_standard_output(monkeypatch, capfd, tmp_path: Path) -> None:
    gpu = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        set_device=lambda _: None,
        get_device_capability=lambda _: (9, 0),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=gpu))
    measured = replace(H200, not_measured=(("fp4", "no such product here"),))
    monkeypatch.setattr("ncuroof.collect.reachable_roofs.measure", lambda *_, **__: measured)
    assert run_main("calibrate", "-o", tmp_path / "c.json") == 0
    printed, said = capfd.readouterr()
    assert "NVIDIA H200" in printed
    assert said == "not measured: fp4: no such product here\n"
    assert run_main("calibrate", "-o", tmp_path / "c.json", "--quiet") == 0
    assert capfd.readouterr() == (printed, "")


@pytest.mark.long
def test_a_report_is_drawn_with_reached_roofs(tmp_path: Path, capfd) -> None:
    calibration, page = tmp_path / "h200.json", tmp_path / "run.json"
    calibration.write_bytes(calibration_json(H200))
    assert run_main("report", demo.REPORT, "--calibration", calibration, "-o", page) == 0
    assert '"source": "measured"' in page.read_text(encoding="utf-8")
    assert capfd.readouterr().err == ""
    assert run_main("report", demo.REPORT, "--calibration", tmp_path / "none.json", "-o", page) == 1
    assert "none.json" in capfd.readouterr().err


@pytest.mark.long
def test_the_summary_says_how_near_launches_come(tmp_path: Path, capfd) -> None:
    calibration = tmp_path / "h200.json"
    calibration.write_bytes(calibration_json(H200))
    for form in ("term", "md"):
        assert run_main("report", demo.REPORT, "--calibration", calibration, "-o", "-", "--format", form, "-v") == 0
        assert "2 measured roofs; launches reach up to 109.4 %" in capfd.readouterr().out


@pytest.mark.long
def test_a_second_calibration_of_a_gpu_is_remarked(tmp_path: Path, capfd) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    for path in (first, second):
        path.write_bytes(calibration_json(H200))
    assert run_main("report", demo.REPORT, "--calibration", first, "--calibration", second, "-o", "-") == 0
    said = capfd.readouterr().err
    assert said.startswith(
        "warning: second.json was measured on NVIDIA H200 (132 SMs), for which an earlier file has roofs"
    )


@pytest.mark.long
def test_a_calibration_of_a_different_gpu_is_remarked(tmp_path: Path, capfd) -> None:
    calibration = tmp_path / "c.json"
    calibration.write_bytes(calibration_json(replace(H200, sm_count=114)))
    assert run_main("report", demo.REPORT, "--calibration", calibration, "-o", "-") == 0
    printed, said = capfd.readouterr()
    assert "measured roof" not in printed
    assert (
        said == "warning: c.json was measured on NVIDIA H200 (114 SMs), which is in no report: its roofs are not used\n"
    )
    assert run_main("report", demo.REPORT, "--calibration", calibration, "-o", "-", "--quiet") == 0
    assert capfd.readouterr().err == ""
