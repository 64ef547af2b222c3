"""The report that ships with ncuroof is the recorded one without machine code, and the demo shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncuroof.resources import folder
from tests.cli.running import run_main
from tools import demo_report


@pytest.mark.long
def test_the_shipped_report_is_the_recorded_one_without_machine_code() -> None:
    shipped, recorded = demo_report.SHIPPED, demo_report.RECORDED
    assert demo_report.decompressed(shipped) == demo_report.without_code(demo_report.decompressed(recorded))
    assert b"\x7fELF" in demo_report.decompressed(recorded)
    assert b"\x7fELF" not in demo_report.decompressed(shipped)
    assert shipped.with_suffix(".counts.json").read_bytes() == recorded.with_suffix(".counts.json").read_bytes()


def test_the_shipped_report_is_small() -> None:
    assert sum(path.stat().st_size for path in folder("demo").iterdir()) < 400_000


def test_the_demo_prints_the_summary_and_writes_the_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main("demo", tmp_path) == 0
    printed = capfd.readouterr().out
    assert "The GPU works for 3.41 ms (kernels and copies)" in printed
    page = tmp_path / "train_transformer.roofline.html"
    assert printed.splitlines()[-1] == f"page: {page}"
    assert page.read_bytes().lower().startswith(b"<!doctype html>")


def test_without_a_folder_for_the_page_the_demo_is_a_named_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_main("demo", tmp_path / "absent") == 1
    assert "mkdir -p" in capfd.readouterr().err
