"""What needs no report loads no polars: help, wrong usage, and a report that is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ncuroof.cli import brief, report
from ncuroof.ingest import READERS
from ncuroof.present.brief import BUDGET_BYTES, LEAST_BUDGET_BYTES

WORDS = [
    ["--help"],
    ["bogus"],
    ["report", "none.ncu-rep"],
    ["brief", "none.ncu-rep"],
    *([name, "--help"] for name in ("report", "brief", "demo", "gpus", "calibrate", "doctor", "explain", "mcp")),
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_commands_without_a_report_do_not_import_polars(words: list[str], tmp_path: Path) -> None:
    program = (
        "import sys\nfrom ncuroof.cli import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit as end:\n    assert 'polars' not in sys.modules\n    raise\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "AssertionError" not in done.stderr
    assert done.returncode == (0 if "--help" in words else 2 if "bogus" in words else 1)


def test_choices_are_those_of_the_library() -> None:
    assert READERS == report.READERS
    assert (BUDGET_BYTES, LEAST_BUDGET_BYTES) == (brief.BUDGET_BYTES, brief.LEAST_BUDGET_BYTES)
