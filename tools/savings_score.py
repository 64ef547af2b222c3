"""What ncuroof predicted for changes that people made to their kernels, against what the changes saved: tables in Markdown.

    python -m tools.savings_score                      # recorded cases of the suite, and the folder of reports if it is there
    python -m tools.savings_score --corpus DIR --source leimao

`fixtures/suite/mended.toml` pairs recorded cases, `fixtures/suite/corpus_pairs.toml` launches of other people's reports. A saving
may be negative: the change made the kernel slower. A prediction is scored where the change is little else than what the finding
names (`isolated`), and the finding is reported.

The error is that of GPA (Zhou et al., CGO 2021): |achieved / estimated - 1| of the speed-up; beside it stand points of the time
saved. Baselines: the upper bound, the speed-up that NVIDIA's rules estimate (the largest of them), and no saving at all. With
`--left-out`, what is expected is fitted anew for each source, on the pairs of all others.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import polars as pl
import tomli

import ncuroof
from ncuroof.analysis import Analysis
from ncuroof.demand import SAVINGS, Fix, load_model, with_demand, with_savings
from ncuroof.diagnosis import load_rules
from tools.covered_commands import CORPUS, FIXTURES

SUITE_PAIRS, CORPUS_PAIRS = FIXTURES / "suite/mended.toml", FIXTURES / "suite/corpus_pairs.toml"
RECORDED = {"H200": FIXTURES / "h200", "H100": FIXTURES / "h100-80gb-hbm3"}
_FITTED = {"waits": (0.4, 1.0), "fills": (0.4, 1.0), "open": (0.1, 0.9), "waiting": (0.0, 1.0)}
"""What is fitted, and between which values."""
_STEPS = 13

_MOST_SAVED = 0.75
"""A speed-up of 4: GPA's pairs, to whose error ours is compared, are up to 3.9."""

_NOTHING = Fix(removes={}, frees={}, adds={})

Launch = tuple[Analysis, int]
"""An analysis, and the id of one of its launches."""


@dataclass(frozen=True)
class Pair:
    """A launch before a change, with what the change saved.

    Attributes:
        source: whose it is; pairs of one source are left out together.
        where: the GPU of the suite, or "corpus".
        done: what was changed.
        findings: the findings that name the change.
        is_isolated: the change is little else.
        before: the launch before, one row of `with_demand`.
        reported: FINDINGS of it.
        vendor_frac: the largest speed-up that NVIDIA's rules estimate, as a share of the time saved; None where none does.
        saved: share of the time before that the change saved.
    """

    source: str
    where: str
    done: str
    findings: Sequence[str]
    is_isolated: bool
    before: pl.DataFrame
    reported: pl.DataFrame
    vendor_frac: float | None
    saved: float

    @property
    def finding(self) -> str:
        """The finding that the pair is scored by: the one that is reported and expects most; empty where none is."""
        named = self.reported.filter(pl.col("finding").is_in(self.findings) & pl.col("expected_ns").is_not_null())
        return "" if named.is_empty() else str(named.sort("expected_ns", descending=True)["finding"][0])

    def predicted(self, expectation: Mapping[str, float] | None = None) -> tuple[float, float, float, float]:
        """Return the bound, what is expected, and between what; shares of the time before."""
        fix = load_rules().findings[self.finding].fix or _NOTHING
        found = with_savings(self.before.lazy(), fix, frozenset(self.before.columns), expectation)
        return found.select(SAVINGS).collect().row(0)


def suite_pairs() -> Iterator[Pair]:
    """Yield the recorded cases with a fault, and without it, of both GPUs."""
    entries = tomli.loads(SUITE_PAIRS.read_text(encoding="utf-8"))["pair"]
    for gpu, folder in RECORDED.items():
        for entry in entries:
            if entry.get("launches") == "all":
                continue  # what it saves is a share of several launches
            before, after = _case(folder, entry["fault"]), _case(folder, entry["mended"])
            if before is not None and after is not None:
                yield _pair(entry, entry["fault"], gpu, entry["done"], entry["findings"], before, after)


def corpus_pairs(corpus: Path, file: Path = CORPUS_PAIRS) -> Iterator[Pair]:
    """Yield the pairs of `file` whose reports are in `corpus`."""
    for entry in tomli.loads(file.read_text(encoding="utf-8"))["pair"]:
        sides = [entry["before"], entry["after"]]
        if all((corpus / side["file"]).is_file() for side in sides):
            before, after = ((_analysed(corpus / side["file"]), side["id"]) for side in sides)
            yield _pair(entry, entry["source"], "corpus", entry["done"], entry["findings"], before, after)


