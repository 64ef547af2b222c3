"""Requests, plans and an ncu for tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ncuroof.collect.plan import Plan
from ncuroof.collect.request import Request

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "fixtures/simulated/h200-training-step.ncu-rep"
STAND_IN = ROOT / "tests/support/stand_in_ncu.py"

PLAN = Plan("quick", None, ("SpeedOfLight",), ("a.sum", "b.sum"), (8, 9))
COLLECTION = ["--section", "SpeedOfLight", "--metrics", "a.sum,b.sum"]


def request(**more: Any) -> Request:
    return Request(**{"words": ("./app",), "report": Path("run.ncu-rep"), **more})


def stand_in(folder: Path) -> Path:
    """Write an executable that behaves as ncu does, and return its path."""
    path = folder / "ncu"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def put_torch(folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_installed: bool) -> None:
    """Give Python programs started from here an empty PyTorch, or hide the installed one from them.

    An empty package is enough for scripts that do not import PyTorch: the counting run only asks whether it is there.
    """
    site = folder / "site"
    site.mkdir()
    if is_installed:
        (site / "torch.py").touch()
    else:
        (site / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(site))


NSYSS_LAST_WORDS = """Generating '/tmp/nsys-report-de74.qdstrm'
[1/1] [=100%] trace.nsys-rep
Generated:
    /tmp/x.nsys-rep
"""


def stand_in_nsys(folder: Path, database: Path | None) -> Path:
    """Write a program that runs another, relays its output, and leaves a database, as nsys does."""
    leave = "" if database is None else f'cp "{database}" "$(echo "$out" | sed "s/%q{{MY_RANK}}/$rank/").sqlite"'
    path = folder / "nsys"
    path.write_text(
        f"""#!/bin/sh
shift
rank=$MY_RANK
while case "$1" in --*) true ;; *) false ;; esac; do case "$1" in --output=*) out="${{1#--output=}}" ;; esac; shift; done
"$@"; status=$?
cat <<'WORDS'
{NSYSS_LAST_WORDS}WORDS
{leave}
exit $status
""",
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path
