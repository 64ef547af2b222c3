"""What ncuroof says of other people's kernels on which rules of percentages disagree, against labels: tables in Markdown.

    python -m tools.hard_score                # the folder of reports, if it is there
    python -m tools.hard_score --wrong        # also each launch that is not answered as labelled

`fixtures/suite/corpus_hard.toml` has the labels, written from counters, machine code and samples, without ncuroof's answer. A
level is right where the answer is one of those that the label accepts: the verdict ("first choice": the one that the label has
first), the limiter, the cause (one of the first three findings), and no finding that the label calls false or harmful. `saving`
counts where the label has a range: the expected saving of the first accepted finding lies within it, with five points on both
sides.

Baselines, which have a verdict alone: three lines (compute above 60 %, else memory above 60 %, else latency), the larger
percentage, and the rule of NVIDIA's Speed of Light section.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tomli

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.present.documents.kernels import kernel_entries
from tools.covered_commands import CORPUS, FIXTURES

LABELS = FIXTURES / "suite/corpus_hard.toml"
LEVELS = ("verdict", "first choice", "limiter", "cause", "nothing false", "saving")
_FIRST = 3
_SLACK = 0.05
_MEMORY, _COMPUTE = (
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
)


@dataclass(frozen=True)
class Scored:
    """A labelled launch: the answer, and whether each level is right; None where the label does not say.

    Attributes:
        label: the table of `LABELS`.
        answer: verdict, limiter, first findings.
        right: by level.
        baselines: verdict by baseline; None where its counters are missing.
    """

    label: Mapping[str, Any]
    answer: str
    right: Mapping[str, bool | None]
    baselines: Mapping[str, str | None]


def scored(corpus: Path, file: Path = LABELS) -> Iterator[Scored]:
    """Yield the labelled launches whose reports are in `corpus`."""
    for label in tomli.loads(file.read_text(encoding="utf-8"))["kernel"]:
        if (corpus / label["file"]).is_file():
            yield _scored(label, _analysed(corpus / label["file"]))


@cache
def _analysed(path: Path) -> Analysis:
    return ncuroof.read(path).analyse()


def _scored(label: Mapping[str, Any], analysis: Analysis) -> Scored:
    (entry,) = kernel_entries(analysis, [label["id"]])
    findings = [each["id"] for each in entry["findings"]]
    accepted = [each for each in entry["findings"] if each["id"] in label["causes"]]
    expected = next((each.get("expected_ns") for each in accepted), None)
    right: dict[str, bool | None] = {
        "verdict": entry["verdict"] in label["verdicts"],
        "first choice": entry["verdict"] == label["verdicts"][0],
        "limiter": entry["limiter"] in label["limiters"] if label["limiters"] else None,
        "cause": any(name in label["causes"] for name in findings[:_FIRST]) if label["causes"] else None,
        "nothing false": not set(findings) & set(label["must_not"]) if label["must_not"] else None,
        "saving": None,
    }
    if "saving" in label and expected is not None and entry["duration_ns"]:
        low, high = label["saving"]
        right["saving"] = low - _SLACK <= expected / entry["duration_ns"] <= high + _SLACK
    answer = f"{entry['verdict']}, {entry['limiter']}; {', '.join(findings[:_FIRST])}"
    return Scored(label, answer, right, _baselines(analysis, label["id"], entry))


def _baselines(analysis: Analysis, number: int, entry: Mapping[str, Any]) -> dict[str, str | None]:
    (row,) = analysis.kernels.filter(id=number).iter_rows(named=True)
    memory, compute = row["utilisation.memory"], row["utilisation.compute"]
    if memory is None or compute is None:
        return dict.fromkeys(("three lines", "larger percentage", "NVIDIA's rule"))
    three = "compute" if compute > 0.6 else "memory" if memory > 0.6 else "latency"
    larger = "compute" if compute > memory else "memory"
    vendor = (entry.get("vendor") or {}).get("verdict") or "none"
    return {"three lines": three, "larger percentage": larger, "NVIDIA's rule": vendor}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--wrong", action="store_true", help="list what is not answered as labelled")
    options = parser.parse_args(arguments)
    found = list(scored(options.corpus))
    if not found:
        sys.exit(f"no report that {LABELS.name} names is in {options.corpus}")
    print("\n".join(_tables(found)))
    if options.wrong:
        print("\n".join(_wrong(found)))


def _tables(found: Sequence[Scored]) -> Iterator[str]:
    yield from (f"| | {' | '.join(LEVELS)} |", f"|---{'|---' * len(LEVELS)}|")
    yield f"| ncuroof | {' | '.join(_share([each.right[level] for each in found]) for level in LEVELS)} |"
    for name in found[0].baselines:
        answers = [(each.baselines[name], each.label["verdicts"]) for each in found if each.baselines[name]]
        accepted = _share([answer in verdicts for answer, verdicts in answers])
        first = _share([answer == verdicts[0] for answer, verdicts in answers])
        yield f"| {name} | {accepted} | {first} | – | – | – | – |"


def _share(right: Sequence[bool | None]) -> str:
    judged = [each for each in right if each is not None]
    return f"{sum(judged)}/{len(judged)} ({sum(judged) / len(judged):.0%})" if judged else "–"


def _wrong(found: Sequence[Scored]) -> Iterator[str]:
    for each in found:
        levels = [level for level in LEVELS if each.right[level] is False]
        if levels:
            label = each.label
            wanted = f"{'/'.join(label['verdicts'])}, {'/'.join(label['limiters'])}; {', '.join(label['causes'])}"
            yield f"\n{label['file']} {label['id']} {label['kernel']}: {', '.join(levels)}"
            yield f"  labelled {wanted}; not {', '.join(label['must_not'])}; saving {label.get('saving')}"
            yield f"  answered {each.answer}"


if __name__ == "__main__":
    main()
