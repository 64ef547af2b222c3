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
    numbers = [line for line in out.splitlines() if "B/s" in line or "FLOP/s" in line]
    sources = [line for line in out.splitlines() if line.startswith("  ")]
    assert len(numbers) >= len(sources) > 1
    assert err == ""


@pytest.mark.parametrize("name", ["rtx-9999", "", "../gpus/h200-sxm", "\x1b[31m"])
def test_an_unknown_gpu_is_a_named_error(capfd: pytest.CaptureFixture[str], name: str) -> None:
    assert run_main("gpus", name) == 1
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
