"""Writes the tables of docs/suite.md from cases.toml and the recordings: `python docs/suite.py`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/suite.md"
RECORDINGS = {"h200": ROOT / "fixtures/h200", "h100": ROOT / "fixtures/h100-80gb-hbm3"}
_TABLE = re.compile(r"(<!-- table: (\w+(?: \w+)?) -->\n).*?(<!-- end -->)", re.DOTALL)

sys.path.insert(0, str(ROOT / "fixtures/suite"))
from analysed import Analysed, analysed, provenance_of  # noqa: E402  the suite's modules lie beside its programs
from cases import Case, Suite, load  # noqa: E402
from mended import mending  # noqa: E402
from roofs import roofs  # noqa: E402
from tables import answers, confusion, paper, revisions  # noqa: E402
from validate import judged_in, share_lines  # noqa: E402


def page(text: str) -> str:
    """Return the page with its tables written anew."""
    tables = _tables()
    return _TABLE.sub(lambda found: f"{found[1]}\n{tables[found[2]]}\n\n{found[3]}", text)


def _tables() -> dict[str, str]:
    """Return the tables by name; those of recordings by table and GPU, as in `share h200`."""
    suite = load()
    tables = {
        "cases": "\n".join(("| case | planted | answer | findings |", "|---|---|---|---|", *map(_row, suite.cases)))
    }
    for gpu, folder in RECORDINGS.items():
        tables |= {f"{name} {gpu}": "\n".join(lines) for name, lines in _tables_of(folder, suite).items()}
    return tables


def _tables_of(folder: Path, suite: Suite) -> dict[str, Iterable[str]]:
    recorded = analysed(folder)
    judged, problems = judged_in(recorded, suite)
    return {
        "recorded": _recorded(recorded, folder),
        "share": (f"- {line}" for line in share_lines(judged, problems, suite)),
        "ours": confusion("ncuroof", judged, [each.found[0] for each in judged]),
        "vendor": confusion("NVIDIA", judged, [each.vendor or "none" for each in judged]),
        "revisions": revisions(judged) if any(each.case.before for each in judged) else ("None.",),
        "mending": mending(recorded),
        "paper": paper(judged),
        "answers": answers(judged),
        "roofs": roofs(recorded, folder),
    }


def _recorded(recorded: Analysed, folder: Path) -> Iterator[str]:
    """Yield what was recorded, on what, and what of it is not complete."""
    entries = provenance_of(folder)
    newest = max(entries, key=lambda entry: str(entry["date"]))
    n_bytes = sum((folder / entry["name"]).stat().st_size for entry in entries)
    yield (
        f"{newest['gpu']}, driver {newest['driver']}, Nsight Compute {newest['ncu']}, CUDA {newest['cuda']}, "
        f"PyTorch {newest['torch']}, Triton {newest['triton']}; clocks not locked; {newest['date']}."
    )
    yield f"{len(entries)} reports, {n_bytes / 1e6:.0f} MB; {len(recorded.document['kernels'])} launches of the cases."
    for entry in entries:
        if not entry.get("complete", True):
            yield f"`{entry['name']}` is not complete: {entry['why']}."


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
