"""`ncuroof gpus` shows the data sheets, and says so when it does not know one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncuroof.resources import folder
from tests.cli.running import run_main

SHEETS = sorted(path.stem for path in (folder("profiles") / "gpus").glob("*.toml"))


def test_every_data_sheet_has_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("gpus") == 0
    out, err = capfd.readouterr()
    shown = [line.split()[0] for line in out.splitlines()[1:]]
    assert sorted(shown) == SHEETS
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", SHEETS)
def test_every_data_sheet_can_be_shown_with_sources(capfd: pytest.CaptureFixture[str], name: str) -> None:
    assert run_main("gpus", name) == 0
    out, err = capfd.readouterr()
    assert f"({name}), " in out.splitlines()[0]
    assert "compute capability" in out
    numbers = [line for line in out.splitlines() if "B/s" in line or "OP/s" in line]
    sources = [line for line in out.splitlines() if line.startswith("  ")]
    assert len(numbers) >= len(sources) > 1
    assert err == ""


@pytest.mark.parametrize(("columns", "ridges"), [("100", 2), ("60", 1), ("46", 0), ("20", 0)])
def test_a_narrow_terminal_hides_ridges_and_keeps_gpu_names(
    columns: str, ridges: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run_main("gpus") == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].count("ridge") == ridges
    if columns != "20":
        (line,) = [line.split() for line in lines if line.startswith("a100-sxm-80gb ")]
        assert (
            line == ["a100-sxm-80gb", "8.0", "108", "2.04", "TB/s", "9.56", "FLOP/B", "153", "FLOP/B"][: 5 + 2 * ridges]
        )


def test_integer_peaks_are_not_called_flops_and_names_are_words(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("gpus", "rtx-4090") == 0
    out = capfd.readouterr().out
    assert "INT8 tensor: 661 TOP/s, ridge 655 OP/B\n" in out
    assert "BF16 tensor: 165 TFLOP/s, ridge 164 FLOP/B\n" in out
    assert "FP16 tensor (FP16 accumulation): 330 TFLOP/s" in out
    assert "_" not in "".join(line for line in out.splitlines() if " tensor" in line and "note" not in line)


@pytest.mark.parametrize("name", ["rtx-9999", "", "../gpus/h200-sxm", "\x1b[31m"])
def test_an_unknown_gpu_is_a_named_error(capfd: pytest.CaptureFixture[str], name: str) -> None:
    assert run_main("gpus", name) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("ncuroof: ")
    assert "hint: " in err
    assert "\x1b" not in err


def test_plain_text_is_plain(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    for arguments in (["gpus", "--no-color"], ["gpus", SHEETS[0], "--no-color"]):
        assert run_main(*arguments) == 0
        assert "\x1b" not in capfd.readouterr().out


def test_two_names_are_wrong_usage(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("gpus", *SHEETS[:2]) == 2
    assert "Usage: ncuroof gpus" in capfd.readouterr().err


def test_the_data_sheets_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_main("gpus", SHEETS[0]) == 0
    assert capfd.readouterr().out
