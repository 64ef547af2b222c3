"""Writes the table of cases into docs/suite.md from fixtures/suite/cases.toml: `python docs/suite.py`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/suite.md"
HEADING = "## Cases\n"

sys.path.insert(0, str(ROOT / "fixtures/suite"))
from cases import Case, load  # noqa: E402  the suite's modules lie beside its programs


def page(text: str) -> str:
    """Return the page with its table of cases written anew."""
    rows = "\n".join(_row(case) for case in load().cases)
    return f"{text.partition(HEADING)[0]}{HEADING}\n| case | planted | answer | findings |\n|---|---|---|---|\n{rows}\n"


def _row(case: Case) -> str:
    verdicts, limiters = (" or ".join(names) for names in (case.verdicts, case.limiters))
    answer = " · ".join(part for part in (verdicts, limiters) if part) or "not judged"
    findings = [f"`{name}`" for name in case.must]
    findings += [" or ".join(f"`{name}`" for name in case.one_of)] if case.one_of else []
    findings += [f"not `{name}`" for name in case.must_not]
    return f"| `{case.id}` | {case.planted} | {answer} | {', '.join(findings)} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