def _pair(
    entry: Mapping[str, object],
    source: str,
    where: str,
    done: str,
    findings: Sequence[str],
    before: Launch,
    after: Launch,
) -> Pair:
    analysis, before_id = before
    launch = analysis.kernels.filter(pl.col("id") == before_id)
    work = float(Fraction(str(entry.get("work", "1")).replace(" ", "")))
    after_ns = after[0].measurements.kernels.filter(pl.col("id") == after[1])["duration_ns"][0]
    return Pair(
        source,
        where,
        done,
        findings,
        bool(entry.get("isolated", True)),
        with_demand(launch),
        analysis.findings.filter(pl.col("id") == before_id),
        _vendor(analysis, before_id),
        1 - after_ns * work / launch["duration_ns"][0],
    )


def _vendor(analysis: Analysis, launch: int) -> float | None:
    kernels = {kernel["id"]: kernel for kernel in analysis.to_dict()["kernels"]}
    rules = (kernels[launch].get("vendor") or {}).get("rules") or []
    return max((rule["speedup_frac"] for rule in rules if rule.get("speedup_frac") is not None), default=None)


@cache
def _analysed(report: Path) -> Analysis:
    return ncuroof.read(report).analyse()


@cache
def _reports_of_cases(folder: Path) -> Mapping[str, tuple[Path, bool]]:
    """Return the report of each case, that of level full if there are several, and whether it holds other cases."""
    found: dict[str, tuple[Path, bool]] = {}
    entries = tomli.loads((folder / "provenance.toml").read_text(encoding="utf-8"))["file"]
    for entry in sorted(entries, key=lambda each: each["level"] == "full"):
        for name in entry["cases"]:
            found[name] = folder / entry["name"], len(entry["cases"]) > 1
    return found


def _case(folder: Path, name: str) -> Launch | None:
    if name not in _reports_of_cases(folder):
        return None
    report, is_shared = _reports_of_cases(folder)[name]
    analysis = _analysed(report)
    kernels = analysis.measurements.kernels
    own = kernels.filter(pl.col("nvtx").list.contains(name)) if is_shared else kernels
    return analysis, own.sort("duration_ns", descending=True)["id"][0]


def error(saved: float, predicted: float) -> float:
    """Return |achieved / estimated - 1| of the speed-ups 1 / (1 - saving)."""
    return abs((1 - min(predicted, 0.999)) / (1 - saved) - 1)


class Fit:
    """What is expected, fitted on pairs: for each number the value with the least mean error, the others as they are.

    Errors of a pair are kept, since those of the same pair serve all sources that are left out.
    """

    def __init__(self) -> None:
        self._errors: dict[tuple[int, str, float], float] = {}

    def on(self, pairs: Sequence[Pair]) -> dict[str, float]:
        """Return the expectation that fits these pairs."""
        expectation = dict(load_model().expectation)
        for name, (low, high) in _FITTED.items():
            values = [low + (high - low) * step / (_STEPS - 1) for step in range(_STEPS)]
            expectation[name] = min(values, key=lambda value: sum(self._error(pair, name, value) for pair in pairs))
        return expectation

    def _error(self, pair: Pair, name: str, value: float) -> float:
        key = (id(pair), name, value)
        if key not in self._errors:
            expected = pair.predicted({**load_model().expectation, name: value})[1]
            self._errors[key] = math.log1p(error(pair.saved, expected))
        return self._errors[key]


def rows(pairs: Sequence[Pair], expect: Callable[[Pair], Mapping[str, float] | None]) -> Iterator[str]:
    """Yield a table with a row for each pair."""
    yield "| source | where | change | finding | expected | between | at most | saved |"
    yield "|---|---|---|---|---|---|---|---|"
    for pair in pairs:
        most, likely, low, high = pair.predicted(expect(pair))
        numbers = f"{likely:.1%} | {low:.1%} – {high:.1%} | {most:.1%} | {pair.saved:.1%}"
        yield f"| {pair.source} | {pair.where} | {pair.done} | `{pair.finding}` | {numbers} |"


def scores(pairs: Sequence[Pair], expect: Callable[[Pair], Mapping[str, float] | None]) -> Iterator[str]:
    """Yield a table with a row for each way to predict."""
    ours = [pair.predicted(expect(pair)) for pair in pairs]
    saved = [pair.saved for pair in pairs]
    by_vendor = [(pair.vendor_frac, pair.saved) for pair in pairs if pair.vendor_frac is not None]
    ways = {
        "expected": list(zip((each[1] for each in ours), saved, strict=True)),
        "upper bound": list(zip((each[0] for each in ours), saved, strict=True)),
        "NVIDIA's rules": by_vendor,
        "nothing": [(0.0, each) for each in saved],
    }
    yield "| prediction | pairs | mean error | median | largest | points, mean | points, median |"
    yield "|---|---|---|---|---|---|---|"
    for name, found in ways.items():
        if found:
            errors = [error(was, predicted) for predicted, was in found]
            points = [abs(was - predicted) for predicted, was in found]
            sizes = (statistics.fmean(errors), statistics.median(errors), max(errors))
            both = (*sizes, statistics.fmean(points), statistics.median(points))
            yield f"| {name} | {len(found)} | {' | '.join(f'{each:.1%}' for each in both)} |"
    held = sum(low - 0.005 <= was <= high + 0.005 for (_, _, low, high), was in zip(ours, saved, strict=True))
    beyond = sum(was > most + 0.02 for (most, _, _, _), was in zip(ours, saved, strict=True))
    yield ""
    yield f"Between the two ends: {held} of {len(pairs)}. Saved more than the bound by over two points: {beyond}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables; return the exit status."""
    options = _parser().parse_args(arguments)
    if not options.corpus.is_dir():
        print(f"only the suite's pairs: there is no folder {options.corpus}", file=sys.stderr)
    found = [pair for pair in (*suite_pairs(), *corpus_pairs(options.corpus)) if options.source in pair.source]
    scored = [pair for pair in found if pair.is_isolated and pair.finding]
    by_source, fit = {}, Fit()
    for source in _sources(scored) if options.left_out else ():
        by_source[source] = fit.on([pair for pair in scored if pair.source != source])

    def expect(pair: Pair) -> Mapping[str, float] | None:
        return by_source.get(pair.source)

    rules = load_rules().findings
    small = [pair for pair in scored if pair.saved <= _MOST_SAVED]
    is_open = {name for name, rule in rules.items() if rule.fix is not None and rule.fix.is_open}
    for title, part in (
        ("Speed-ups up to 4, the finding knows how much is needless", [p for p in small if p.finding not in is_open]),
        ("Speed-ups up to 4, it knows the busy unit alone (`is_open`)", [p for p in small if p.finding in is_open]),
        ("All speed-ups, recorded cases of the suite", [p for p in scored if p.where != "corpus"]),
        ("All speed-ups, other people's kernels", [p for p in scored if p.where == "corpus"]),
    ):
        if part:
            print(f"### {title}", "", *scores(part, expect), "", sep="\n", file=options.out)
    print("## pairs", "", *rows(scored, expect), "", sep="\n", file=options.out)
    if by_source:
        print("## fitted", "", *_fitted_lines(by_source), "", sep="\n", file=options.out)
    silent = [pair for pair in found if pair.findings and not pair.finding]
    print(f"## not predicted: {len(silent)} of {len(found)}", "", sep="\n", file=options.out)
    print(*(f"- {pair.source}: {pair.done}, {pair.saved:.1%}" for pair in silent), sep="\n", file=options.out)
    return 0


def _fitted_lines(by_source: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield between which values each number lies, whichever source is left out."""
    for name in _FITTED:
        values = [expectation[name] for expectation in by_source.values()]
        yield f"- {name}: {min(values):.2f} to {max(values):.2f}; used: {load_model().expectation[name]:.2f}"


def _sources(pairs: Sequence[Pair]) -> list[str]:
    return list(dict.fromkeys(pair.source for pair in pairs))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.savings_score", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--corpus", type=Path, default=CORPUS, metavar="DIR", help="recorded reports, in folders")
    parser.add_argument("--source", default="", metavar="TEXT", help="only pairs whose source contains this")
    parser.add_argument("--left-out", action="store_true", help="fit anew for each source, on the pairs of all others")
    parser.add_argument("--out", type=argparse.FileType("w", encoding="utf-8"), default="-", metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
